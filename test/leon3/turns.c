/* Loops under timer interrupts: two i-lets on two cores, which take turns on the one processor, count the turns of loops that live by
 * their condition codes, with their registers in one window and in many. Every turn is counted, and each sees the other at work
 * while it has not ended itself. */
#include "octo.h"

enum { TURNS = 12000000, DEPTH = 11 };

static volatile uint32_t progress[2];
static volatile uint32_t seen[2];
static uint32_t counted[2], summed[2];

/* Counts in a register down to zero: an interrupt that loses the condition codes ends it early or late. */
static uint32_t count(uint32_t turns)
{
    uint32_t done = 0;
    __asm__ volatile("1: add %0, 1, %0\n subcc %1, 1, %1\n bne 1b\n nop" : "+r"(done), "+r"(turns) : : "cc");
    return done;
}

static uint32_t sum(uint32_t depth);
static uint32_t (*volatile again)(uint32_t) = sum;

/* Sums over a stack of windows deeper than the register file. Called by a pointer, so that it stays a stack. */
static uint32_t sum(uint32_t depth)
{
    uint32_t mine = depth * 3 + 1;
    return depth ? mine + again(depth - 1) : mine;
}

static void work(uint32_t who)
{
    uint32_t wanted = 0;
    for (uint32_t depth = 0; depth <= DEPTH; depth++)
        wanted += depth * 3 + 1;
    for (int part = 0; part < 100; part++) {
        counted[who] += count(TURNS / 100);
        for (int turn = 0; turn < 1000; turn++)
            summed[who] += again(DEPTH) == wanted;
        progress[who] = (uint32_t)part + 1;
        if (progress[1 - who] > 0 && progress[1 - who] < 100)
            seen[who] = 1;
    }
}

static void other(void *done)
{
    work(1);
    simple_signal_signal_and_exit(done);
}

void main_ilet(claim_t own)
{
    (void)own;
    simple_signal done;
    simple_ilet ilet;
    claim_t claim = claim_construct();
    simple_signal_init(&done, 1);
    simple_ilet_init(&ilet, other, &done);
    if (invade_simple(claim, 1) == -1 || infect(claim, &ilet, 1) == -1)
        shutdown(1);
    work(0);
    simple_signal_wait(&done);
    int right = counted[0] == TURNS && counted[1] == TURNS && summed[0] == 100000 && summed[1] == 100000;
    octo_printf("turns %u %u, sums %u %u\n", counted[0], counted[1], summed[0], summed[1]);
    octo_printf(seen[0] && seen[1] ? "each saw the other at work\n" : "one had to wait for the other\n");
    shutdown(right && seen[0] && seen[1] ? 0 : 2);
}
