/* Memory. */
#ifndef OCTO_MEMORY_H
#define OCTO_MEMORY_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    MEM_INVALID = -1,
    MEM_TLM_LOCAL = 0,
    MEM_TLM_GLOBAL = 1,
    MEM_SHM = 2, /* where all tiles are one; otherwise there is none */
    MEM_ICM = 3  /* there is none */
} mem_type_t;

/* NULL when there is no room or no such memory. */
void *mem_allocate(mem_type_t type, size_t bytes);
void *mem_allocate_aligned(mem_type_t type, size_t bytes, size_t alignment);
void *mem_reallocate(mem_type_t type, void *memory, size_t bytes);
void mem_free(void *memory);

/* Zeroed pages. */
void *mem_map(mem_type_t type, size_t pages);
int mem_unmap(void *start, size_t pages);
size_t mem_get_page_size(void);
size_t mem_get_page_count(mem_type_t type);

#ifdef __cplusplus
}
#endif
#endif
