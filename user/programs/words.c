/* All words of a call arrive, with any number of them and at any depth of the stack, also where the i-let waits in between. */
#include "octo.h"

static int failures;

static void check(octo_word found, octo_word wanted, int which)
{
    if (found != wanted) {
        octo_printf("call %d: %lx, not %lx\n", which, (unsigned long)found, (unsigned long)wanted);
        failures++;
    }
}

static void all(octo_word seed)
{
    octo_word a = seed, b = seed * 3 + 1, c = ~seed, d = seed << 7, e = seed ^ 0x5a5a, f = (octo_word)-1 - seed;
    check(empty_6(a, b, c, d, e, f), a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f, 6);
    check((octo_word)empty_0(), 42, 0);
    check((octo_word)empty_1(a), 42, 1);
    check((octo_word)empty_2(a, b), 42, 2);
    check((octo_word)empty_3(a, b, c), 42, 3);
    check((octo_word)empty_4(a, b, c, d), 42, 4);
    check((octo_word)empty_5(a, b, c, d, e), 42, 5);
    check(empty_6(7, 7, 7, 7, 7, 7), 42, 6);
}

static void notify(void *signal)
{
    all(99);
    simple_signal_signal(signal);
}

/* Deep enough to use up any processor's register windows on the way. */
static octo_word __attribute__((noinline)) deep(int depth, octo_word seed)
{
    if (depth == 0) {
        simple_signal wait;
        simple_ilet ilet;
        all(seed);
        simple_signal_init(&wait, 1);
        simple_ilet_init(&ilet, notify, &wait);
        infect_self_single(&ilet);
        simple_signal_wait(&wait);
        return seed;
    }
    octo_word kept = seed * 5 + (octo_word)depth;
    octo_word below = deep(depth - 1, seed + 1);
    check(kept, seed * 5 + (octo_word)depth, 100 + depth);
    return below - 1;
}

void main_ilet(claim_t claim)
{
    (void)claim;
    for (int depth = 0; depth < 40; depth++)
        check(deep(depth, 1000), 1000, 200 + depth);
    octo_printf(failures ? "%d words were lost\n" : "every word arrived (%d lost)\n", failures);
    shutdown(failures ? 1 : 0);
}
