/* Types of the invasive interface. Sizes and layouts are those of abi/src/invasive/types.rs. */
#ifndef OCTO_TYPES_H
#define OCTO_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A machine word: what a call's number and arguments are. */
typedef uintptr_t octo_word;

/* Handles. They are opaque: what they hold is the kernel's business. */
typedef struct octo_claim *claim_t;
typedef struct octo_proxy_claim *proxy_claim_t; /* NULL: failed */
typedef struct {
    octo_word word;
} dispatch_claim_t;

typedef uint8_t tile_id_t;
typedef uint32_t pe_quantity_t;
typedef int32_t pe_quantity_delta_t;
typedef uint32_t team_size_t;
typedef uint32_t buf_size_t;

typedef void (*ilet_func)(void *);
typedef void (*dual_ilet_func)(void *, void *);

/* An i-let: a function with one or two words for it. 32 bytes on x86-64, 16 on 32-bit machines. */
typedef struct {
    octo_word code, first, second, domain;
} simple_ilet;

/* Signals. The caller allocates them; each is on the tile whose i-lets wait for it. */
typedef struct {
    uint32_t left, spare;
} simple_signal;
typedef simple_signal binary_signal;
typedef struct {
    simple_signal signal;
    simple_ilet ilet;
} infect_signal;

/* Futures. The caller allocates them and leaves them alone until they have been forced. */
typedef struct {
    uint32_t pending, spare;
    octo_word value, spare_word;
} octo_future;
typedef octo_future invade_future;
typedef octo_future reinvade_future;
typedef octo_future retreat_future;
typedef octo_future syscall_future;

#ifdef __cplusplus
}
#endif
#endif
