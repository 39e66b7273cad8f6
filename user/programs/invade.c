/* A core invaded, infected, and given back, as in the thesis' test program (its Listing 5.1). */
#include "octo.h"

static void notify(void *signal)
{
    simple_signal_signal_and_exit(signal);
}

void main_ilet(claim_t own)
{
    (void)own;
    claim_t claim = claim_construct();
    if (invade_simple(claim, 1) == -1) {
        octo_printf("no core is free: try --cores 2\n");
        shutdown(1);
    }
    simple_signal done;
    simple_signal_init(&done, 1);
    simple_ilet code;
    simple_ilet_init(&code, notify, &done);
    infect(claim, &code, 1);
    simple_signal_wait(&done);
    int left = retreat(claim, 1);
    octo_printf("invaded, infected, signalled, retreated\n");
    shutdown(left ? 2 : 0);
}
