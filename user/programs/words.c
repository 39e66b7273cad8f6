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

/* Numbers of calls that write their words down (abi/src/invasive/call.rs), past the library, which could handle them itself. */
enum { SIMPLE_ILET_INIT = 20, DUAL_ILET_INIT = 21, SIMPLE_SIGNAL_INIT = 22, GET_LOCAL_ADDRESS = 47 };

static void written(octo_word a, octo_word b, octo_word c)
{
    simple_ilet ilet = {1, 1, 1, 1};
    octo_call(DUAL_ILET_INIT, (octo_word)&ilet, a, b, c, 9, 9);
    check(ilet.code, a, 12);
    check(ilet.first, b, 13);
    check(ilet.second, c, 14);
    octo_call(SIMPLE_ILET_INIT, (octo_word)&ilet, b, c, 9, 9, 9);
    check(ilet.code, b, 12);
    check(ilet.first, c, 13);
    check(ilet.second, 0, 14);
    simple_signal signal = {1, 1};
    octo_call(SIMPLE_SIGNAL_INIT, (octo_word)&signal, a & 0xffff, 9, 9, 9, 9);
    check(signal.left, a & 0xffff, 12);
    check(octo_call(GET_LOCAL_ADDRESS, b & 0xffffff, 9, 9, 9, 9, 9), b & 0xffffff, 11);
}

static void all(octo_word seed)
{
    octo_word a = seed, b = seed * 3 + 1, c = ~seed, d = seed << 7, e = seed ^ 0x5a5a, f = (octo_word)-1 - seed;
    check(empty_6(a, b, c, d, e, f), a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f, 6);
    written(a, b, c);
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
