/* MG: four cycles of a multigrid method for Poisson's equation on a periodic cube. Ranks hold planes of z on the fine grids;
 * grids with fewer than two planes a rank are held whole by every rank. */
#include "nas.h"

enum { CYCLES = 4, LEVELS_MOST = 8, CHARGES = 10 };
static const double SEED = 314159265.0, FACTOR = 1220703125.0;

/* Weights by distance: itself, faces, edges, corners. */
static const double OPERATOR[4] = {-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0};
static const double SMOOTHER[4] = {-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0};
static const double RESTRICTION[4] = {0.5, 0.25, 0.125, 0.0625};

/* A grid of n^3 points: n + 2 points a row and rows a plane, `planes` + 2 planes, the outermost being the neighbours'. */
struct grid {
    int n, planes, whole;
    double *u, *r;
};

struct state {
    struct rank *me;
    int levels;
    struct grid grid[LEVELS_MOST + 1];
    double *v;
};

static size_t at(const struct grid *g, int z, int y, int x)
{
    return ((size_t)z * (g->n + 2) + y) * (g->n + 2) + x;
}

static size_t plane_bytes(const struct grid *g)
{
    return (size_t)(g->n + 2) * (g->n + 2) * sizeof(double);
}

static void copy_plane(const struct grid *g, double *to, const double *from)
{
    for (int i = 0; i < (g->n + 2) * (g->n + 2); i++)
        to[i] = from[i];
}

/* Fills in the borders: the own of each plane, then whole planes of the neighbours. */
static void borders(struct state *s, const struct grid *g, double *a)
{
    int n = g->n;
    for (int z = 1; z <= g->planes; z++) {
        for (int y = 1; y <= n; y++) {
            a[at(g, z, y, 0)] = a[at(g, z, y, n)];
            a[at(g, z, y, n + 1)] = a[at(g, z, y, 1)];
        }
        for (int x = 0; x <= n + 1; x++) {
            a[at(g, z, 0, x)] = a[at(g, z, n, x)];
            a[at(g, z, n + 1, x)] = a[at(g, z, 1, x)];
        }
    }
    double *first = &a[at(g, 1, 0, 0)], *last = &a[at(g, g->planes, 0, 0)];
    double *below = a, *above = &a[at(g, g->planes + 1, 0, 0)];
    if (g->whole || s->me->count == 1) {
        copy_plane(g, below, last);
        copy_plane(g, above, first);
        return;
    }
    int next = (s->me->index + 1) % s->me->count, before = (s->me->index + s->me->count - 1) % s->me->count;
    /* One direction, then the other: with two ranks both neighbours are one. */
    nas_post(s->me, before, below);
    nas_send(s->me, next, last, plane_bytes(g));
    nas_wait(s->me, before);
    nas_post(s->me, next, above);
    nas_send(s->me, before, first, plane_bytes(g));
    nas_wait(s->me, next);
}

/* The weighted sum of a point's 27 neighbours. */
static inline double stencil(const struct grid *g, const double *a, const double *weights, int z, int y, int x)
{
    double sums[4] = {0, 0, 0, 0};
    for (int dz = -1; dz <= 1; dz++)
        for (int dy = -1; dy <= 1; dy++) {
            const double *row = &a[at(g, z + dz, y + dy, x)];
            int far = (dz != 0) + (dy != 0);
            sums[far] += row[0];
            sums[far + 1] += row[-1] + row[1];
        }
    return weights[0] * sums[0] + weights[1] * sums[1] + weights[2] * sums[2] + weights[3] * sums[3];
}

/* r = v - A u; v and r may be one. */
static void residual(struct state *s, const struct grid *g, const double *v)
{
    for (int z = 1; z <= g->planes; z++)
        for (int y = 1; y <= g->n; y++)
            for (int x = 1; x <= g->n; x++)
                g->r[at(g, z, y, x)] = v[at(g, z, y, x)] - stencil(g, g->u, OPERATOR, z, y, x);
    borders(s, g, g->r);
}

/* u = u + S r */
static void smooth(struct state *s, const struct grid *g)
{
    for (int z = 1; z <= g->planes; z++)
        for (int y = 1; y <= g->n; y++)
            for (int x = 1; x <= g->n; x++)
                g->u[at(g, z, y, x)] += stencil(g, g->r, SMOOTHER, z, y, x);
    borders(s, g, g->u);
}

/* The residual on the next coarser grid: its point c is on the finer one's 2c (in numbers from 1). */
static void coarsen(struct state *s, const struct grid *fine, const struct grid *coarse)
{
    int own = fine->planes / 2, shift = coarse->whole && !fine->whole ? s->me->index * own : 0;
    for (int z = 1; z <= own; z++)
        for (int y = 1; y <= coarse->n; y++)
            for (int x = 1; x <= coarse->n; x++)
                coarse->r[at(coarse, z + shift, y, x)] = stencil(fine, fine->r, RESTRICTION, 2 * z, 2 * y, 2 * x);
    if (coarse->whole && !fine->whole)
        nas_gather(s->me, &coarse->r[at(coarse, 1, 0, 0)], (size_t)own * plane_bytes(coarse));
    borders(s, coarse, coarse->r);
}

