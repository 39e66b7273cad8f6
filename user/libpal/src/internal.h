/* What the parts of the library share. */
#ifndef INTERNAL_H
#define INTERNAL_H

#include <pal.h>

/* The kernel's numbers (personality/pal/src/table.rs). */
enum {
    NR_ALLOC, NR_FREE, NR_PROTECT,
    NR_THREAD_CREATE, NR_DELAY, NR_YIELD, NR_THREAD_EXIT, NR_RESUME,
    NR_SEMAPHORE, NR_RELEASE, NR_NOTIFICATION, NR_SYNCHRONIZATION, NR_SET, NR_CLEAR, NR_WAIT_ANY,
    NR_OPEN, NR_WAIT_FOR_CLIENT, NR_READ, NR_WRITE, NR_DELETE, NR_MAP, NR_UNMAP, NR_SET_LENGTH, NR_FLUSH, NR_GET_NAME,
    NR_QUERY, NR_QUERY_BY_HANDLE,
    NR_PROCESS_CREATE, NR_PROCESS_EXIT,
    NR_TIME, NR_RANDOM, NR_FLUSH_CODE, NR_CLOSE, NR_SEGMENT, NR_SET_HANDLER, NR_EXCEPTION_RETURN,
    NR_SEND, NR_RECEIVE, NR_CHANGE_NAME, NR_GIPC_CREATE, NR_GIPC_COMMIT, NR_GIPC_MAP, NR_SANDBOX, NR_START,
};

static inline long pal_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
             : "=a"(result)
             : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
             : "rcx", "r11", "memory");
    return result;
}

#define CALL0(n) pal_call(n, 0, 0, 0, 0, 0, 0)
#define CALL1(n, a) pal_call(n, (long)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b) pal_call(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c) pal_call(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) pal_call(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define CALL5(n, a, b, c, d, e) pal_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define CALL6(n, a, b, c, d, e, f) pal_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Whether the result of a call is a failure, which is reported then. */
bool pal_failed(long result);
/* Reports a failure. */
void pal_fail(PAL_NUM error);

/* The handle that a result names; NULL if it is a failure, which is reported. */
PAL_HANDLE pal_handle_of(long result);
/* Whether it is a handle; otherwise BADHANDLE is reported. */
bool pal_is_handle(PAL_HANDLE handle);
/* The place for handles, before there are any. */
bool pal_handles_begin(void);

#define EVENTS 8

/* A thread, at the top of its stack. */
struct pal_thread {
    struct pal_thread *next;
    char *low, *high;
    void (*start)(void *);
    void *param;
    /* Its handle's number, and whether it may still use its stack: the kernel clears it. */
    unsigned number, alive;
    /* The thread that makes it is not done with it. */
    unsigned held;
    /* An event's handle that it waits for before it starts; 0 for none. */
    PAL_HANDLE gate;
    PAL_NUM error;
    PAL_UPCALL handlers[EVENTS];
    PAL_FLG flags[EVENTS];
};

/* The calling thread, by its stack. */
struct pal_thread *pal_self(void);
long pal_clone(void *stack, unsigned *handle, unsigned *alive);
__attribute__((noreturn)) void pal_return(void *context);
void pal_restore(void);
void pal_upcall(int signal, void *info, void *context);

extern char pal_code_begin[], pal_code_end[];

#endif
