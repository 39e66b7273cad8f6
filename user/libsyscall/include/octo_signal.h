/* Signals: one i-let waits for a number of others of its tile. A signal that comes before the wait is not lost. */
#ifndef OCTO_SIGNAL_H
#define OCTO_SIGNAL_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -1 for a count above simple_signal_get_max_proc_count(). */
int simple_signal_init(simple_signal *signal, uint32_t count);
uint32_t simple_signal_get_max_proc_count(void);
void simple_signal_add_signalers(simple_signal *signal, uint32_t more);
uint32_t simple_signal_get_counter(simple_signal *signal);
/* Waits for all of them; -1 when another i-let waits already. Vector registers are lost, as in any call. */
int simple_signal_wait(simple_signal *signal);
void simple_signal_signal(simple_signal *signal);
/* Signals and ends the calling i-let. */
void simple_signal_signal_and_exit(simple_signal *signal) __attribute__((noreturn));

/* The last signal starts a copy of the i-let on the claim it comes from. */
int infect_signal_init(infect_signal *signal, uint32_t count, simple_ilet *ilet);
void infect_signal_signal(infect_signal *signal);
void infect_signal_signal_and_exit(infect_signal *signal) __attribute__((noreturn));

/* For one signal. */
void binary_signal_init(binary_signal *signal);
uint32_t binary_signal_get_counter(binary_signal *signal);
int binary_signal_wait(binary_signal *signal);
void binary_signal_signal(binary_signal *signal);
void binary_signal_signal_and_exit(binary_signal *signal) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#endif
