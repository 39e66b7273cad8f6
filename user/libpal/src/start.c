/* The start of a program, and the control block. */
#include "internal.h"

/* What the kernel tells (abi/src/pal/attr.rs). */
struct start {
    PAL_NUM manifest, parent, thread, debug, process_id, host_id, user_low, user_high, page_size, alloc_align, mem_total, cpu_count;
};

extern char __executable_start[], _end[];
extern int main(int argc, char **argv, char **envp);

static PAL_CONTROL control;
static char vendor[13], brand[49];

PAL_CONTROL *pal_control_addr(void)
{
    return &control;
}

static void cpuid(unsigned leaf, unsigned out[4])
{
    __asm__ volatile("cpuid" : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3]) : "a"(leaf), "c"(0));
}

static void put(char *to, unsigned word)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)(word >> 8 * i);
}

static void describe_cpu(PAL_CPU_INFO *info)
{
    unsigned out[4];
    cpuid(0, out);
    put(vendor, out[1]);
    put(vendor + 4, out[3]);
    put(vendor + 8, out[2]);
    cpuid(1, out);
    unsigned family = out[0] >> 8 & 15, model = out[0] >> 4 & 15;
    info->cpu_stepping = out[0] & 15;
    info->cpu_family = family == 15 ? family + (out[0] >> 20 & 255) : family;
    info->cpu_model = family == 15 || family == 6 ? model + (out[0] >> 12 & 0xf0) : model;
    cpuid(0x80000000, out);
    if (out[0] >= 0x80000004)
        for (unsigned i = 0; i < 3; i++) {
            cpuid(0x80000002 + i, out);
            for (int j = 0; j < 4; j++)
                put(brand + 16 * i + 4 * j, out[j]);
        }
    info->cpu_vendor = vendor;
    info->cpu_brand = brand;
}

static PAL_HANDLE known(PAL_NUM word)
{
    return word ? pal_handle_of((long)word) : NULL;
}

__attribute__((noreturn)) void pal_entry(long *stack)
{
    int argc = (int)stack[0];
    char **argv = (char **)(stack + 1), **envp = argv + argc + 1;
    struct start start;
    if (CALL5(NR_START, &start, pal_upcall, pal_restore, pal_code_begin, pal_code_end) < 0 || !pal_handles_begin())
        __builtin_trap();
    control = (PAL_CONTROL) {
        .manifest_handle = known(start.manifest),
        .executable = argc > 0 ? argv[0] : "",
        .executable_begin = __executable_start,
        .executable_end = _end,
        .library_begin = pal_code_begin,
        .library_end = pal_code_end,
        .pagesize = start.page_size,
        .alloc_align = start.alloc_align,
        .parent_process = known(start.parent),
        .first_thread = known(start.thread),
        .debug_stream = known(start.debug),
        .process_id = start.process_id,
        .host_id = start.host_id,
        .user_address_start = (PAL_PTR)start.user_low,
        .user_address_end = (PAL_PTR)start.user_high,
        .mem_total = start.mem_total,
    };
    describe_cpu(&control.cpu_info);
    control.cpu_info.cpu_num = start.cpu_count;
    DkProcessExit((PAL_NUM)(unsigned char)main(argc, argv, envp));
}
