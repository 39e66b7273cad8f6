/* Copies within a tile, and futures of calls. */
#ifndef OCTO_DMA_H
#define OCTO_DMA_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

int sync_dma_transfer(void *destination, const void *source, buf_size_t size);
int sync_dma_memset(void *destination, int value, buf_size_t size);
int async_ldma_copy(void *destination, const void *source, buf_size_t size, syscall_future *future);
int async_ldma_copy_ilet(void *destination, const void *source, buf_size_t size, simple_ilet *then);

void syscall_future_init(syscall_future *future);
octo_word syscall_future_ret_val(syscall_future *future);
/* Starts the i-let on the caller's claim when the future is complete, at once if it is; any future may be given.
 * -1 when too many wait so. */
int syscall_future_on_completion(syscall_future *future, simple_ilet *then);
octo_word syscall_future_wait(syscall_future *future);

#ifdef __cplusplus
}
#endif
#endif
