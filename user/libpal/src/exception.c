/* Events. The kernel enters pal_upcall as it enters a handler of Linux' signals. */
#include "internal.h"

static PAL_UPCALL handlers[EVENTS];
static PAL_FLG handler_flags[EVENTS];

/* An event under way: where its frame is. */
struct event {
    PAL_NUM number;
    void *frame;
};

#define SIGINT 2
#define SIGILL 4
#define SIGBUS 7
#define SIGFPE 8
#define SIGSEGV 11
#define SIGTERM 15
#define SIGCONT 18

/* Where a signal's frame has the registers, and its record the address. */
#define REGISTERS 40
#define ADDRESS 16

static PAL_NUM event_of(int signal)
{
    switch (signal) {
    case SIGFPE:
        return PAL_EVENT_DIVZERO;
    case SIGSEGV:
    case SIGBUS:
        return PAL_EVENT_MEMFAULT;
    case SIGILL:
        return PAL_EVENT_ILLEGAL;
    case SIGTERM:
        return PAL_EVENT_QUIT;
    case SIGINT:
        return PAL_EVENT_SUSPEND;
    default:
        return PAL_EVENT_RESUME;
    }
}

/* The handler of the calling thread, or of all; it is taken away if it is for once. */
static PAL_UPCALL handler_of(PAL_NUM event)
{
    struct pal_thread *self = pal_self();
    PAL_UPCALL handler = self->handlers[event];
    PAL_FLG *flags = &self->flags[event];
    PAL_UPCALL *place = &self->handlers[event];
    if (!handler) {
        handler = handlers[event];
        flags = &handler_flags[event];
        place = &handlers[event];
    }
    if (handler && *flags & PAL_EVENT_RESET)
        *place = NULL;
    return handler;
}

void pal_upcall(int signal, void *info, void *context)
{
    struct event event = { event_of(signal), context };
    PAL_CONTEXT *registers = (PAL_CONTEXT *)((char *)context + REGISTERS);
    PAL_UPCALL handler = handler_of(event.number);
    if (handler) {
        PAL_NUM arg = 0;
        if (event.number == PAL_EVENT_MEMFAULT)
            arg = *(PAL_NUM *)((char *)info + ADDRESS);
        else if (event.number == PAL_EVENT_DIVZERO || event.number == PAL_EVENT_ILLEGAL)
            arg = registers->rip;
        handler(&event, arg, registers);
        return;
    }
    if (event.number == PAL_EVENT_RESUME)
        return;
    if (event.number == PAL_EVENT_QUIT || event.number == PAL_EVENT_SUSPEND)
        DkProcessExit(128 + (PAL_NUM)signal);
    /* It happens again, and ends the process. */
    CALL2(NR_SET_HANDLER, event.number, 0);
}

void DkExceptionReturn(PAL_PTR event)
{
    /* A failure has no frame: its handler returns. */
    if (event)
        pal_return(((struct event *)event)->frame);
}

PAL_BOL DkSetExceptionHandler(PAL_UPCALL handler, PAL_NUM event, PAL_FLG flags)
{
    if (event == 0 || event >= EVENTS || flags & ~(PAL_FLG)(PAL_EVENT_PRIVATE | PAL_EVENT_RESET)) {
        pal_fail(PAL_ERROR_INVAL);
        return false;
    }
    if (flags & PAL_EVENT_PRIVATE) {
        struct pal_thread *self = pal_self();
        self->flags[event] = flags;
        self->handlers[event] = handler;
    } else {
        handler_flags[event] = flags;
        handlers[event] = handler;
    }
    if (event == PAL_EVENT_FAILURE)
        return true;
    /* A thread that has one of its own keeps it. */
    bool on = handler || flags & PAL_EVENT_PRIVATE;
    return !pal_failed(CALL2(NR_SET_HANDLER, event, on));
}

void pal_fail(PAL_NUM error)
{
    pal_self()->error = error;
    PAL_UPCALL handler = handler_of(PAL_EVENT_FAILURE);
    if (handler)
        handler(NULL, error, NULL);
}

PAL_NUM pal_errno(void)
{
    return pal_self()->error;
}

/* Results: the interface's errors are behind 2000; of Linux' a call cut short and a number without a row remain. */
#define OWN 2000
#define ENOSYS 38
#define EINTR 4

bool pal_failed(long result)
{
    if (result >= 0 || result < -4095)
        return false;
    PAL_NUM error = PAL_ERROR_DENIED;
    if (-result > OWN && -result <= OWN + PAL_ERROR_ADDRNOTEXIST)
        error = (PAL_NUM)(-result - OWN);
    else if (-result == ENOSYS)
        error = PAL_ERROR_NOTIMPLEMENTED;
    else if (-result == EINTR)
        error = PAL_ERROR_INTERRUPTED;
    pal_fail(error);
    return true;
}
