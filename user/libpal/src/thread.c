/* Threads. The library gives each a stack, at whose top is what it knows of the thread. */
#include "internal.h"

#define STACK (64UL << 10)
#define GUARD 4096UL

static struct pal_thread first;
static struct pal_thread *threads;
static unsigned lock;

static void take(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        CALL0(NR_YIELD);
}

static void give(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

struct pal_thread *pal_self(void)
{
    char *here = (char *)__builtin_frame_address(0);
    for (struct pal_thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); t; t = t->next)
        if (t->low <= here && here < t->high)
            return t;
    return &first;
}

/* A stack that nobody has, or a new one. */
static struct pal_thread *free_thread(void)
{
    take();
    for (struct pal_thread *t = threads; t; t = t->next)
        if (!__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) && !t->held) {
            t->held = 1;
            give();
            return t;
        }
    give();
    long made = CALL4(NR_ALLOC, 0, STACK, 0, PAL_PROT_READ | PAL_PROT_WRITE);
    if (pal_failed(made))
        return NULL;
    if (pal_failed(CALL3(NR_PROTECT, made, GUARD, PAL_PROT_NONE)))
        return NULL;
    struct pal_thread *t = (struct pal_thread *)(((uintptr_t)made + STACK - sizeof *t) & ~(uintptr_t)15);
    t->low = (char *)made;
    t->high = (char *)made + STACK;
    t->held = 1;
    take();
    t->next = threads;
    __atomic_store_n(&threads, t, __ATOMIC_RELEASE);
    give();
    return t;
}

__attribute__((noreturn)) void pal_thread_begin(struct pal_thread *t)
{
    if (t->gate) {
        PAL_HANDLE gate = t->gate;
        while (!DkObjectsWaitAny(1, &gate, NO_TIMEOUT))
            ;
        DkObjectClose(gate);
        t->gate = NULL;
    }
    t->start(t->param);
    DkThreadExit();
}

PAL_HANDLE DkThreadCreate(PAL_PTR start, PAL_PTR param, PAL_FLG flags)
{
    if (flags & ~(PAL_FLG)(PAL_THREAD_SAME_PARENT | PAL_THREAD_DETACHED | PAL_THREAD_STOPPED)) {
        pal_fail(PAL_ERROR_INVAL);
        return NULL;
    }
    PAL_HANDLE gate = NULL;
    if (flags & PAL_THREAD_STOPPED && !(gate = DkSynchronizationEventCreate(false)))
        return NULL;
    struct pal_thread *t = free_thread();
    if (!t) {
        if (gate)
            DkObjectClose(gate);
        return NULL;
    }
    t->start = (void (*)(void *))start;
    t->param = param;
    t->gate = gate;
    t->error = 0;
    for (int i = 0; i < EVENTS; i++)
        t->handlers[i] = NULL;
    __atomic_store_n(&t->alive, 1, __ATOMIC_RELEASE);
    /* What the new thread pops, so that its stack is aligned then. */
    void **top = (void **)t - 1;
    *top = t;
    long made = pal_clone(top, &t->number, &t->alive);
    if (made < 0)
        __atomic_store_n(&t->alive, 0, __ATOMIC_RELEASE);
    PAL_HANDLE handle = pal_handle_of(made < 0 ? made : (long)pal_type_thread << 32 | t->number);
    if (handle)
        handle->thread.thread = t;
    else if (made < 0 && gate)
        DkObjectClose(gate);
    __atomic_store_n(&t->held, 0, __ATOMIC_RELEASE);
    return handle;
}

PAL_NUM DkThreadDelayExecution(PAL_NUM microseconds)
{
    long slept = CALL1(NR_DELAY, microseconds);
    return pal_failed(slept) ? 0 : (PAL_NUM)slept;
}

void DkThreadYieldExecution(void)
{
    pal_failed(CALL0(NR_YIELD));
}

void DkThreadExit(void)
{
    for (;;)
        CALL0(NR_THREAD_EXIT);
}

PAL_BOL DkThreadResume(PAL_HANDLE thread)
{
    if (!pal_is_handle(thread))
        return false;
    struct pal_thread *t = thread->thread.thread;
    if (t && PAL_GET_TYPE(thread) == pal_type_thread && t->number == thread->hdr.number && t->gate) {
        DkEventSet(t->gate);
        return true;
    }
    return !pal_failed(CALL1(NR_RESUME, thread->hdr.number));
}

PAL_PTR DkSegmentRegister(PAL_FLG reg, PAL_PTR addr)
{
    long base = CALL2(NR_SEGMENT, reg, addr);
    return pal_failed(base) ? NULL : (PAL_PTR)base;
}

PAL_PTR DkThreadPrivate(PAL_PTR addr)
{
    return DkSegmentRegister(PAL_SEGMENT_FS, addr);
}
