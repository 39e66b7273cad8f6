/* Bad input of every kind, and what the kernel returns for it. */
#include <l4/debug.h>

#include "library.h"

enum { ECHO = 1, VICTIM = 2, CHILD = 5, GIVEN = 9 };
#define KERNEL 0xc0000000u

STACK(echo_stack, 4096);
STACK(victim_stack, 4096);
static uint32_t buffer[64], room[64], received;

static void show(const char *what, uint32_t dope) { print("%s: %x\n", what, dope); }

/* Receives with whatever descriptor it is given, and notes what came. */
static uint32_t descriptor;
static void echo(void)
{
    for (;;) {
        l4_message m = { L4_NIL, { 0, 0 } };
        received = l4_ipc(&m, L4_NONE, descriptor | L4_OPEN, L4_NEVER);
    }
}

/* Sends to the echo, once it waits; both sides' results. */
static void send(const char *what, uint32_t send_descriptor, uint32_t word0, uint32_t word1, uint32_t receive_descriptor)
{
    l4_id partner = l4_sibling(l4_myself(), ECHO);
    descriptor = receive_descriptor;
    l4_thread(ECHO, echo, STACK_END(echo_stack), L4_SIGMA0);
    l4_message m = { partner, { word0, word1 } };
    uint32_t dope = l4_ipc(&m, send_descriptor, L4_NONE, L4_NEVER);
    l4_yield();
    print("%s: %x, %x\n", what, dope, received);
}

static void words(uint32_t *at, uint32_t size, uint32_t dope)
{
    memset(at, 0, sizeof buffer);
    at[1] = size;
    at[2] = dope;
}

/* Threads that meet with exceptions; none has a pager. */
static void other_vector(void) { __asm__ volatile("int $0x37"); }
static void linux_call(void) { __asm__ volatile("int $0x80"); }
static void halt(void) { __asm__ volatile("hlt"); }
static void port(void) { __asm__ volatile("outb %al, $0x80"); }
static void undefined(void) { __asm__ volatile("ud2"); }
static void divide(void) { __asm__ volatile("xor %%ecx, %%ecx; div %%ecx" : : : "eax", "ecx", "edx"); }
static void null(void) { __asm__ volatile("movl $1, 8"); }
static void above(void) { __asm__ volatile("movl $1, 0xc0000000"); }
static void jump(void) { __asm__ volatile("mov $0xfffffff0, %eax; jmp *%eax"); }
static void system_call(void) { __asm__ volatile("syscall"); }
static void system_enter(void) { __asm__ volatile("sysenter"); }
static void control(void) { __asm__ volatile("mov %cr3, %eax"); }
/* To 64-bit code, with registers that 32-bit code does not have, through each call, and to where no address is. */
static void wide(void)
{
    __asm__ volatile("ljmp $0x33, $1f\n"
                     ".code64\n"
                     "1: mov $-1, %rax\n mov %rax, %rbx\n mov %rax, %rcx\n mov %rax, %rdx\n mov %rax, %rsi\n mov %rax, %rdi\n"
                     "mov %rax, %rbp\n mov %rax, %rsp\n mov %rax, %r8\n mov %rax, %r15\n"
                     "int $0x31\n int $0x32\n int $0x33\n mov $-1, %rax\n int $0x34\n mov $-1, %rax\n int $0x36\n"
                     "mov $0x0000800000000000, %rax\n jmp *%rax\n"
                     ".code32\n");
}
/* Flags that are not user code's, with a processor that stays the kernel's; and a stack that is not mapped. */
static void flags(void) { __asm__ volatile("pushf; orl $0x3000, (%esp); popf; cli; sti; in $0x60, %al"); }
static void stack(void) { __asm__ volatile("mov $0xfffffffc, %esp; push %eax"); }

static const struct {
    const char *name;
    void (*function)(void);
} victims[] = {
    { "int 0x37", other_vector }, { "int 0x80", linux_call }, { "hlt", halt }, { "out", port }, { "ud2", undefined },
    { "div", divide }, { "null", null }, { "above", above }, { "jump", jump }, { "syscall", system_call },
    { "sysenter", system_enter }, { "cr3", control }, { "wide", wide }, { "cli", flags }, { "esp", stack },
};

