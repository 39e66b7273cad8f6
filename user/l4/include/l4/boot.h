/* What the first tasks find in memory. */
#ifndef L4_BOOT_H
#define L4_BOOT_H

#include <stdint.h>

typedef struct {
    uint32_t low, high;
} l4_range;

typedef struct {
    uint32_t esp, eip;
    l4_range memory;
} l4_server;

/* The kernel info page. */
typedef struct {
    uint32_t magic, version;
    uint8_t strings, spare[7];
    l4_server debugger, sigma0, sigma1, root;
    uint32_t config[4];
    l4_range memory, reserved[2], semi, dedicated[4];
    uint64_t clock;
} l4_info;

#define L4_INFO_MAGIC 0x4be6344cu

typedef struct {
    uint32_t start, end, command, spare;
} l4_module;

/* What a loader by Multiboot passes. */
typedef struct {
    uint32_t flags, lower, upper, device, command, module_count, modules;
} l4_loader;

#endif
