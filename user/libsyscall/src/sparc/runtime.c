/* What the compiler calls on SPARC v8 for lack of an instruction: 64-bit division and shifts, conversions, atomics. */
#include <stdint.h>

/* Shift and subtract: these are for times and numbers to print, not for inner loops. */
static uint64_t divide(uint64_t a, uint64_t b, uint64_t *rest)
{
    if ((a >> 32) == 0 && (b >> 32) == 0) {
        uint32_t low = (uint32_t)a, by = (uint32_t)b;
        *rest = low % by;
        return low / by;
    }
    uint64_t quotient = 0, left = 0;
    for (int bit = 63; bit >= 0; bit--) {
        left = left << 1 | (a >> bit & 1);
        if (left >= b) {
            left -= b;
            quotient |= (uint64_t)1 << bit;
        }
    }
    *rest = left;
    return quotient;
}

uint64_t __udivdi3(uint64_t a, uint64_t b)
{
    uint64_t rest;
    return divide(a, b, &rest);
}

uint64_t __umoddi3(uint64_t a, uint64_t b)
{
    uint64_t rest;
    divide(a, b, &rest);
    return rest;
}

static uint64_t size(int64_t a)
{
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

int64_t __divdi3(int64_t a, int64_t b)
{
    uint64_t rest, quotient = divide(size(a), size(b), &rest);
    return (int64_t)((a < 0) != (b < 0) ? 0 - quotient : quotient);
}

int64_t __moddi3(int64_t a, int64_t b)
{
    uint64_t rest;
    divide(size(a), size(b), &rest);
    return (int64_t)(a < 0 ? 0 - rest : rest);
}

union halves {
    uint64_t whole;
    struct {
        uint32_t high, low;
    } half;
};

uint64_t __ashldi3(uint64_t a, int by)
{
    union halves from = {a}, to;
    if (by == 0)
        return a;
    to.half.high = by >= 32 ? from.half.low << (by & 31) : from.half.high << by | from.half.low >> (32 - by);
    to.half.low = by >= 32 ? 0 : from.half.low << by;
    return to.whole;
}

uint64_t __lshrdi3(uint64_t a, int by)
{
    union halves from = {a}, to;
    if (by == 0)
        return a;
    to.half.low = by >= 32 ? from.half.high >> (by & 31) : from.half.low >> by | from.half.high << (32 - by);
    to.half.high = by >= 32 ? 0 : from.half.high >> by;
    return to.whole;
}

int64_t __ashrdi3(int64_t a, int by)
{
    uint64_t bits = __lshrdi3((uint64_t)a, by);
    return (int64_t)(a < 0 && by ? bits | ~__lshrdi3(~(uint64_t)0, by) : bits);
}

int64_t __muldi3(int64_t a, int64_t b)
{
    union halves x = {(uint64_t)a}, y = {(uint64_t)b}, product;
    uint32_t xl = x.half.low & 0xffff, xh = x.half.low >> 16, yl = y.half.low & 0xffff, yh = y.half.low >> 16;
    uint32_t low = xl * yl, middle = xh * yl + (low >> 16), cross = xl * yh + (middle & 0xffff);
    product.half.low = cross << 16 | (low & 0xffff);
    product.half.high = xh * yh + (middle >> 16) + (cross >> 16) + x.half.high * y.half.low + x.half.low * y.half.high;
    return (int64_t)product.whole;
}

#define TWO_32 4294967296.0

double __floatundidf(uint64_t a)
{
    union halves from = {a};
    return (double)from.half.high * TWO_32 + (double)from.half.low;
}

double __floatdidf(int64_t a)
{
    return a < 0 ? -__floatundidf(size(a)) : __floatundidf((uint64_t)a);
}

uint64_t __fixunsdfdi(double a)
{
    if (a < 1)
        return 0;
    union halves to;
    to.half.high = (uint32_t)(a / TWO_32);
    to.half.low = (uint32_t)(a - (double)to.half.high * TWO_32);
    return to.whole;
}

int64_t __fixdfdi(double a)
{
    return a < 0 ? -(int64_t)__fixunsdfdi(-a) : (int64_t)__fixunsdfdi(a);
}

/* Compare and swap of the LEON3, in the user's data space. */
static uint32_t swap_if(volatile uint32_t *word, uint32_t old, uint32_t new)
{
    __asm__ volatile("casa [%1] 0xa, %2, %0" : "+r"(new) : "r"(word), "r"(old) : "memory");
    return new;
}

uint8_t __atomic_exchange_1(volatile void *at, uint8_t value, int order)
{
    (void)order;
    volatile uint32_t *word = (volatile uint32_t *)((uintptr_t)at & ~(uintptr_t)3);
    unsigned shift = 24 - 8 * ((uintptr_t)at & 3);
    uint32_t old, found = *word;
    do {
        old = found;
        found = swap_if(word, old, (old & ~(0xffu << shift)) | (uint32_t)value << shift);
    } while (found != old);
    return (uint8_t)(old >> shift);
}

void __atomic_store_1(volatile void *at, uint8_t value, int order)
{
    (void)order;
    __asm__ volatile("" : : : "memory");
    *(volatile uint8_t *)at = value;
}

uint8_t __atomic_load_1(const volatile void *at, int order)
{
    (void)order;
    uint8_t value = *(const volatile uint8_t *)at;
    __asm__ volatile("" : : : "memory");
    return value;
}

uint32_t __atomic_load_4(const volatile void *at, int order)
{
    (void)order;
    uint32_t value = *(const volatile uint32_t *)at;
    __asm__ volatile("" : : : "memory");
    return value;
}

void __atomic_store_4(volatile void *at, uint32_t value, int order)
{
    (void)order;
    __asm__ volatile("" : : : "memory");
    *(volatile uint32_t *)at = value;
}

_Bool __atomic_compare_exchange_4(volatile void *at, void *expected, uint32_t value, _Bool weak, int done, int failed)
{
    (void)weak, (void)done, (void)failed;
    uint32_t *wanted = expected, found = swap_if(at, *wanted, value);
    if (found == *wanted)
        return 1;
    *wanted = found;
    return 0;
}

#define READ_MODIFY_WRITE(name, result)                                                                                            \
    uint32_t __atomic_##name##_4(volatile void *at, uint32_t value, int order)                                                     \
    {                                                                                                                              \
        (void)order;                                                                                                               \
        uint32_t old, found = *(volatile uint32_t *)at;                                                                            \
        do {                                                                                                                       \
            old = found;                                                                                                           \
            found = swap_if(at, old, result);                                                                                      \
        } while (found != old);                                                                                                    \
        return old;                                                                                                                \
    }

READ_MODIFY_WRITE(exchange, value)
READ_MODIFY_WRITE(fetch_add, old + value)
READ_MODIFY_WRITE(fetch_sub, old - value)
READ_MODIFY_WRITE(fetch_and, old & value)
READ_MODIFY_WRITE(fetch_or, old | value)
