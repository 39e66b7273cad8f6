/* Floating-point registers are each i-let's own, also across waits and interrupts. */
#include "octo.h"

static volatile double result[2];

static void work(int who)
{
    double sum = 0, step = who ? 0.5 : 0.25;
    for (int i = 0; i < 2000000; i++)
        sum += step;
    result[who] = sum;
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
    octo_printf("%d %d\n", (int)result[0], (int)result[1]);
    shutdown(result[0] == 500000.0 && result[1] == 1000000.0 ? 0 : 2);
}
