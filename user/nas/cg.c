/* CG: the smallest eigenvalue of a sparse symmetric matrix by the power method, each step a system solved by conjugate
 * gradients. Ranks hold rows; each product needs all of the vector. */
#include "nas.h"

enum { STEPS = 25, ENTRIES = 16 };

struct problem {
    int size, nonzeros, rounds;
    double shift, zeta;
};

static const struct problem SMALL = {1400, 7, 15, 10.0, 8.5971775078648};
static const struct problem WORKSTATION = {7000, 8, 15, 12.0, 10.362595087124};
static const double SEED = 314159265.0, FACTOR = 1220703125.0, CONDITION = 0.1;

/* A sparse vector of the matrix' making. */
struct row {
    int count, column[ENTRIES];
    double value[ENTRIES];
};

/* The own rows of the matrix. */
struct matrix {
    int first, rows;
    int *start, *column;
    double *value;
};

/* Random positions and values, then the diagonal's place set to one half. */
static void make_row(struct row *row, const struct problem *problem, int index, int power, double *x)
{
    row->count = 0;
    while (row->count < problem->nonzeros) {
        double value = nas_random(x, FACTOR);
        int column = (int)(power * nas_random(x, FACTOR));
        int known = column >= problem->size;
        for (int i = 0; i < row->count && !known; i++)
            known = row->column[i] == column;
        if (known)
            continue;
        row->column[row->count] = column;
        row->value[row->count++] = value;
    }
    for (int i = 0; i < row->count; i++)
        if (row->column[i] == index) {
            row->value[i] = 0.5;
            return;
        }
    row->column[row->count] = index;
    row->value[row->count++] = 0.5;
}

/* The matrix is the weighted sum of the vectors' outer products, with the shift on its diagonal. */
static void make_matrix(struct matrix *matrix, const struct problem *problem, int first, int rows)
{
    int power = 1, n = problem->size;
    while (power < n)
        power *= 2;
    double x = SEED;
    nas_random(&x, FACTOR);
    struct row *vectors = nas_allocate((size_t)n * sizeof *vectors);
    for (int i = 0; i < n; i++)
        make_row(&vectors[i], problem, i, power, &x);

    *matrix = (struct matrix){first, rows, nas_allocate((size_t)(rows + 1) * sizeof(int)), NULL, NULL};
    int *fill = nas_allocate((size_t)(rows + 1) * sizeof *fill);
    for (int i = 0; i <= rows; i++)
        matrix->start[i] = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < vectors[i].count; k++) {
            int at = vectors[i].column[k] - first;
            if (at >= 0 && at < rows)
                matrix->start[at + 1] += vectors[i].count;
        }
    for (int i = 0; i < rows; i++)
        matrix->start[i + 1] += matrix->start[i];
    int entries = matrix->start[rows];
    matrix->column = nas_allocate((size_t)(entries + 1) * sizeof(int));
    matrix->value = nas_allocate((size_t)(entries + 1) * sizeof(double));
    /* How often a column has been met in a row is found by its last place there. */
    for (int i = 0; i < rows; i++)
        fill[i] = matrix->start[i];
    double weight = 1, ratio = nas_exp(nas_log(CONDITION) / n);
    for (int i = 0; i < n; i++) {
        struct row *v = &vectors[i];
        for (int k = 0; k < v->count; k++) {
            int at = v->column[k] - first;
            if (at < 0 || at >= rows)
                continue;
            double scale = weight * v->value[k];
            for (int m = 0; m < v->count; m++) {
                double add = v->value[m] * scale;
                if (v->column[m] == v->column[k] && v->column[k] == i)
                    add = add + CONDITION - problem->shift;
                int place = matrix->start[at];
                while (place < fill[at] && matrix->column[place] != v->column[m])
                    place++;
                if (place == fill[at]) {
                    matrix->column[place] = v->column[m];
                    matrix->value[place] = 0;
                    fill[at]++;
                }
                matrix->value[place] += add;
            }
        }
        weight *= ratio;
    }
    /* Close the gaps that entries met twice have left. */
    int end = 0;
    for (int i = 0; i < rows; i++) {
        int from = matrix->start[i];
        matrix->start[i] = end;
        for (int place = from; place < fill[i]; place++, end++) {
            matrix->column[end] = matrix->column[place];
            matrix->value[end] = matrix->value[place];
        }
    }
    matrix->start[rows] = end;
    mem_free(fill);
    mem_free(vectors);
}

