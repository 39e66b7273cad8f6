#include "call.h"

void shutdown(int code)
{
    CALL1(SHUTDOWN, code);
    __builtin_trap();
}

void guest_shutdown(void)
{
    shutdown(0);
}

int print(const char *text, size_t bytes)
{
    return (int)CALL2(PRINT, text, bytes);
}

uint64_t octo_clock_nanoseconds(void)
{
    uint64_t now = 0;
    CALL1(CLOCK_READ, &now);
    return now;
}

uint64_t octo_clock(void)
{
    return octo_clock_nanoseconds() / 1000;
}

/* The processor's count; where it has none that user code may read, nanoseconds. */
static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high) : : "ecx", "memory");
    return (uint64_t)high << 32 | low;
#elif defined(__sparc__)
    /* The running timer of the GPTIMER, which counts down; user code may read it (platform/leon3/src/tables.rs). */
    return 0xffffffffu - *(volatile uint32_t *)0xf320;
#else
    return octo_clock_nanoseconds();
#endif
}

void timer_start(octo_timer *timer)
{
    *timer = ticks();
}

uint64_t timer_stop(const octo_timer *timer)
{
#if defined(__sparc__)
    /* It has 32 bits. */
    return (uint32_t)(ticks() - *timer);
#else
    return ticks() - *timer;
#endif
}

uint64_t ticks_to_nanoseconds(uint64_t count)
{
#if defined(__x86_64__)
    /* Ticks in 10 ms, measured once. */
    static volatile uint64_t rate;
    enum { SPAN = 10000000 };
    if (!rate) {
        uint64_t from = octo_clock_nanoseconds(), first = ticks(), now;
        do
            now = octo_clock_nanoseconds();
        while (now - from < SPAN);
        rate = (ticks() - first) * SPAN / (now - from);
    }
    return count / rate * SPAN + count % rate * SPAN / rate;
#elif defined(__sparc__)
    /* 40 MHz. */
    return count * 25;
#else
    return count;
#endif
}

void simple_spinlock_init(simple_spinlock *lock)
{
    *lock = 0;
}

void simple_spinlock_lock(simple_spinlock *lock)
{
    while (__atomic_test_and_set(lock, __ATOMIC_ACQUIRE))
        while (*lock)
#if defined(__x86_64__)
            __builtin_ia32_pause();
#else
            ;
#endif
}

void simple_spinlock_unlock(simple_spinlock *lock)
{
    __atomic_clear(lock, __ATOMIC_RELEASE);
}

int octo_argument_count(void)
{
    return (int)octo_record()->argc;
}

const char *octo_argument(int index)
{
    struct octo_record *record = octo_record();
    return index >= 0 && (octo_word)index < record->argc ? record->argv[index] : NULL;
}

int octo_library_answers(void)
{
    return (int)ANSWERS;
}

int empty_0(void)
{
    return (int)CALL0(EMPTY_0);
}

int empty_1(octo_word a)
{
    return (int)CALL1(EMPTY_1, a);
}

int empty_2(octo_word a, octo_word b)
{
    return (int)CALL2(EMPTY_2, a, b);
}

int empty_3(octo_word a, octo_word b, octo_word c)
{
    return (int)CALL3(EMPTY_3, a, b, c);
}

int empty_4(octo_word a, octo_word b, octo_word c, octo_word d)
{
    return (int)CALL4(EMPTY_4, a, b, c, d);
}

int empty_5(octo_word a, octo_word b, octo_word c, octo_word d, octo_word e)
{
    return (int)CALL5(EMPTY_5, a, b, c, d, e);
}

octo_word empty_6(octo_word a, octo_word b, octo_word c, octo_word d, octo_word e, octo_word f)
{
    return CALL6(EMPTY_6, a, b, c, d, e, f);
}
