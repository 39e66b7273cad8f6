/* A task that pages another: demand, copy, take back. The other has no memory but what it is given. */
#include "library.h"

enum { CHILD = 5, PAGES = 8, PAGE = 4096, HEAP = 0x40000000 };

STACK(child_stack, 4096);
static char pool[PAGES][PAGE] __attribute__((aligned(PAGE)));

/* Touches its heap, page by page, then once more from the first. */
static void child(void)
{
    volatile uint32_t *heap = (volatile uint32_t *)HEAP;
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t sum = 0;
        for (uint32_t page = 0; page < PAGES; page++) {
            uint32_t old = heap[page * PAGE / 4];
            heap[page * PAGE / 4] = old + page + 1;
            sum += heap[page * PAGE / 4];
        }
        l4_message m = { L4_ROOT, { 0, sum } };
        /* Odd: no fault. */
        m.word[0] = 1;
        l4_call(&m);
    }
    /* What nobody will give. */
    *(volatile uint32_t *)0xb0000000 = 1;
    l4_sleep(0, 0);
}

int main(const l4_loader *loader, const l4_info *info)
{
    (void)loader, (void)info;
    l4_message m;
    uint32_t given = 0, code = 0, reports = 0;
    l4_task_new(l4_task(CHILD), 255, child, STACK_END(child_stack), l4_myself());
    uint32_t dope = l4_wait(&m);
    for (;;) {
        uint32_t send = L4_MAP, address = m.word[0] & ~(PAGE - 1u);
        if (L4_ERROR(dope))
            return 1;
        if (m.word[0] == 1) {
            print("the child's sum is %u\n", m.word[1]);
            reports++;
            /* It has to ask again. */
            if (reports == 1)
                for (uint32_t page = 0; page < PAGES; page++)
                    l4_fpage_unmap(l4_fpage((uint32_t)pool[page], L4_PAGE_SIZE, 0), L4_FLUSH);
            send = L4_SHORT;
        } else if (address >= HEAP && address < HEAP + PAGES * PAGE) {
            print("fault at %x, %s\n", m.word[0] & ~3u, m.word[0] & 2 ? "write" : "read");
            uint32_t page = (uint32_t)pool[(address - HEAP) / PAGE];
            *(volatile uint32_t *)page += 100;
            /* For reading, until it is written to. */
            m.word[1] = l4_fpage(page, L4_PAGE_SIZE, m.word[0] & 2 ? L4_WRITE : 0);
            m.word[0] = address;
            given++;
        } else if (address < HEAP) {
            volatile uint32_t *own = (volatile uint32_t *)address;
            *own = *own;
            m.word[0] = address;
            m.word[1] = l4_fpage(address, L4_PAGE_SIZE, L4_WRITE);
            code++;
        } else {
            print("fault at %x: the child is given up\n", m.word[0] & ~3u);
            break;
        }
        dope = l4_reply_and_wait(&m, send);
    }
    print("%u pages of the heap were given\n", given);
    return code == 0;
}
