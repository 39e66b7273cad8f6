/* Random numbers and elementary functions, without a C library. */
#include "nas.h"

/* 46-bit products of 23-bit halves are exact in double precision; integers of 64 bits are simpler and as exact. */
static const uint64_t MASK = ((uint64_t)1 << 46) - 1;

/* The state as a number: below 1 with 46 digits behind the point, so that 1 plus it is exact too, and made without a conversion,
 * which is a dozen instructions on a machine of 32 bits. */
static double fraction(uint64_t state)
{
    union {
        uint64_t bits;
        double value;
    } word = {(uint64_t)0x3ff << 52 | state << 6};
    return word.value - 1;
}

double nas_random(double *x, double a)
{
    uint64_t next = (uint64_t)*x * (uint64_t)a & MASK;
    *x = (double)next;
    return fraction(next);
}

void nas_randoms(int count, double *x, double a, double *out)
{
    uint64_t state = (uint64_t)*x, factor = (uint64_t)a;
    for (int i = 0; i < count; i++) {
        state = state * factor & MASK;
        out[i] = fraction(state);
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
#elif defined(__sparc__)
    __asm__("fsqrtd %1, %0" : "=e"(x) : "e"(x));
    return x;
#else
#error "no square root on this machine"
#endif
}

static const double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;

/* The middles of 32 parts of [1, 2) and their logarithms, above the middle of all that of half the number. */
static const struct {
    double value, log;
} CENTRES[32] = {
    {1.015625, 0.015504186535965254},
    {1.046875, 0.045809536031294201},
    {1.078125, 0.075223421237587532},
    {1.109375, 0.10379679368164356},
    {1.140625, 0.13157635778871926},
    {1.171875, 0.15860503017663857},
    {1.203125, 0.18492233849401199},
    {1.234375, 0.21056476910734964},
    {1.265625, 0.23556607131276691},
    {1.296875, 0.25995752443692605},
    {1.328125, 0.28376817313064462},
    {1.359375, 0.30702503529491187},
    {1.390625, 0.32975328637246798},
    {1.421875, 0.3519764231571782},
    {1.453125, 0.37371640979358406},
    {1.484375, 0.39499380824086899},
    {1.515625, -0.27731928541623435},
    {1.546875, -0.25691041378502721},
    {1.578125, -0.23690974707835771},
    {1.609375, -0.21730127568998139},
    {1.640625, -0.19806991376209379},
    {1.671875, -0.179201429457711},
    {1.703125, -0.16068238169047347},
    {1.734375, -0.14250006260728304},
    {1.765625, -0.1246424452072766},
    {1.796875, -0.1070981355563671},
    {1.828125, -0.089856329121861048},
    {1.859375, -0.072906770808087787},
    {1.890625, -0.056239718322876081},
    {1.921875, -0.039845908547199674},
    {1.953125, -0.023716526617316044},
    {1.984375, -0.0078431774610258926},
};

/* ln(m 2^e) = e ln 2 + ln c + 2 atanh((m-c)/(m+c)), with 1 <= m < 2 and c the middle of the 32nd that m is in: the quotient is
 * at most 1/128, so that four terms of the series are more than a double holds. */
double nas_log(double x)
{
    union {
        double value;
        uint64_t bits;
    } word = {x};
    int exponent = (int)(word.bits >> 52) - 1023, part = (int)(word.bits >> 47 & 31);
    word.bits = (word.bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1023 << 52;
    double c = CENTRES[part].value;
    if (part > 15)
        exponent++;
    double s = (word.value - c) / (word.value + c), square = s * s;
    double sum = ((square * (2.0 / 7) + 2.0 / 5) * square + 2.0 / 3) * square;
    return exponent * LN2_HIGH + (CENTRES[part].log + (2 * s + (s * sum + exponent * LN2_LOW)));
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
