/* Who is stopped by what: a thread that spins by the end of its slice, by one of higher priority whose time has come, and by the clock's interrupt; and how
   it is not. */
#include "library.h"

enum { OTHER = 1, SLEEPER = 2, TICKS = 3, SPINS = 50000 };
/* A priority below the root task's and one above it, with a slice of 10 ms (156 * 4^3 microseconds). */
#define LOW (8u | 12u << 20 | 156u << 24)
#define SAME (16u | 12u << 20 | 156u << 24)
#define HIGH (30u | 12u << 20 | 156u << 24)
/* Interrupt 0, as a partner. */
#define CLOCK ((l4_id){ 1, 0 })

STACK(other_stack, 4096);
STACK(sleeper_stack, 4096);
static volatile uint32_t turn, woken;

/* Replies to each odd number with the next. */
static void other(void)
{
    for (;;)
        if (turn & 1)
            turn++;
}

static void sleeper(void)
{
    l4_sleep(100, 11);
    woken = 1;
    l4_sleep(0, 0);
}

static uint32_t interrupt(uint32_t timeouts, l4_message *m)
{
    *m = (l4_message){ CLOCK, { 0, 0 } };
    return l4_ipc(m, L4_NONE, L4_SHORT, timeouts);
}

int main(const l4_loader *loader, const l4_info *info)
{
    (void)loader, (void)info;
    l4_id me = l4_myself();
    l4_message m;
    l4_schedule(me, SAME);
    l4_thread(OTHER, other, STACK_END(other_stack), L4_SIGMA0);
    l4_schedule(l4_sibling(me, OTHER), SAME);
    for (uint32_t round = 0; round < TICKS; round++) {
        turn = 2 * round + 1;
        while (turn & 1)
            ;
    }
    print("slices end: %u turns\n", turn);

    l4_thread(SLEEPER, sleeper, STACK_END(sleeper_stack), L4_SIGMA0);
    l4_schedule(l4_sibling(me, SLEEPER), HIGH);
    while (!woken)
        ;
    print("who is higher comes in between\n");

    l4_schedule(l4_sibling(me, OTHER), LOW);
    uint32_t dope = interrupt(L4_RECEIVE_NOW, &m), ticks = 0;
    print("the clock's line: %x, another's: ", dope);
    m = (l4_message){ (l4_id){ 2, 0 }, { 0, 0 } };
    print("%x\n", l4_ipc(&m, L4_NONE, L4_SHORT, L4_RECEIVE_NOW));
    while (ticks < TICKS) {
        dope = interrupt(L4_NEVER, &m);
        if (L4_ERROR(dope) || !l4_same(m.partner, CLOCK))
            return 1;
        ticks++;
    }
    print("ticks stop a thread that spins: %u\n", ticks);
    m = (l4_message){ L4_NIL, { 0, 0 } };
    print("the line is given back: %x", l4_ipc(&m, L4_NONE, L4_SHORT, L4_RECEIVE_NOW));
    print(", it is %x\n", interrupt(L4_NEVER, &m));

    l4_schedule(l4_sibling(me, OTHER), SAME);
    l4_yield();
    __asm__ volatile("cli" : : : "memory");
    turn = 101;
    /* What it would have changed by now is changed before the flag is set again, or else behind it. */
    uint32_t kept = 1;
    for (uint32_t spin = 0; spin < SPINS; spin++)
        kept &= turn;
    __asm__ volatile("sti" : : : "memory");
    while (turn & 1)
        ;
    print("interrupts are kept off: %u\n", kept & 1);
    return 0;
}
