/* Random numbers and elementary functions, without a C library. */
#include "nas.h"

/* 46-bit products of 23-bit halves are exact in double precision; integers of 64 bits are simpler and as exact. */
static const uint64_t MASK = ((uint64_t)1 << 46) - 1;

double nas_random(double *x, double a)
{
    uint64_t next = (uint64_t)*x * (uint64_t)a & MASK;
    *x = (double)next;
    return (double)next * 0x1p-46;
}

void nas_randoms(int count, double *x, double a, double *out)
{
    uint64_t state = (uint64_t)*x, factor = (uint64_t)a;
    for (int i = 0; i < count; i++) {
        state = state * factor & MASK;
        out[i] = (double)state * 0x1p-46;
    }
    *x = (double)state;
}

double nas_skip(double x, double a, uint64_t steps)
{
    uint64_t state = (uint64_t)x, factor = (uint64_t)a;
    for (; steps; steps >>= 1) {
        if (steps & 1)
            state = state * factor & MASK;
        factor = factor * factor & MASK;
    }
    return (double)state;
}

double nas_abs(double x)
{
    return x < 0 ? -x : x;
}

double nas_sqrt(double x)
{
#if defined(__x86_64__)
    __asm__("sqrtsd %0, %0" : "+x"(x));
    return x;
#else
    if (x <= 0)
        return 0;
    /* Halve the exponent for a start; each step of Newton's doubles the digits. */
    union {
        double value;
        uint64_t bits;
    } guess = {x};
    guess.bits = (guess.bits >> 1) + ((uint64_t)0x3ff << 51);
    for (int i = 0; i < 6; i++)
        guess.value = 0.5 * (guess.value + x / guess.value);
    return guess.value;
#endif
}

static const double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;

/* ln(m 2^e) = e ln 2 + 2 atanh((m-1)/(m+1)), with m between sqrt(1/2) and sqrt(2). */
double nas_log(double x)
{
    union {
        double value;
        uint64_t bits;
    } word = {x};
    int exponent = (int)(word.bits >> 52) - 1023;
    word.bits = (word.bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1023 << 52;
    if (word.value > 1.4142135623730951) {
        word.value *= 0.5;
        exponent++;
    }
    double s = (word.value - 1) / (word.value + 1), square = s * s, sum = 0;
    for (int k = 21; k > 1; k -= 2)
        sum = (sum + 1.0 / k) * square;
    return exponent * LN2_HIGH + (2 * s + (2 * s * sum + exponent * LN2_LOW));
}

/* e^x = 2^n e^r with r at most half of ln 2, by its series. */
double nas_exp(double x)
{
    double turns = x / (LN2_HIGH + LN2_LOW);
    int n = (int)(turns < 0 ? turns - 0.5 : turns + 0.5);
    double r = (x - n * LN2_HIGH) - n * LN2_LOW, sum = 1;
    for (int k = 20; k > 0; k--)
        sum = 1 + sum * r / k;
    if (n < -1000)
        return 0;
    union {
        uint64_t bits;
        double value;
    } scale = {(uint64_t)(n + 1023) << 52};
    return sum * scale.value;
}

double nas_cos_turn(double turn)
{
    /* Into the first eighth of a turn, by symmetry. */
    turn = nas_abs(turn);
    turn -= (double)(uint64_t)turn;
    if (turn > 0.5)
        turn = 1 - turn;
    int negative = turn > 0.25;
    if (negative)
        turn = 0.5 - turn;
    int sine = turn > 0.125;
    double angle = (sine ? 0.25 - turn : turn) * 6.283185307179586476925;
    double square = angle * angle, sum = 0;
    for (int k = sine ? 21 : 20; k > 1; k -= 2)
        sum = (sum + 1) * -square / (k * (k - 1));
    sum = (sum + 1) * (sine ? angle : 1);
    return negative ? -sum : sum;
}