static void calls(void)
{
    l4_message m = { l4_task(99), { 1, 2 } };
    show("nobody", l4_call(&m));
    m.partner = l4_myself();
    show("oneself", l4_call(&m));
    m.partner = L4_NIL;
    show("nil", l4_send(&m));
    m.partner = L4_INVALID;
    show("invalid", l4_send(&m));
    m.partner = L4_SIGMA0;
    m.partner.low |= 0x3ff;
    show("another version", l4_send(&m));
    m.partner = (l4_id){ 8, 0 };
    show("an interrupt", l4_ipc(&m, L4_NONE, L4_SHORT, L4_RECEIVE_NOW));
    show("no halves", l4_ipc(&m, L4_NONE, L4_NONE, L4_NEVER));
    show("a thread without a start", l4_thread(77, (void (*)(void))0xffffffffu, (void *)16, L4_SIGMA0));
    show("a schedule for nobody", l4_schedule(l4_task(99), 0));
    show("task 0", l4_task_new((l4_id){ 0, 0 }, 255, 0, 0, L4_SIGMA0).low);
    show("sigma0", l4_task_new(L4_SIGMA0, 255, 0, 0, L4_SIGMA0).low);
    show("the own task", l4_task_new(L4_ROOT, 255, 0, 0, L4_SIGMA0).low);
    /* Given to sigma0's task, it is the root task's no more. */
    show("a task given away", l4_task_new(l4_task(GIVEN), L4_SIGMA0.low, 0, 0, L4_NIL).low);
    show("the same again", l4_task_new(l4_task(GIVEN), 255, 0, 0, L4_SIGMA0).low);
    for (uint32_t page = 0; page < 64; page++) {
        l4_fpage_unmap(page << 2, 0xffffffffu & ~L4_OWN);
        l4_fpage_unmap(KERNEL | page << 2, 0xffffffffu);
    }
    print("unmapped nonsense\n");
}

static void messages(void)
{
    send("words", L4_SHORT, 1, 2, L4_SHORT);
    send("a buffer of the kernel's", KERNEL, 1, 2, L4_SHORT);
    send("a buffer at the end", 0xfffffffcu, 1, 2, L4_SHORT);
    send("a buffer for flexpages of the kernel's", KERNEL | L4_MAP, 0, 0, L4_SHORT);
    send("into the kernel", L4_SHORT, 1, 2, KERNEL);
    words(buffer, 0xffffffffu, 0xffffffffu);
    send("more than all words", (uint32_t)buffer, 1, 2, L4_SHORT);
    words(buffer, 0xffffe000u, L4_DOPE(2, 31));
    send("items that are far away", (uint32_t)buffer, 1, 2, L4_SHORT);
    words(buffer, L4_DOPE(2, 1), L4_DOPE(2, 1));
    words(room, L4_DOPE(2, 1), 0);
    *(l4_string *)&buffer[5] = (l4_string){ 16, KERNEL - 8, 0, 0 };
    *(l4_string *)&room[5] = (l4_string){ 0, 0, 16, (uint32_t)&room[32] };
    send("a string that ends in the kernel", (uint32_t)buffer, 1, 2, (uint32_t)room);
    *(l4_string *)&buffer[5] = (l4_string){ 0xffffffffu, (uint32_t)&buffer[32], 0, 0 };
    *(l4_string *)&room[5] = (l4_string){ 0, 0, 16, (uint32_t)&room[32] };
    send("a string without an end", (uint32_t)buffer, 1, 2, (uint32_t)room);
    *(l4_string *)&buffer[5] = (l4_string){ 16, (uint32_t)&buffer[32], 0, 0 };
    *(l4_string *)&room[5] = (l4_string){ 0, 0, 16, 0xfffffff8u };
    send("a string into the kernel", (uint32_t)buffer, 1, 2, (uint32_t)room);
    uint32_t window = l4_window(l4_fpage(0, L4_WHOLE_SPACE, 0)), page = (uint32_t)&room & ~0xfffu;
    send("no flexpage", L4_MAP, 0, 0, window);
    send("a flexpage of 32 bytes", L4_MAP, 0, 5 << 2, window);
    send("a flexpage beyond all", L4_MAP, 0, 63 << 2, window);
    send("a flexpage of the kernel's", L4_MAP, 0x50000000, l4_fpage(KERNEL, 20, L4_WRITE), window);
    send("a flexpage into the kernel", L4_MAP, KERNEL, l4_fpage(page, L4_PAGE_SIZE, L4_WRITE), window);
    send("a flexpage to null", L4_MAP, 0, l4_fpage(page, L4_PAGE_SIZE, L4_WRITE), window);
    send("a flexpage to who takes none", L4_MAP, 0x50000000, l4_fpage(page, L4_PAGE_SIZE, L4_WRITE), L4_SHORT);
    send("a flexpage onto itself", L4_MAP | L4_GRANT, page, l4_fpage(page, L4_PAGE_SIZE, L4_WRITE | L4_GRANT), window);
}

int main(const l4_loader *loader, const l4_info *info)
{
    (void)loader, (void)info;
    calls();
    messages();
    /* The victims have no pager: what they touch must be there. */
    memset(victim_stack, 0, sizeof victim_stack);
    *(volatile uint32_t *)buffer = 0;
    for (unsigned at = 0; at < sizeof victims / sizeof *victims; at++) {
        print("%s\n", victims[at].name);
        l4_thread(VICTIM, victims[at].function, STACK_END(victim_stack), L4_NIL);
        l4_yield();
        l4_sleep(20, 10);
    }
    print("alive\n");
    return 0;
}
