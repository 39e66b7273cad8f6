/* Signals of all kinds, futures, memory: what they return, at their limits too. */
#include "octo.h"

static simple_signal never;

#define CHECK(condition)                                                                                                           \
    do {                                                                                                                           \
        if (!(condition)) {                                                                                                        \
            octo_printf("line %d: " #condition "\n", __LINE__);                                                                    \
            shutdown(1);                                                                                                           \
        }                                                                                                                          \
    } while (0)

static binary_signal both;
static infect_signal last;
static int begun;

static void second_waiter(void *signal)
{
    /* The main i-let waits already. */
    CHECK(simple_signal_wait(signal) == -1);
    simple_signal_signal_and_exit(signal);
}

static void at_last(void *signal)
{
    begun++;
    binary_signal_signal_and_exit(signal);
}

static void count(void *signal)
{
    infect_signal_signal_and_exit(signal);
}

void main_ilet(claim_t claim)
{
    simple_signal signal;
    simple_ilet ilet;
    CHECK(get_claim() == claim && claim_get_size() == 1);
    claim_set_local_data(&signal);
    CHECK(claim_get_local_data() == &signal);
    CHECK(simple_signal_init(&signal, simple_signal_get_max_proc_count() + 1) == -1);
    CHECK(simple_signal_init(&signal, 0) == 0 && simple_signal_wait(&signal) == 0);

    /* A signal before the wait is not lost. */
    simple_signal_init(&signal, 1);
    simple_signal_add_signalers(&signal, 1);
    CHECK(simple_signal_get_counter(&signal) == 2);
    simple_signal_signal(&signal);
    simple_signal_signal(&signal);
    CHECK(simple_signal_get_counter(&signal) == 0 && simple_signal_wait(&signal) == 0);
    /* One too many changes nothing. */
    simple_signal_signal(&signal);
    CHECK(simple_signal_get_counter(&signal) == 0);

    simple_signal_init(&signal, 1);
    simple_ilet_init(&ilet, second_waiter, &signal);
    CHECK(infect_simple(&ilet) == 0);
    CHECK(simple_signal_wait(&signal) == 0);

    binary_signal_init(&both);
    CHECK(binary_signal_get_counter(&both) == 1);
    simple_ilet_init(&ilet, at_last, &both);
    CHECK(infect_signal_init(&last, 3, &ilet) == 0);
    simple_ilet team[3];
    for (int i = 0; i < 3; i++)
        simple_ilet_init(&team[i], count, &last);
    CHECK(infect_self(team, 3) == 0);
    CHECK(binary_signal_wait(&both) == 0 && begun == 1);

    /* A claim without cores refuses i-lets, and one that is none everything. */
    CHECK(infect(claim_construct(), &ilet, 1) == -1);
    CHECK(invade_simple(NULL, 1) == -1 && retreat(NULL, 1) == -1 && infect(NULL, &ilet, 1) == -1);
    CHECK(invade_simple(claim, 1000) == -1 && claim_get_size() == 1);
    CHECK(retreat(claim, 1) == -1);
    CHECK(proxy_get_tid(NULL) == -1 && dispatch_claim_send_reply(&ilet) == -1);

    set_ilet_sched_dom(&ilet, 7);
    CHECK(get_ilet_sched_dom(&ilet) == 7);
    set_cur_ilet_sched_dom(3);
    CHECK(get_cur_ilet_sched_dom() == 3);

    char *memory = mem_allocate(MEM_TLM_LOCAL, 100);
    char *large = mem_allocate_aligned(MEM_TLM_LOCAL, 100000, 65536);
    CHECK(memory && large && ((octo_word)large & 65535) == 0);
    for (int i = 0; i < 100000; i++)
        large[i] = (char)i;
    memory = mem_reallocate(MEM_TLM_LOCAL, memory, 5000);
    CHECK(memory);
    mem_free(memory);
    mem_free(large);
    CHECK(mem_allocate(MEM_ICM, 1) == NULL);
    CHECK(mem_unmap((void *)0x1000, 1) == -1);
    CHECK(mem_get_page_size() == 4096);
    CHECK(simple_signal_get_counter(&never) == 0);
    uint64_t before = octo_clock_nanoseconds();
    CHECK(octo_clock_nanoseconds() >= before);
    octo_printf("signals, claims and memory are in order\n");
    shutdown(0);
}