struct state {
    struct rank *me;
    struct matrix matrix;
    int n, part;
    /* The whole of one vector, in parts of equal size, and the own rows of the others. */
    double *all, *x, *z, *p, *q, *r;
};

static double dot(struct state *s, const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < s->matrix.rows; i++)
        sum += a[i] * b[i];
    nas_sum(s->me, &sum, 1);
    return sum;
}

static void multiply(struct state *s, const double *v, double *out)
{
    double *own = s->all + (size_t)s->me->index * s->part;
    for (int i = 0; i < s->matrix.rows; i++)
        own[i] = v[i];
    nas_gather(s->me, s->all, (size_t)s->part * sizeof *s->all);
    for (int i = 0; i < s->matrix.rows; i++) {
        double sum = 0;
        for (int k = s->matrix.start[i]; k < s->matrix.start[i + 1]; k++)
            sum += s->matrix.value[k] * s->all[s->matrix.column[k]];
        out[i] = sum;
    }
}

static void solve(struct state *s)
{
    int rows = s->matrix.rows;
    for (int i = 0; i < rows; i++) {
        s->z[i] = 0;
        s->r[i] = s->p[i] = s->x[i];
    }
    double rho = dot(s, s->r, s->r);
    for (int step = 0; step < STEPS; step++) {
        multiply(s, s->p, s->q);
        double alpha = rho / dot(s, s->p, s->q), before = rho;
        for (int i = 0; i < rows; i++) {
            s->z[i] += alpha * s->p[i];
            s->r[i] -= alpha * s->q[i];
        }
        rho = dot(s, s->r, s->r);
        double beta = rho / before;
        for (int i = 0; i < rows; i++)
            s->p[i] = s->r[i] + beta * s->p[i];
    }
}

static double round_once(struct state *s, double shift)
{
    solve(s);
    double xz = dot(s, s->x, s->z), norm = 1 / nas_sqrt(dot(s, s->z, s->z));
    for (int i = 0; i < s->matrix.rows; i++)
        s->x[i] = norm * s->z[i];
    return shift + 1 / xz;
}

static int run(struct rank *me, char class)
{
    const struct problem *problem = class == 'S' ? &SMALL : &WORKSTATION;
    int n = problem->size, part = (n + me->count - 1) / me->count, first = me->index * part;
    int rows = first >= n ? 0 : n - first < part ? n - first : part;
    struct state s = {.me = me, .n = n, .part = part};
    make_matrix(&s.matrix, problem, first, rows);
    s.all = nas_allocate((size_t)part * me->count * sizeof(double));
    double **vectors[] = {&s.x, &s.z, &s.p, &s.q, &s.r};
    for (int i = 0; i < 5; i++)
        *vectors[i] = nas_allocate((size_t)(part + 1) * sizeof(double));
    for (int i = 0; i < rows; i++)
        s.x[i] = 1;
    /* Once, not timed, to touch everything. */
    round_once(&s, problem->shift);
    for (int i = 0; i < rows; i++)
        s.x[i] = 1;
    nas_barrier(me);
    double start = nas_seconds(), zeta = 0;
    for (int round = 0; round < problem->rounds; round++)
        zeta = round_once(&s, problem->shift);
    double seconds = nas_seconds() - start;
    int right = nas_abs(zeta - problem->zeta) <= 1e-10;
    if (me->index == 0)
        octo_printf("zeta %.13f\n", zeta);
    int nz = problem->nonzeros;
    double operations = 2.0 * problem->rounds * n *
                        (3.0 + nz * (nz + 1.0) + 25.0 * (5.0 + nz * (nz + 1.0)) + 3.0) / 1e6;
    nas_report(me, class, seconds, operations, right);
    return right;
}

const struct kernel nas_kernel = {"CG", "SW", run};
