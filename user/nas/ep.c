/* EP: Gaussian deviates from pairs of random numbers, counted by the square ring they fall in. Ranks only meet at the end. */
#include "nas.h"

enum { BATCH_LOG = 16, BATCH = 1 << BATCH_LOG, RINGS = 10 };
static const double SEED = 271828183.0, FACTOR = 1220703125.0;

static int run(struct rank *me, char class)
{
    int log = class == 'S' ? 24 : 25;
    double want_x = class == 'S' ? -3.247834652034740e+3 : -2.863319731645753e+3;
    double want_y = class == 'S' ? -6.958407078382297e+3 : -6.320053679109499e+3;
    double totals[2 + RINGS] = {0};
    double *numbers = nas_allocate(2 * BATCH * sizeof *numbers);
    nas_barrier(me);
    double start = nas_seconds();
    int batches = 1 << (log - BATCH_LOG);
    for (int batch = me->index; batch < batches; batch += me->count) {
        double x = nas_skip(SEED, FACTOR, (uint64_t)batch * 2 * BATCH);
        nas_randoms(2 * BATCH, &x, FACTOR, numbers);
        for (int i = 0; i < BATCH; i++) {
            double a = 2 * numbers[2 * i] - 1, b = 2 * numbers[2 * i + 1] - 1, t = a * a + b * b;
            if (t > 1)
                continue;
            double scale = nas_sqrt(-2 * nas_log(t) / t);
            double gx = a * scale, gy = b * scale;
            double ax = nas_abs(gx), ay = nas_abs(gy);
            int ring = (int)(ax > ay ? ax : ay);
            totals[2 + ring] += 1;
            totals[0] += gx;
            totals[1] += gy;
        }
    }
    nas_sum(me, totals, 2 + RINGS);
    double seconds = nas_seconds() - start;
    int right = nas_abs((totals[0] - want_x) / want_x) <= 1e-8 && nas_abs((totals[1] - want_y) / want_y) <= 1e-8;
    if (me->index == 0)
        octo_printf("sums %.12e %.12e\n", totals[0], totals[1]);
    nas_report(me, class, seconds, (double)((uint64_t)1 << (log + 1)) / 1e6, right);
    mem_free(numbers);
    return right;
}

const struct kernel nas_kernel = {"EP", "SW", run};
