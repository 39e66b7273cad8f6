/* What is at the end of each i-let's stack: ILOCAL_SIZE in abi/src/invasive/types.rs, in two halves. */
#ifndef OCTO_STACK_H
#define OCTO_STACK_H

#include "record.h"

enum { ILOCAL_SIZE = 256, LIBRARY_SIZE = 256 };

/* The end of the running i-let's stack. Stacks are as long as they are aligned. */
static inline octo_word octo_stack_end(void)
{
    octo_word size = octo_record()->stack_size;
    return ((octo_word)__builtin_frame_address(0) | (size - 1)) + 1;
}

/* At an i-let's start and end (fls.c). */
void octo_fls_begin(void);
void octo_fls_end(void);

#endif
