/* A producer and a consumer in two tasks: strings of every length up to some pages, copied from one address space to the other. Neither has touched
   all of its buffer before: what is missing is brought in the middle of a message. */
#include "library.h"

enum { PRODUCER = 5, PAGER = 1, STRINGS = 40, STEP = 397, SIZE = STRINGS * STEP + 1 };

STACK(pager_stack, 4096);
STACK(producer_stack, 4096);
/* Each task has its own part, in pages that the other does not touch. */
static unsigned char made[SIZE] __attribute__((aligned(4096)));
static unsigned char taken[SIZE] __attribute__((aligned(4096)));
static struct {
    uint32_t window, size, send, word[2];
    l4_string string;
} there __attribute__((aligned(4096))), here __attribute__((aligned(4096)));

static uint32_t sum(const unsigned char *bytes, uint32_t count)
{
    uint32_t sum = 0;
    while (count--)
        sum = sum * 31 + *bytes++;
    return sum;
}

static void produce(void)
{
    for (uint32_t round = 1; round <= STRINGS; round++) {
        uint32_t count = round * STEP;
        for (uint32_t at = 0; at < count; at++)
            made[at] = (unsigned char)(at * round + 7);
        there.send = there.size = L4_DOPE(2, 1);
        there.string = (l4_string){ count, (uint32_t)made, 0, 0 };
        l4_message m = { L4_ROOT, { count, sum(made, count) } };
        uint32_t dope = l4_ipc(&m, (uint32_t)&there, L4_SHORT, L4_NEVER);
        if (L4_ERROR(dope) || m.word[0] != round)
            print("the producer's round %u: dope %x, answer %u\n", round, dope, m.word[0]);
    }
    l4_sleep(0, 0);
}

int main(const l4_loader *loader, const l4_info *info)
{
    (void)loader, (void)info;
    l4_id me = l4_myself();
    uint32_t all = 0;
    l4_thread(PAGER, give_pages, STACK_END(pager_stack), L4_SIGMA0);
    l4_id producer = l4_task_new(l4_task(PRODUCER), 255, produce, STACK_END(producer_stack), l4_sibling(me, PAGER));
    l4_message m = { producer, { 0, 0 } };
    for (uint32_t round = 1; round <= STRINGS; round++) {
        here.size = L4_DOPE(2, 1);
        here.string = (l4_string){ 0, 0, SIZE, (uint32_t)taken };
        m = (l4_message){ producer, { round - 1, 0 } };
        uint32_t dope = l4_ipc(&m, round == 1 ? L4_NONE : L4_SHORT, (uint32_t)&here, L4_NEVER);
        uint32_t count = here.string.size;
        if (L4_ERROR(dope) || L4_STRINGS(dope) != 1 || count != m.word[0] || sum(taken, count) != m.word[1]) {
            print("round %u: dope %x, %u bytes of %u\n", round, dope, count, m.word[0]);
            return 1;
        }
        all += count;
    }
    m = (l4_message){ producer, { STRINGS, 0 } };
    l4_send(&m);
    print("%u strings with %u bytes arrived\n", STRINGS, all);
    return 0;
}
