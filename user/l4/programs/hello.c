/* A root task that prints what it finds. */
#include <l4/debug.h>

#include "library.h"

int main(const l4_loader *loader, const l4_info *info)
{
    l4_id me = l4_myself();
    /* The page is sigma0's to give; it was asked for by the first access. */
    print("hello from task %u thread %u\n", l4_task_of(me), l4_thread_of(me));
    print("command line: %s\n", (const char *)loader->command);
    print("modules: %u\n", loader->module_count);
    const l4_module *modules = (const l4_module *)loader->modules;
    for (uint32_t at = 0; at < loader->module_count; at++)
        print("module %s begins with %x\n", (const char *)modules[at].command, *(const uint32_t *)modules[at].start);
    l4_message m = { L4_SIGMA0, { 1, 1 } };
    uint32_t dope = l4_ipc(&m, L4_SHORT, l4_window(l4_fpage((uint32_t)info, L4_PAGE_SIZE, 0)), L4_NEVER);
    if (L4_ERROR(dope) || !(dope & 2))
        return 1;
    print("kernel: %s\n", (const char *)info + info->strings * 16);
    print("info page: %s\n", info->magic == L4_INFO_MAGIC ? "right" : "wrong");
    l4_enter_debugger("a look");
    return 0;
}
