/* IS: ranks of integer keys, ten times with a small change in between, then the sorted keys. */
#include "nas.h"

enum { ROUNDS = 10, TESTS = 5 };

struct problem {
    int keys_log, most_log;
    /* Which keys are looked at, and what their ranks are at first. */
    int32_t index[TESTS], rank[TESTS];
};

static const struct problem SMALL = {16, 11, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}};
static const struct problem WORKSTATION = {
    20, 16, {357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}};

/* How far the rank of test key `which` is to have moved by this round. */
static int32_t expected(const struct problem *problem, char class, int which, int round)
{
    if (class == 'S')
        return problem->rank[which] + (which <= 2 ? round : -round);
    return problem->rank[which] + (which < 2 ? round - 2 : -round);
}

/* Keys of this rank's range, from all, in order: whether they are sorted, and as many as there are. */
static int sorted(struct rank *me, const struct problem *problem, const int32_t *keys, int own)
{
    int most = 1 << problem->most_log, range = most / me->count;
    int32_t counts[RANKS_MOST] = {0}, theirs[RANKS_MOST];
    for (int i = 0; i < own; i++)
        counts[keys[i] / range]++;
    nas_all_to_all(me, counts, theirs, sizeof *counts);
    int32_t *out = nas_allocate((size_t)own * sizeof *out + 64), at[RANKS_MOST], total = 0;
    for (int to = 0, start = 0; to < me->count; start += counts[to++])
        at[to] = start;
    for (int from = 0; from < me->count; from++)
        total += theirs[from];
    int32_t fill[RANKS_MOST];
    for (int to = 0; to < me->count; to++)
        fill[to] = at[to];
    for (int i = 0; i < own; i++)
        out[fill[keys[i] / range]++] = keys[i];
    int32_t *in = nas_allocate((size_t)total * sizeof *in + 64), place = 0;
    for (int step = 0; step < me->count; step++) {
        int with = me->index ^ step;
        if (step == 0)
            for (int i = 0; i < counts[with]; i++)
                in[place + i] = out[at[with] + i];
        else
            nas_exchange(me, with, out + at[with], (size_t)counts[with] * sizeof *out, in + place);
        place += theirs[with];
    }
    /* Counting sort of the range, then a look at it. */
    int32_t *histogram = nas_allocate((size_t)range * sizeof *histogram);
    for (int i = 0; i < range; i++)
        histogram[i] = 0;
    int32_t wrong = 0, base = me->index * range;
    for (int i = 0; i < total; i++) {
        if (in[i] < base || in[i] >= base + range)
            wrong++;
        else
            histogram[in[i] - base]++;
    }
    int32_t end = 0;
    for (int key = 0; key < range; key++)
        for (int n = 0; n < histogram[key]; n++)
            in[end++] = base + key;
    for (int i = 1; i < end; i++)
        wrong += in[i - 1] > in[i];
    int32_t sums[2] = {wrong, end};
    nas_sum_ints(me, sums, 2);
    mem_free(out);
    mem_free(in);
    mem_free(histogram);
    return sums[0] == 0 && sums[1] == 1 << problem->keys_log;
}

static int run(struct rank *me, char class)
{
    const struct problem *problem = class == 'S' ? &SMALL : &WORKSTATION;
    int keys_all = 1 << problem->keys_log, most = 1 << problem->most_log, own = keys_all / me->count, first = me->index * own;
    int32_t *keys = nas_allocate((size_t)own * sizeof *keys), *histogram = nas_allocate((size_t)most * sizeof *histogram);
    /* Four numbers a key. */
    double x = nas_skip(314159265.0, 1220703125.0, (uint64_t)first * 4);
    for (int i = 0; i < own; i++) {
        double sum = 0;
        for (int n = 0; n < 4; n++)
            sum += nas_random(&x, 1220703125.0);
        keys[i] = (int32_t)(sum * (most / 4));
    }
    int right = 1;
    double start = 0;
    /* The first round is not timed. */
    for (int round = 0; round <= ROUNDS; round++) {
        int change = round == 0 ? 1 : round;
        if (round == 1) {
            nas_barrier(me);
            start = nas_seconds();
        }
        if (change >= first && change < first + own)
            keys[change - first] = change;
        if (change + ROUNDS >= first && change + ROUNDS < first + own)
            keys[change + ROUNDS - first] = most - change;
        int32_t looked[TESTS] = {0};
        for (int which = 0; which < TESTS; which++)
            if (problem->index[which] >= first && problem->index[which] < first + own)
                looked[which] = keys[problem->index[which] - first];
        nas_sum_ints(me, looked, TESTS);
        for (int i = 0; i < most; i++)
            histogram[i] = 0;
        for (int i = 0; i < own; i++)
            histogram[keys[i]]++;
        nas_sum_ints(me, histogram, most);
        for (int i = 1; i < most; i++)
            histogram[i] += histogram[i - 1];
        for (int which = 0; which < TESTS && round > 0; which++) {
            int32_t key = looked[which];
            if (key <= 0 || histogram[key - 1] != expected(problem, class, which, round))
                right = 0;
        }
    }
    double seconds = nas_seconds() - start;
    right &= sorted(me, problem, keys, own);
    nas_report(me, class, seconds, (double)ROUNDS * keys_all / 1e6, right);
    mem_free(keys);
    mem_free(histogram);
    return right;
}

const struct kernel nas_kernel = {"IS", "SW", run};
