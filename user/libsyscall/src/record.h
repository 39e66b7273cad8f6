/* The core's record, which the kernel fills in: abi/src/invasive/record.rs. The offsets are known to entry.S. */
#ifndef OCTO_RECORD_H
#define OCTO_RECORD_H

#include "octo_types.h"

struct octo_record {
    struct octo_record *self;
    octo_word cpu, tile, tile_cores, tiles;
    octo_word entry, entry_words[3];
    octo_word library, functions, answers;
    octo_word argc;
    const char *const *argv;
    octo_word stack_size, spare;
};

/* The record of the core the caller runs on. */
static inline struct octo_record *octo_record(void)
{
    struct octo_record *record;
#if defined(__x86_64__)
    __asm__ volatile("mov %%fs:0, %0" : "=r"(record));
#elif defined(__sparc__)
    __asm__ volatile("mov %%g7, %0" : "=r"(record));
#else
#error "no record on this machine"
#endif
    return record;
}

#endif
