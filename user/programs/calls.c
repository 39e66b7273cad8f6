/* What calls cost, measured as the thesis does: 100000 runs of each, of which the last 1000 count. One line a row: its name and
 * the ticks of each run that counts. Rows of the stopwatch itself come first: who reads this subtracts them. An argument is the
 * number of runs. */
#include "octo.h"

enum { COUNTED = 1000, ROWS_MOST = 24 };

static uint32_t samples[ROWS_MOST][COUNTED];
static const char *names[ROWS_MOST];
static int rows;
static int runs = 100000;

static volatile octo_word sink;

/* One row: a statement between start and stop of the stopwatch. */
#define MEASURE(name, statement)                                                                                                   \
    do {                                                                                                                           \
        names[rows] = name;                                                                                                        \
        for (int run = 0; run < runs; run++) {                                                                                     \
            octo_timer timer;                                                                                                      \
            timer_start(&timer);                                                                                                   \
            statement;                                                                                                             \
            uint64_t ticks = timer_stop(&timer);                                                                                   \
            samples[rows][run % COUNTED] = ticks > 0xffffffffu ? 0xffffffffu : (uint32_t)ticks;                                    \
        }                                                                                                                          \
        rows++;                                                                                                                    \
    } while (0)

static void print_row(int row)
{
    octo_printf("row %s", names[row]);
    for (int i = 0; i < COUNTED && i < runs; i++)
        octo_printf(" %u", samples[row][i]);
    octo_printf("\n");
}

static void notify(void *signal)
{
    simple_signal_signal_and_exit(signal);
}

/* The thesis' Listing 5.1, each of its calls by itself and the whole. */
static void listing(void)
{
    enum { INVADE, INFECT, WAIT, RETREAT, WHOLE, PARTS };
    static const char *const part_names[PARTS] = {"invade", "infect", "wait", "retreat", "listing-5.1"};
    for (int part = 0; part < PARTS; part++)
        names[rows + part] = part_names[part];
    for (int run = 0; run < runs; run++) {
        uint64_t at[PARTS];
        simple_signal done;
        simple_ilet code;
        octo_timer timer, whole;
        timer_start(&whole);
        claim_t claim = claim_construct();
        timer_start(&timer);
        int invaded = invade_simple(claim, 1);
        at[INVADE] = timer_stop(&timer);
        if (invaded == -1) {
            octo_printf("skip listing no second core\n");
            return;
        }
        simple_signal_init(&done, 1);
        simple_ilet_init(&code, notify, &done);
        timer_start(&timer);
        infect(claim, &code, 1);
        at[INFECT] = timer_stop(&timer);
        timer_start(&timer);
        simple_signal_wait(&done);
        at[WAIT] = timer_stop(&timer);
        timer_start(&timer);
        int left = retreat(claim, 1);
        at[RETREAT] = timer_stop(&timer);
        at[WHOLE] = timer_stop(&whole);
        if (left)
            shutdown(2);
        for (int part = 0; part < PARTS; part++)
            samples[rows + part][run % COUNTED] = (uint32_t)at[part];
    }
    rows += PARTS;
}

void main_ilet(claim_t claim)
{
    (void)claim;
    const char *argument = octo_argument(1);
    if (argument)
        for (runs = 0; *argument >= '0' && *argument <= '9'; argument++)
            runs = runs * 10 + *argument - '0';
    if (runs < 1)
        shutdown(1);
    static simple_ilet ilet;
    static simple_signal signal;
    MEASURE("stopwatch", (void)0);
    MEASURE("empty-0", sink = (octo_word)empty_0());
    MEASURE("empty-1", sink = (octo_word)empty_1(1));
    MEASURE("empty-2", sink = (octo_word)empty_2(1, 2));
    MEASURE("empty-3", sink = (octo_word)empty_3(1, 2, 3));
    MEASURE("empty-4", sink = (octo_word)empty_4(1, 2, 3, 4));
    MEASURE("empty-5", sink = (octo_word)empty_5(1, 2, 3, 4, 5));
    MEASURE("empty-6", sink = empty_6(7, 7, 7, 7, 7, 7));
    MEASURE("get_cpu_id", sink = get_cpu_id());
    MEASURE("get_tile_id", sink = get_tile_id());
    MEASURE("get_compute_tile_count", sink = get_compute_tile_count());
    MEASURE("simple_ilet_init", simple_ilet_init(&ilet, notify, &signal));
    MEASURE("simple_signal_init", simple_signal_init(&signal, 1));
    listing();
    /* What a tick is. */
    octo_printf("tick %llu\n", (unsigned long long)ticks_to_nanoseconds(1000000000));
    for (int row = 0; row < rows; row++)
        print_row(row);
    shutdown(0);
}
