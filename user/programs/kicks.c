/* A core that makes calls without pause while another tile's messages interrupt it: no call is lost. */
#include "octo.h"

enum { MESSAGES = 3000 };

/* On tile 1. */
static volatile octo_word last_message;
static simple_signal begun, answered;
static octo_word calls;

static void answer(void *count, void *place)
{
    *(octo_word *)place = (octo_word)count;
    simple_signal_signal(&answered);
}

static void notice(void *signal)
{
    simple_signal_signal(signal);
}

static void busy(void *place, void *begins)
{
    simple_ilet hello;
    simple_ilet_init(&hello, notice, begins);
    dispatch_claim_send_reply(&hello);
    octo_word count = 0;
    for (; last_message < MESSAGES; count++) {
        octo_word result = empty_6(count, 1, 2, 3, 4, 5);
        if (result != count + 70) {
            octo_printf("call %lu answered %lu\n", (unsigned long)count, (unsigned long)result);
            shutdown(1);
        }
    }
    simple_ilet back;
    dual_ilet_init(&back, answer, (void *)count, place);
    dispatch_claim_send_reply(&back);
}

void main_ilet(claim_t claim)
{
    (void)claim;
    invade_future future;
    if (get_compute_tile_count() < 2) {
        octo_printf("it takes two tiles\n");
        shutdown(2);
    }
    proxy_invade(1, &future, 1);
    proxy_claim_t proxy = invade_future_force(&future);
    simple_ilet ilet;
    simple_signal_init(&answered, 1);
    simple_signal_init(&begun, 1);
    dual_ilet_init(&ilet, busy, &calls, &begun);
    proxy_infect(proxy, &ilet, 1);
    simple_signal_wait(&begun);
    for (octo_word message = 1; message <= MESSAGES; message++) {
        octo_word value = message;
        proxy_push_dma(proxy, &value, (void *)&last_message, sizeof value, NULL, NULL);
        /* Time for the other to be in the midst of something; first more, so that it is when it has only begun. */
        for (volatile int i = 0; i < (int)(message < 5 ? 1000000 : message % 1000); i++)
            ;
    }
    simple_signal_wait(&answered);
    octo_printf("%d messages interrupted %s calls\n", MESSAGES, calls ? "some" : "no");
    shutdown(0);
}
