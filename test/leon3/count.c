/* Instructions of an empty call with 0 to 6 words, loop and arguments included, where one instruction takes a nanosecond
 * (--icount 0): the sum over many calls, so that the timer's tick of 25 makes no difference. */
#include "octo.h"

enum { CALLS = 10000 };

#define COUNT(call)                                                                                                                \
    do {                                                                                                                           \
        octo_timer timer;                                                                                                          \
        timer_start(&timer);                                                                                                       \
        for (int i = 0; i < CALLS; i++)                                                                                            \
            (void)call;                                                                                                            \
        octo_printf("%u ", (unsigned)((ticks_to_nanoseconds(timer_stop(&timer)) + CALLS / 2) / CALLS));                            \
    } while (0)

void main_ilet(claim_t claim)
{
    (void)claim;
    COUNT(empty_0());
    COUNT(empty_1(7));
    COUNT(empty_2(7, 7));
    COUNT(empty_3(7, 7, 7));
    COUNT(empty_4(7, 7, 7, 7));
    COUNT(empty_5(7, 7, 7, 7, 7));
    COUNT(empty_6(7, 7, 7, 7, 7, 7));
    octo_printf("\n");
    shutdown(0);
}
