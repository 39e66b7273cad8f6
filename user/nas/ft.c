/* FT: a partial differential equation solved in the space of frequencies: one three-dimensional Fourier transform, then for each
 * step a factor a frequency and the transform back. Ranks hold planes of z; for the transform along z they hold rows of y. */
#include "nas.h"

enum { STEPS = 6, LONGEST = 128 };

struct problem {
    int nx, ny, nz;
    double sums[STEPS][2];
};

static const struct problem SMALL = {64,
                                     64,
                                     64,
                                     {{5.546087004964e+02, 4.845363331978e+02},
                                      {5.546385409189e+02, 4.865304269511e+02},
                                      {5.546148406171e+02, 4.883910722336e+02},
                                      {5.545423607415e+02, 4.901273169046e+02},
                                      {5.544255039624e+02, 4.917475857993e+02},
                                      {5.542683411902e+02, 4.932597244941e+02}}};
static const struct problem WORKSTATION = {128,
                                           128,
                                           32,
                                           {{5.673612178944e+02, 5.293246849175e+02},
                                            {5.631436885271e+02, 5.282149986629e+02},
                                            {5.594024089970e+02, 5.270996558037e+02},
                                            {5.560698047020e+02, 5.260027904925e+02},
                                            {5.530898991250e+02, 5.249400845633e+02},
                                            {5.504159734538e+02, 5.239212247086e+02}}};
static const double SEED = 314159265.0, FACTOR = 1220703125.0, ALPHA = 1e-6, PI = 3.141592653589793238;

typedef struct {
    double re, im;
} complex;

/* The n-th roots of unity, the first half. */
struct roots {
    int n;
    complex root[LONGEST / 2];
};

static void make_roots(struct roots *roots, int n)
{
    roots->n = n;
    for (int k = 0; k < n / 2; k++)
        roots->root[k] = (complex){nas_cos_turn((double)k / n), nas_cos_turn((double)k / n - 0.25)};
}

/* One transform in place, by Stockham's method; `direction` 1 forward, -1 back. Nothing is scaled. */
static void transform(const struct roots *roots, int direction, complex *line)
{
    complex other[LONGEST], *from = line, *to = other;
    int n = roots->n;
    for (int half = n / 2, step = 1; half >= 1; half /= 2, step *= 2) {
        for (int p = 0; p < half; p++) {
            complex w = roots->root[p * step];
            w.im *= direction;
            for (int q = 0; q < step; q++) {
                complex a = from[q + step * p], b = from[q + step * (p + half)];
                complex d = {a.re - b.re, a.im - b.im};
                to[q + step * 2 * p] = (complex){a.re + b.re, a.im + b.im};
                to[q + step * (2 * p + 1)] = (complex){d.re * w.re - d.im * w.im, d.re * w.im + d.im * w.re};
            }
        }
        complex *swap = from;
        from = to;
        to = swap;
    }
    if (from != line)
        for (int i = 0; i < n; i++)
            line[i] = from[i];
}

struct state {
    struct rank *me;
    int nx, ny, nz, planes, rows;
    struct roots x, y, z;
    complex *in, *out; /* what ranks exchange */
};

/* x and y, for the own planes of `a`. */
static void transform_planes(struct state *s, int direction, complex *a)
{
    complex line[LONGEST];
    for (int z = 0; z < s->planes; z++) {
        complex *plane = a + (size_t)z * s->ny * s->nx;
        for (int y = 0; y < s->ny; y++)
            transform(&s->x, direction, plane + y * s->nx);
        for (int x = 0; x < s->nx; x++) {
            for (int y = 0; y < s->ny; y++)
                line[y] = plane[y * s->nx + x];
            transform(&s->y, direction, line);
            for (int y = 0; y < s->ny; y++)
                plane[y * s->nx + x] = line[y];
        }
    }
}

static void transform_rows(struct state *s, int direction, complex *b)
{
    for (int i = 0; i < s->rows * s->nx; i++)
        transform(&s->z, direction, b + (size_t)i * s->nz);
}

