/* Messages of words there and back: between two threads of a task, and between two tasks. "time" among the arguments: with clock ticks. */
#include "library.h"

enum { ROUNDS = 2000, PONG = 1, PAGER = 2, OTHER_TASK = 5 };

STACK(pong_stack, 4096);
STACK(pager_stack, 4096);
STACK(other_stack, 4096);

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* Replies to each message with its words, one more than they were. */
static void pong(void)
{
    l4_message m;
    uint32_t dope = l4_wait(&m);
    for (;;) {
        if (L4_ERROR(dope)) {
            dope = l4_wait(&m);
            continue;
        }
        m.word[0]++;
        m.word[1]++;
        dope = l4_reply_and_wait(&m, L4_SHORT);
    }
}

static int play(const char *where, l4_id partner, int timed)
{
    uint32_t number = 0;
    uint64_t start = ticks();
    for (uint32_t round = 0; round < ROUNDS; round++) {
        l4_message m = { partner, { number, round } };
        uint32_t dope = l4_call(&m);
        if (L4_ERROR(dope) || m.word[0] != number + 1 || m.word[1] != round + 1 || !l4_same(m.partner, partner)) {
            print("%s: round %u: dope %x, words %u %u\n", where, round, dope, m.word[0], m.word[1]);
            return 1;
        }
        number = m.word[0];
    }
    uint64_t spent = ticks() - start;
    print("%s: %u times there and back\n", where, number);
    if (timed)
        print("%s: %u ticks a message\n", where, (uint32_t)(spent >> 4) / (ROUNDS * 2 / 16));
    return 0;
}

int main(const l4_loader *loader, const l4_info *info)
{
    (void)info;
    l4_id me = l4_myself();
    int timed = has_argument(loader, "time");
    l4_thread(PONG, pong, STACK_END(pong_stack), L4_SIGMA0);
    if (play("one address space", l4_sibling(me, PONG), timed))
        return 1;
    l4_thread(PAGER, give_pages, STACK_END(pager_stack), L4_SIGMA0);
    l4_id other = l4_task_new(l4_task(OTHER_TASK), 255, pong, STACK_END(other_stack), l4_sibling(me, PAGER));
    if (l4_task_of(other) != OTHER_TASK) {
        print("no other task\n");
        return 1;
    }
    return play("two address spaces", other, timed);
}
