/* What the programs share beside the interface. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include <l4/boot.h>
#include <l4/l4.h>

void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int byte, size_t count);
int memcmp(const void *a, const void *b, size_t count);

/* A line by the kernel's debugger: %s, %d, %u, %x. */
__attribute__((format(printf, 1, 2))) void print(const char *format, ...);

/* The first function of a thread that is a pager. */
void give_pages(void);

int has_argument(const l4_loader *loader, const char *wanted);

/* The first function of a program, with what its loader and the kernel pass. */
int main(const l4_loader *loader, const l4_info *info);

/* A stack: where it ends. */
#define STACK(name, size) static char name[size] __attribute__((aligned(16)))
#define STACK_END(name) ((void *)(name + sizeof name))

#endif
