/* Five philosophers, each a thread, with a fork between each two; a sixth thread has the forks and lends them. */
#include "library.h"

enum { SEATS = 5, MEALS = 100, TAKE = 1, GIVE = 2, DONE = 3 };

static char stacks[SEATS][4096] __attribute__((aligned(16)));
static l4_id table;

static void philosopher(void)
{
    uint32_t seat = l4_thread_of(l4_myself()) - 1;
    for (uint32_t meal = 0; meal < MEALS; meal++) {
        l4_message m = { table, { TAKE, seat } };
        l4_call(&m);
        /* Others have the processor while this one eats. */
        l4_yield();
        m = (l4_message){ table, { GIVE, seat } };
        l4_call(&m);
        l4_yield();
    }
    l4_message m = { table, { DONE, seat } };
    l4_send(&m);
    l4_sleep(0, 0);
}

int main(const l4_loader *loader, const l4_info *info)
{
    (void)loader, (void)info;
    uint32_t eats[SEATS] = { 0 }, waits[SEATS] = { 0 }, meals[SEATS] = { 0 }, done = 0, together = 0;
    table = l4_myself();
    for (uint32_t seat = 0; seat < SEATS; seat++)
        l4_thread(seat + 1, philosopher, stacks[seat] + sizeof stacks[seat], L4_SIGMA0);
    while (done < SEATS) {
        l4_message m;
        if (L4_ERROR(l4_wait(&m)) || m.word[1] >= SEATS)
            return 1;
        uint32_t seat = m.word[1];
        if (m.word[0] == DONE) {
            done++;
            continue;
        }
        if (m.word[0] == GIVE) {
            eats[seat] = 0;
            l4_send(&m);
        } else {
            waits[seat] = 1;
        }
        /* Who waits and has both forks free may eat. */
        for (uint32_t at = 0; at < SEATS; at++) {
            uint32_t left = (at + SEATS - 1) % SEATS, right = (at + 1) % SEATS;
            if (!waits[at] || eats[left] || eats[right])
                continue;
            waits[at] = 0;
            eats[at] = 1;
            meals[at]++;
            uint32_t now = 0;
            for (uint32_t other = 0; other < SEATS; other++)
                now += eats[other];
            if (now > together)
                together = now;
            m = (l4_message){ l4_sibling(table, at + 1), { 0, 0 } };
            l4_send(&m);
        }
    }
    for (uint32_t seat = 0; seat < SEATS; seat++)
        print("philosopher %u has eaten %u times\n", seat, meals[seat]);
    print("at most %u ate together\n", together);
    return 0;
}