/* Adds the coarser grid's correction, between its points by straight lines. */
static void refine(struct state *s, const struct grid *coarse, const struct grid *fine)
{
    int shift = coarse->whole && !fine->whole ? s->me->index * (fine->planes / 2) : 0;
    for (int z = 1; z <= fine->planes; z++)
        for (int y = 1; y <= fine->n; y++)
            for (int x = 1; x <= fine->n; x++) {
                /* A point of odd number is between two coarse ones. */
                int z0 = z / 2, y0 = y / 2, x0 = x / 2;
                double sum = 0;
                for (int dz = 0; dz <= z % 2; dz++)
                    for (int dy = 0; dy <= y % 2; dy++)
                        for (int dx = 0; dx <= x % 2; dx++)
                            sum += coarse->u[at(coarse, z0 + dz + shift, y0 + dy, x0 + dx)];
                fine->u[at(fine, z, y, x)] += sum / ((1 << (z % 2)) * (1 << (y % 2)) * (1 << (x % 2)));
            }
    borders(s, fine, fine->u);
}

static void clear(const struct grid *g, double *a)
{
    for (size_t i = 0; i < at(g, g->planes + 2, 0, 0); i++)
        a[i] = 0;
}

static void cycle(struct state *s)
{
    struct grid *top = &s->grid[s->levels];
    for (int level = s->levels; level > 1; level--)
        coarsen(s, &s->grid[level], &s->grid[level - 1]);
    clear(&s->grid[1], s->grid[1].u);
    smooth(s, &s->grid[1]);
    for (int level = 2; level < s->levels; level++) {
        struct grid *g = &s->grid[level];
        clear(g, g->u);
        refine(s, &s->grid[level - 1], g);
        residual(s, g, g->r);
        smooth(s, g);
    }
    refine(s, &s->grid[s->levels - 1], top);
    residual(s, top, s->v);
    smooth(s, top);
}

struct charge {
    double value;
    int64_t place;
};

/* The ten largest of a sequence, or with a sign the ten smallest. */
static void keep(struct charge *kept, double value, int64_t place)
{
    if (value <= kept[CHARGES - 1].value)
        return;
    int i = CHARGES - 1;
    for (; i > 0 && kept[i - 1].value < value; i--)
        kept[i] = kept[i - 1];
    kept[i] = (struct charge){value, place};
}

/* The right side: 1 where the ten largest of as many random numbers are, -1 where the ten smallest are, 0 elsewhere. Every rank
 * looks at all of them. */
static void make_charges(struct state *s)
{
    struct grid *g = &s->grid[s->levels];
    struct charge kept[2][CHARGES];
    for (int sign = 0; sign < 2; sign++)
        for (int i = 0; i < CHARGES; i++)
            kept[sign][i] = (struct charge){-2, 0};
    double x = SEED;
    int64_t count = (int64_t)g->n * g->n * g->n;
    for (int64_t place = 0; place < count; place++) {
        double value = nas_random(&x, FACTOR);
        keep(kept[0], value, place);
        keep(kept[1], -value, place);
    }
    clear(g, s->v);
    for (int sign = 0; sign < 2; sign++)
        for (int i = 0; i < CHARGES; i++) {
            int64_t place = kept[sign][i].place;
            int z = (int)(place / ((int64_t)g->n * g->n)) - (g->whole ? 0 : s->me->index * g->planes);
            if (z >= 0 && z < g->planes)
                s->v[at(g, z + 1, (int)(place / g->n % g->n) + 1, (int)(place % g->n) + 1)] = sign ? -1 : 1;
        }
    borders(s, g, s->v);
}

static double norm(struct state *s)
{
    struct grid *g = &s->grid[s->levels];
    double sum = 0;
    for (int z = 1; z <= g->planes; z++)
        for (int y = 1; y <= g->n; y++)
            for (int x = 1; x <= g->n; x++)
                sum += g->r[at(g, z, y, x)] * g->r[at(g, z, y, x)];
    nas_sum(s->me, &sum, 1);
    return nas_sqrt(sum / ((double)g->n * g->n * g->n));
}

static int run(struct rank *me, char class)
{
    struct state s = {.me = me, .levels = class == 'S' ? 5 : 7};
    double want = class == 'S' ? 0.5307707005734e-04 : 0.6467329375339e-05;
    if (me->count > 1 << (s.levels - 1))
        return 0;
    for (int level = 1; level <= s.levels; level++) {
        struct grid *g = &s.grid[level];
        g->n = 1 << level;
        g->whole = me->count == 1 || g->n / me->count < 2;
        g->planes = g->whole ? g->n : g->n / me->count;
        g->u = nas_allocate(at(g, g->planes + 2, 0, 0) * sizeof(double));
        g->r = nas_allocate(at(g, g->planes + 2, 0, 0) * sizeof(double));
    }
    struct grid *top = &s.grid[s.levels];
    s.v = nas_allocate(at(top, top->planes + 2, 0, 0) * sizeof(double));
    make_charges(&s);
    clear(top, top->u);
    residual(&s, top, s.v);
    nas_barrier(me);
    double start = nas_seconds();
    for (int i = 0; i < CYCLES; i++) {
        cycle(&s);
        residual(&s, top, s.v);
    }
    double seconds = nas_seconds() - start, result = norm(&s);
    int right = nas_abs((result - want) / want) <= 1e-8;
    if (me->index == 0)
        octo_printf("norm of the residual %.13e\n", result);
    nas_report(me, class, seconds, 58.0 * CYCLES * top->n * top->n * top->n / 1e6, right);
    return right;
}

const struct kernel nas_kernel = {"MG", "SW", run};
