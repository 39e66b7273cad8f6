/* What the tests share: a line for each thing that is checked. */
#ifndef CHECK_H
#define CHECK_H

#include <pal.h>

static int failures;

static void check_at(bool holds, const char *what, int line)
{
    if (holds) {
        pal_printf("ok %s\n", what);
    } else {
        pal_printf("FAILED %s (line %d, last error %lu)\n", what, line, pal_errno());
        failures++;
    }
}

#define check(holds, what) check_at(holds, what, __LINE__)

/* Whether the last call failed with an error. */
#define failed_with(call, error) (!(call) && pal_errno() == (error))

#define PAGE 4096UL
#define RW (PAL_PROT_READ | PAL_PROT_WRITE)

static inline bool same(const char *a, const char *b, PAL_NUM n)
{
    for (PAL_NUM i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static inline PAL_NUM length(const char *s)
{
    PAL_NUM n = 0;
    while (s[n])
        n++;
    return n;
}

#endif
