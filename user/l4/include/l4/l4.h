/* The calls of L4, Version 2, on x86 for programs in C. Names are those of the interface. */
#ifndef L4_L4_H
#define L4_L4_H

#include <stddef.h>
#include <stdint.h>

/* A thread: version, number and task in the low word, clan and nesting in the high one. */
typedef struct {
    uint32_t low, high;
} l4_id;

#define L4_NIL ((l4_id){ 0, 0 })
#define L4_INVALID ((l4_id){ 0xffffffffu, 0xffffffffu })
#define L4_SIGMA0 ((l4_id){ 2u << 17, 4u << 17 })
#define L4_ROOT ((l4_id){ 4u << 17, 0 })

static inline uint32_t l4_task_of(l4_id id) { return id.low >> 17 & 0x7ff; }
static inline uint32_t l4_thread_of(l4_id id) { return id.low >> 10 & 0x7f; }
static inline int l4_same(l4_id a, l4_id b) { return a.low == b.low; }

/* Another thread of the same task; thread 0 of another task. */
static inline l4_id l4_sibling(l4_id id, uint32_t thread)
{
    return (l4_id){ (id.low & ~(0x7fu << 10)) | thread << 10, id.high };
}
static inline l4_id l4_task(uint32_t task) { return (l4_id){ task << 17, 4u << 17 }; }

/* Flexpages: 1 << size bytes. */
enum { L4_GRANT = 1, L4_WRITE = 2, L4_PAGE_SIZE = 12, L4_SUPERPAGE_SIZE = 22, L4_WHOLE_SPACE = 32 };
static inline uint32_t l4_fpage(uint32_t address, uint32_t size, uint32_t rights)
{
    return (address & ~0xfffu) | size << 2 | rights;
}

/* Descriptors. With a buffer they are its address and these bits. */
enum {
    L4_NONE = 0xffffffffu, /* this half of the call does not happen */
    L4_SHORT = 0,          /* words in registers alone */
    L4_MAP = 2,            /* sent: the words are flexpages; received: the descriptor is a window for them */
    L4_OPEN = 1,           /* received from anybody */
};
static inline uint32_t l4_window(uint32_t fpage) { return fpage | L4_MAP; }

/* Timeouts, made by l4_timeout: mantissa * 4^(15 - exponent) microseconds each. */
#define L4_NEVER 0u
#define L4_SEND_NOW 0x10u
#define L4_RECEIVE_NOW 0x01u
static inline uint32_t l4_receive_within(uint32_t mantissa, uint32_t exponent) { return mantissa << 24 | exponent; }
static inline uint32_t l4_send_within(uint32_t mantissa, uint32_t exponent) { return mantissa << 16 | exponent << 4; }

/* Results. */
#define L4_ERROR(dope) ((dope) & 0xf0u)
#define L4_WORDS(dope) ((dope) >> 13)
#define L4_STRINGS(dope) ((dope) >> 8 & 0x1f)
#define L4_DOPE(words, strings) ((uint32_t)(words) << 13 | (uint32_t)(strings) << 8)
enum {
    L4_MISSING = 0x10,
    L4_TIMEOUT = 0x20,
    L4_CANCELED = 0x40,
    L4_MAP_FAILED = 0x60,
    L4_ABORTED = 0xc0,
    L4_CUT = 0xe0,
    L4_SENDING = 0x10, /* beside the others: the thread was sending */
};

/* A string of a message: what is sent, and where one is received to. */
typedef struct {
    uint32_t size, from, room, to;
} l4_string;

/* What a call puts into the registers and finds there. The order is known to lib/calls.S. */
typedef struct {
    uint32_t eax, ecx, edx, ebx, ebp, esi, edi;
} l4_registers;

void l4_raw_ipc(l4_registers *);
void l4_raw_id_nearest(l4_registers *);
void l4_raw_fpage_unmap(l4_registers *);
void l4_raw_thread_switch(l4_registers *);
void l4_raw_thread_schedule(l4_registers *);
void l4_raw_lthread_ex_regs(l4_registers *);
void l4_raw_task_new(l4_registers *);

/* A message: its words, and who it is for or from. */
typedef struct {
    l4_id partner;
    uint32_t word[2];
} l4_message;

/* Sends and receives by descriptors; the result's dope. */
static inline uint32_t l4_ipc(l4_message *m, uint32_t send, uint32_t receive, uint32_t timeouts)
{
    l4_registers r = { send, timeouts, m->word[0], m->word[1], receive, m->partner.low, m->partner.high };
    l4_raw_ipc(&r);
    *m = (l4_message){ { r.esi, r.edi }, { r.edx, r.ebx } };
    return r.eax;
}

static inline uint32_t l4_call(l4_message *m) { return l4_ipc(m, L4_SHORT, L4_SHORT, L4_NEVER); }
static inline uint32_t l4_send(l4_message *m) { return l4_ipc(m, L4_SHORT, L4_NONE, L4_NEVER); }
static inline uint32_t l4_wait(l4_message *m)
{
    *m = (l4_message){ L4_NIL, { 0, 0 } };
    return l4_ipc(m, L4_NONE, L4_OPEN, L4_NEVER);
}
static inline uint32_t l4_reply_and_wait(l4_message *m, uint32_t send) { return l4_ipc(m, send, L4_OPEN, L4_NEVER); }

/* Sleeps; for good without an exponent. */
static inline uint32_t l4_sleep(uint32_t mantissa, uint32_t exponent)
{
    l4_message m = { L4_NIL, { 0, 0 } };
    return l4_ipc(&m, L4_NONE, L4_SHORT, exponent ? l4_receive_within(mantissa, exponent) : L4_NEVER);
}

static inline l4_id l4_myself(void)
{
    l4_registers r = { 0 };
    l4_raw_id_nearest(&r);
    return (l4_id){ r.esi, r.edi };
}

enum { L4_FLUSH = 2 };
#define L4_OWN 0x80000000u
static inline void l4_fpage_unmap(uint32_t fpage, uint32_t mask)
{
    l4_registers r = { .eax = fpage, .ecx = mask };
    l4_raw_fpage_unmap(&r);
}

static inline void l4_yield(void)
{
    l4_registers r = { 0 };
    l4_raw_thread_switch(&r);
}

/* The old word of parameters, 0xffffffff where it is refused. */
static inline uint32_t l4_schedule(l4_id thread, uint32_t word)
{
    l4_registers r = { .eax = word, .esi = thread.low, .edi = thread.high, .ebx = 0xffffffffu, .ebp = 0xffffffffu };
    l4_raw_thread_schedule(&r);
    return r.eax;
}

/* Starts a thread of the own task, or moves one; the old flags, 0xffffffff where it is refused. */
static inline uint32_t l4_thread(uint32_t number, void (*start)(void), void *stack, l4_id pager)
{
    l4_registers r = { number, (uint32_t)stack, (uint32_t)start, 0xffffffffu, 0xffffffffu, pager.low, pager.high };
    l4_raw_lthread_ex_regs(&r);
    return r.eax;
}

/* Makes a task; its name, nil where it is refused. Without a pager there is none by the number, and what was there ends. */
static inline l4_id l4_task_new(l4_id task, uint32_t mcp, void (*start)(void), void *stack, l4_id pager)
{
    l4_registers r = { mcp, (uint32_t)stack, (uint32_t)start, pager.low, pager.high, task.low, task.high };
    l4_raw_task_new(&r);
    return (l4_id){ r.esi, r.edi };
}

#endif
