#include "call.h"

void *mem_map(mem_type_t type, size_t pages)
{
    return (void *)CALL2(MEM_MAP, type, pages);
}

int mem_unmap(void *start, size_t pages)
{
    return (int)CALL2(MEM_UNMAP, start, pages);
}

size_t mem_get_page_size(void)
{
    return CALL0(MEM_GET_PAGE_SIZE);
}

size_t mem_get_page_count(mem_type_t type)
{
    return CALL1(MEM_GET_PAGE_COUNT, type);
}

/* Allocation: blocks of powers of two, kept in lists once freed; large ones are pages of their own. */

enum { SMALLEST = 6, LARGEST = 11, PAGE = 4096 };

/* Is right below the memory it describes. */
struct block {
    union {
        struct block *next; /* while free */
        void *start;        /* of a large one: what was mapped */
    };
    size_t size; /* usable bytes behind this */
    size_t pages; /* 0: of a list */
    size_t spare;
};

static simple_spinlock lock;
static struct block *lists[2][LARGEST + 1];

static int class_of(size_t bytes)
{
    int class = SMALLEST;
    while (class <= LARGEST && ((size_t)1 << class) - sizeof(struct block) < bytes)
        class++;
    return class;
}

static void *allocate_pages(mem_type_t type, size_t bytes, size_t alignment)
{
    size_t room = bytes + alignment + sizeof(struct block);
    if (room < bytes)
        return NULL;
    size_t pages = (room + PAGE - 1) / PAGE;
    char *start = mem_map(type, pages);
    if (!start)
        return NULL;
    octo_word at = (WORD(start) + sizeof(struct block) + alignment - 1) & ~(alignment - 1);
    struct block *block = (struct block *)at - 1;
    *block = (struct block){{.start = start}, WORD(start) + pages * PAGE - at, pages, 0};
    return (void *)at;
}

void *mem_allocate_aligned(mem_type_t type, size_t bytes, size_t alignment)
{
    if (alignment & (alignment - 1))
        return NULL;
    if (alignment <= sizeof(struct block))
        return mem_allocate(type, bytes);
    return allocate_pages(type, bytes, alignment);
}

void *mem_allocate(mem_type_t type, size_t bytes)
{
    int class = class_of(bytes);
    /* Lists are kept for the memory of the tile; other memory is rare. */
    if (class > LARGEST || (type != MEM_TLM_LOCAL && type != MEM_TLM_GLOBAL))
        return allocate_pages(type, bytes, sizeof(struct block));
    simple_spinlock_lock(&lock);
    struct block **list = &lists[type][class];
    if (!*list) {
        char *page = mem_map(type, 1);
        size_t step = (size_t)1 << class;
        for (size_t at = 0; page && at + step <= PAGE; at += step) {
            struct block *block = (struct block *)(page + at);
            *block = (struct block){{.next = *list}, step - sizeof *block, 0, WORD(type)};
            *list = block;
        }
    }
    struct block *block = *list;
    if (block)
        *list = block->next;
    simple_spinlock_unlock(&lock);
    return block ? block + 1 : NULL;
}

void mem_free(void *memory)
{
    if (!memory)
        return;
    struct block *block = (struct block *)memory - 1;
    if (block->pages) {
        mem_unmap(block->start, block->pages);
        return;
    }
    simple_spinlock_lock(&lock);
    struct block **list = &lists[block->spare][class_of(block->size)];
    block->next = *list;
    *list = block;
    simple_spinlock_unlock(&lock);
}

void *mem_reallocate(mem_type_t type, void *memory, size_t bytes)
{
    size_t old = memory ? ((struct block *)memory - 1)->size : 0;
    if (old >= bytes)
        return memory;
    char *fresh = mem_allocate(type, bytes);
    if (fresh && memory) {
        for (size_t at = 0; at < old; at++)
            fresh[at] = ((char *)memory)[at];
        mem_free(memory);
    }
    return fresh;
}
