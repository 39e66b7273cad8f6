#include "call.h"

int sync_dma_transfer(void *destination, const void *source, buf_size_t size)
{
    return (int)CALL3(SYNC_DMA_TRANSFER, destination, source, size);
}

int sync_dma_memset(void *destination, int value, buf_size_t size)
{
    return (int)CALL3(SYNC_DMA_MEMSET, destination, value, size);
}

int async_ldma_copy(void *destination, const void *source, buf_size_t size, syscall_future *future)
{
    return (int)CALL4(ASYNC_LDMA_COPY, destination, source, size, future);
}

int async_ldma_copy_ilet(void *destination, const void *source, buf_size_t size, simple_ilet *then)
{
    return (int)CALL4(ASYNC_LDMA_COPY_ILET, destination, source, size, then);
}

void syscall_future_init(syscall_future *future)
{
    if (ANSWERS)
        *future = (syscall_future){.pending = 1};
    else
        CALL1(SYSCALL_FUTURE_INIT, future);
}

octo_word syscall_future_ret_val(syscall_future *future)
{
    return ANSWERS ? *(volatile octo_word *)&future->value : CALL1(SYSCALL_FUTURE_RET_VAL, future);
}

int syscall_future_on_completion(syscall_future *future, simple_ilet *then)
{
    return (int)CALL2(SYSCALL_FUTURE_ON_COMPLETION, future, then);
}

octo_word syscall_future_wait(syscall_future *future)
{
    return CALL1(SYSCALL_FUTURE_WAIT, future);
}
