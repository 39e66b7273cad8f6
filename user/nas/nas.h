/* What the NAS kernels are made on: ranks on the cores of all tiles, and messages between them. */
#ifndef NAS_H
#define NAS_H

#include "octo.h"

enum { RANKS_MOST = 32 };

/* One rank: an i-let on a core of its own. */
struct rank {
    int index, count;
    simple_signal sent;
};

/* A kernel: what a rank does. Returns 1 when the result is the published one (of rank 0 it counts), 0 when it is not. */
struct kernel {
    const char *name;
    /* The classes it knows. */
    const char *classes;
    int (*run)(struct rank *me, char class);
};
extern const struct kernel nas_kernel;

/* Receiving is announced before the other side may send: both sides of an exchange announce first, then send, then wait. */
void nas_post(struct rank *me, int from, void *buffer);
void nas_send(struct rank *me, int to, const void *buffer, size_t bytes);
void nas_wait(struct rank *me, int from);
/* Both directions with one other rank. */
void nas_exchange(struct rank *me, int with, const void *out, size_t out_bytes, void *in);

void nas_barrier(struct rank *me);
/* Sums over all ranks, in every rank the same to the last bit. */
void nas_sum(struct rank *me, double *values, int count);
void nas_sum_ints(struct rank *me, int32_t *values, int count);
/* Every rank's part, of the same size, to all; the own part is in its place already. */
void nas_gather(struct rank *me, void *all, size_t part_bytes);
/* Part i of `out` to rank i; part i of `in` from rank i. */
void nas_all_to_all(struct rank *me, const void *out, void *in, size_t part_bytes);

/* Memory of the calling rank; the application ends where there is none. */
void *nas_allocate(size_t bytes);

/* Rank 0 reports. `operations` in millions, `seconds` of the timed part. */
void nas_report(struct rank *me, char class, double seconds, double operations, int right);
double nas_seconds(void);

/* The generator of the specification: x' = a x mod 2^46, as a number in (0, 1). */
double nas_random(double *x, double a);
/* As many numbers, into an array. */
void nas_randoms(int count, double *x, double a, double *out);
/* x after `steps` steps. */
double nas_skip(double x, double a, uint64_t steps);

double nas_sqrt(double x);
double nas_log(double x);
double nas_exp(double x);
double nas_cos_turn(double turn); /* of 2 pi turn */
double nas_abs(double x);

#endif