/* From planes a[z][y][x] to rows b[y][x][z], or back. */
static void turn(struct state *s, complex *a, complex *b, int to_rows)
{
    size_t part = (size_t)s->planes * s->rows * s->nx;
    for (int pass = 0; pass < 2; pass++) {
        /* First what this rank has is packed, then what it got is unpacked. */
        int planes = to_rows ? pass == 0 : pass == 1;
        complex *buffer = pass == 0 ? s->out : s->in;
        for (int rank = 0; rank < s->me->count; rank++)
            for (int z = 0; z < s->planes; z++)
                for (int y = 0; y < s->rows; y++)
                    for (int x = 0; x < s->nx; x++) {
                        complex *packed = &buffer[rank * part + ((size_t)z * s->rows + y) * s->nx + x];
                        complex *own = planes ? &a[((size_t)z * s->ny + rank * s->rows + y) * s->nx + x]
                                              : &b[((size_t)y * s->nx + x) * s->nz + rank * s->planes + z];
                        if (pass == 0)
                            *packed = *own;
                        else
                            *own = *packed;
                    }
        if (pass == 0)
            nas_all_to_all(s->me, s->out, s->in, part * sizeof(complex));
    }
}

/* A frequency's number, negative in the upper half. */
static int frequency(int index, int n)
{
    return index >= n / 2 ? index - n : index;
}

static int run(struct rank *me, char class)
{
    const struct problem *problem = class == 'S' ? &SMALL : &WORKSTATION;
    int nx = problem->nx, ny = problem->ny, nz = problem->nz;
    if (me->count > nz || me->count > ny)
        return 0;
    struct state s = {.me = me, .nx = nx, .ny = ny, .nz = nz, .planes = nz / me->count, .rows = ny / me->count};
    size_t own = (size_t)s.planes * ny * nx, total = (size_t)nx * ny * nz;
    make_roots(&s.x, nx);
    make_roots(&s.y, ny);
    make_roots(&s.z, nz);
    s.in = nas_allocate(own * sizeof(complex));
    s.out = nas_allocate(own * sizeof(complex));
    complex *planes = nas_allocate(own * sizeof(complex)), *spectrum = nas_allocate(own * sizeof(complex));
    complex *rows = nas_allocate(own * sizeof(complex));
    double *factor = nas_allocate(own * sizeof *factor);
    nas_barrier(me);
    double start = nas_seconds(), seed = nas_skip(SEED, FACTOR, (uint64_t)me->index * own * 2);
    nas_randoms((int)(own * 2), &seed, FACTOR, &planes->re);
    for (int y = 0; y < s.rows; y++)
        for (int x = 0; x < nx; x++)
            for (int z = 0; z < nz; z++) {
                int fx = frequency(x, nx), fy = frequency(me->index * s.rows + y, ny), fz = frequency(z, nz);
                factor[((size_t)y * nx + x) * nz + z] = nas_exp(-4 * ALPHA * PI * PI * (fx * fx + fy * fy + fz * fz));
            }
    transform_planes(&s, 1, planes);
    turn(&s, planes, spectrum, 1);
    transform_rows(&s, 1, spectrum);
    int right = 1;
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < own; i++) {
            spectrum[i].re *= factor[i];
            spectrum[i].im *= factor[i];
            rows[i] = spectrum[i];
        }
        transform_rows(&s, -1, rows);
        turn(&s, planes, rows, 0);
        transform_planes(&s, -1, planes);
        double sum[2] = {0, 0};
        for (int j = 1; j <= 1024; j++) {
            int x = j % nx, y = 3 * j % ny, z = 5 * j % nz - me->index * s.planes;
            if (z < 0 || z >= s.planes)
                continue;
            sum[0] += planes[((size_t)z * ny + y) * nx + x].re;
            sum[1] += planes[((size_t)z * ny + y) * nx + x].im;
        }
        nas_sum(me, sum, 2);
        for (int part = 0; part < 2; part++) {
            sum[part] /= (double)total;
            if (!(nas_abs((sum[part] - problem->sums[step][part]) / problem->sums[step][part]) <= 1e-12))
                right = 0;
        }
        if (me->index == 0)
            octo_printf("step %d: %.10f %.10f\n", step + 1, sum[0], sum[1]);
    }
    double seconds = nas_seconds() - start, log = nas_log((double)total) / nas_log(2);
    nas_report(me, class, seconds, (double)total * (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * STEPS) / 1e6, right);
    return right;
}

const struct kernel nas_kernel = {"FT", "SW", run};
