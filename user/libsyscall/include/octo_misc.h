/* The end, output, time, locks, arguments. */
#ifndef OCTO_MISC_H
#define OCTO_MISC_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the application. */
void shutdown(int code) __attribute__((noreturn));
/* The same by its older name. */
void guest_shutdown(void) __attribute__((noreturn));

/* Writes text. */
int print(const char *text, size_t bytes);
/* Formats: %d %i %u %x %c %s %p %f %e %%, with l, z, width, precision, 0 and -. */
int octo_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Microseconds, and nanoseconds, since the start. */
uint64_t octo_clock(void);
uint64_t octo_clock_nanoseconds(void);
/* The stopwatch: the processor's own count. */
typedef uint64_t octo_timer;
void timer_start(octo_timer *timer);
uint64_t timer_stop(const octo_timer *timer);
uint64_t ticks_to_nanoseconds(uint64_t ticks);

typedef volatile uint8_t simple_spinlock;
void simple_spinlock_init(simple_spinlock *lock);
void simple_spinlock_lock(simple_spinlock *lock);
void simple_spinlock_unlock(simple_spinlock *lock);

/* The program's arguments, its name first; NULL behind the last. */
int octo_argument_count(void);
const char *octo_argument(int index);

/* A call by its number, past the wrappers: for tests and measurements. */
octo_word octo_call(octo_word number, octo_word a, octo_word b, octo_word c, octo_word d, octo_word e, octo_word f);
/* 1 when the library handles calls itself that need no privilege. */
int octo_library_answers(void);

/* Empty calls with as many arguments, which return 42. */
int empty_0(void);
int empty_1(octo_word a);
int empty_2(octo_word a, octo_word b);
int empty_3(octo_word a, octo_word b, octo_word c);
int empty_4(octo_word a, octo_word b, octo_word c, octo_word d);
int empty_5(octo_word a, octo_word b, octo_word c, octo_word d, octo_word e);
/* Returns 42 for six times 7, and otherwise the sum of its words, each times its place (from 1). */
octo_word empty_6(octo_word a, octo_word b, octo_word c, octo_word d, octo_word e, octo_word f);

#ifdef __cplusplus
}
#endif
#endif
