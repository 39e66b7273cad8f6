/* Sigma0: all physical memory is its own, and each page goes to the first task that asks. */
#include "library.h"

enum { PAGE = 4096, LOADER_SIZE = 4 * PAGE, PAGES_MOST = 1 << 18, SIGMA0 = 2, ROOT = 4, FREE = 0 };
enum { ANY_PAGE = 0xfffffffcu, SPECIAL = 1, INFO_PAGE = 1, LARGE = 22 << 2, MEMORY_END = 0x40000000 };

/* The task that has a page. */
static uint16_t owners[PAGES_MOST];
static uint32_t pages;

static void own(uint32_t low, uint32_t high, uint16_t task)
{
    uint32_t page = low / PAGE, end = high / PAGE + (high % PAGE != 0);
    for (; page < end && page < pages; page++)
        owners[page] = task;
}

/* Whether a task may have some pages, which it has then. */
static int take(uint32_t page, uint32_t count, uint16_t task)
{
    if (page >= pages || count > pages - page)
        return 0;
    for (uint32_t at = page; at < page + count; at++)
        if (owners[at] != FREE && owners[at] != task)
            return 0;
    for (uint32_t at = page; at < page + count; at++)
        owners[at] = task;
    return 1;
}

/* The answer to a message, in its place; the send descriptor. */
static uint32_t answer(l4_message *m, const l4_info *info)
{
    uint16_t task = (uint16_t)l4_task_of(m->partner);
    uint32_t request = m->word[0], address = request & ~(PAGE - 1u), page = pages;
    if (request == ANY_PAGE) {
        /* From the upper end, where nothing is linked to. */
        while (page && owners[page - 1] != FREE)
            page--;
        address = (page - 1) * PAGE;
        if (page && take(page - 1, 1, task))
            goto give;
    } else if (request == SPECIAL && (m->word[1] & 0xff) == INFO_PAGE) {
        m->word[0] = (uint32_t)info;
        m->word[1] = l4_fpage((uint32_t)info, L4_PAGE_SIZE, 0);
        return L4_MAP;
    } else if (request < MEMORY_END && request & 1 && m->word[1] == LARGE) {
        address = request & ~((1u << L4_SUPERPAGE_SIZE) - 1);
        if (take(address / PAGE, 1u << (L4_SUPERPAGE_SIZE - L4_PAGE_SIZE), task)) {
            m->word[0] = address;
            m->word[1] = l4_fpage(address, L4_SUPERPAGE_SIZE, L4_WRITE);
            return L4_MAP;
        }
    } else if (request < MEMORY_END && !(request & 1) && take(address / PAGE, 1, task)) {
        goto give;
    }
    m->word[0] = m->word[1] = 0;
    return L4_SHORT;
give:
    m->word[0] = address;
    m->word[1] = l4_fpage(address, L4_PAGE_SIZE, L4_WRITE);
    return L4_MAP;
}

int main(const l4_loader *loader, const l4_info *info)
{
    l4_message m = { L4_NIL, { 0, 0 } };
    const l4_module *modules = (const l4_module *)loader->modules;
    pages = info->memory.high / PAGE;
    if (pages > PAGES_MOST)
        pages = PAGES_MOST;
    for (unsigned at = 0; at < 2; at++)
        own(info->reserved[at].low, info->reserved[at].high, SIGMA0);
    own(info->sigma0.memory.low, info->sigma0.memory.high, SIGMA0);
    own(info->sigma0.esp, info->sigma0.esp + 8, SIGMA0);
    own(info->root.memory.low, info->root.memory.high, ROOT);
    own(info->root.esp, info->root.esp + 8, ROOT);
    own((uint32_t)loader, (uint32_t)loader + LOADER_SIZE, ROOT);
    for (uint32_t at = 0; at < loader->module_count; at++)
        own(modules[at].start, modules[at].end, ROOT);
    for (uint32_t dope = l4_wait(&m);;) {
        /* Somebody who is no more needs no answer. */
        uint32_t send = L4_ERROR(dope) ? L4_NONE : answer(&m, info);
        dope = l4_reply_and_wait(&m, send);
        if (L4_ERROR(dope) & L4_SENDING || L4_ERROR(dope) == L4_MISSING)
            dope = l4_wait(&m);
    }
}
