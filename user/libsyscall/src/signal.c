#include "call.h"
#include "stack.h"

/* A count above this is refused: simple_signal_get_max_proc_count() in abi/src/invasive/types.rs. */
#define COUNT_MOST 0x7fffffffu

/* The counter changes in the kernel, under the tile's lock; only one that nobody signals yet may be set here. */
static int init(simple_signal *signal, uint32_t count)
{
    if (count > COUNT_MOST)
        return -1;
    *signal = (simple_signal){count, 0};
    return 0;
}

static uint32_t left(const simple_signal *signal)
{
    return *(const volatile uint32_t *)&signal->left;
}

int simple_signal_init(simple_signal *signal, uint32_t count)
{
    return ANSWERS ? init(signal, count) : (int)CALL2(SIMPLE_SIGNAL_INIT, signal, count);
}

uint32_t simple_signal_get_max_proc_count(void)
{
    return ANSWERS ? COUNT_MOST : (uint32_t)CALL0(SIMPLE_SIGNAL_GET_MAX_PROC_COUNT);
}

void simple_signal_add_signalers(simple_signal *signal, uint32_t more)
{
    CALL2(SIMPLE_SIGNAL_ADD_SIGNALERS, signal, more);
}

uint32_t simple_signal_get_counter(simple_signal *signal)
{
    return ANSWERS ? left(signal) : (uint32_t)CALL1(SIMPLE_SIGNAL_GET_COUNTER, signal);
}

int simple_signal_wait(simple_signal *signal)
{
    return (int)CALL1(SIMPLE_SIGNAL_WAIT, signal);
}

void simple_signal_signal(simple_signal *signal)
{
    CALL1(SIMPLE_SIGNAL_SIGNAL, signal);
}

void simple_signal_signal_and_exit(simple_signal *signal)
{
    octo_fls_end();
    CALL1(SIMPLE_SIGNAL_SIGNAL_AND_EXIT, signal);
    __builtin_trap();
}

int infect_signal_init(infect_signal *signal, uint32_t count, simple_ilet *ilet)
{
    if (!ANSWERS)
        return (int)CALL3(INFECT_SIGNAL_INIT, signal, count, ilet);
    signal->ilet = *ilet;
    return init(&signal->signal, count);
}

void infect_signal_signal(infect_signal *signal)
{
    CALL1(INFECT_SIGNAL_SIGNAL, signal);
}

void infect_signal_signal_and_exit(infect_signal *signal)
{
    octo_fls_end();
    CALL1(INFECT_SIGNAL_SIGNAL_AND_EXIT, signal);
    __builtin_trap();
}

void binary_signal_init(binary_signal *signal)
{
    if (ANSWERS)
        init(signal, 1);
    else
        CALL1(BINARY_SIGNAL_INIT, signal);
}

uint32_t binary_signal_get_counter(binary_signal *signal)
{
    return ANSWERS ? left(signal) : (uint32_t)CALL1(BINARY_SIGNAL_GET_COUNTER, signal);
}

int binary_signal_wait(binary_signal *signal)
{
    return (int)CALL1(BINARY_SIGNAL_WAIT, signal);
}

void binary_signal_signal(binary_signal *signal)
{
    CALL1(BINARY_SIGNAL_SIGNAL, signal);
}

void binary_signal_signal_and_exit(binary_signal *signal)
{
    octo_fls_end();
    CALL1(BINARY_SIGNAL_SIGNAL_AND_EXIT, signal);
    __builtin_trap();
}
