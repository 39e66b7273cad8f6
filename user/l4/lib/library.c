/* What the compiler calls, output, and the end of a program. */
#include <l4/debug.h>
#include <l4/l4.h>
#include <stdarg.h>

#include "library.h"

void *memcpy(void *to, const void *from, size_t count)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    while (count--)
        *out++ = *in++;
    return to;
}

void *memset(void *to, int byte, size_t count)
{
    unsigned char *out = to;
    while (count--)
        *out++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *a, const void *b, size_t count)
{
    const unsigned char *x = a, *y = b;
    for (; count; count--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}

/* The system ends with the root task's main function. */
_Noreturn void l4_end(int code)
{
    l4_exit((uint32_t)code);
}

/* %s, %d, %u and %x: a line in one piece, so that threads do not write into one another's. */
void print(const char *format, ...)
{
    char line[256];
    size_t len = 0;
    va_list list;
    va_start(list, format);
    for (; *format && len < sizeof line - 1; format++) {
        char digits[12];
        const char *text = digits;
        if (*format != '%') {
            line[len++] = *format;
            continue;
        }
        format++;
        if (*format == 's') {
            text = va_arg(list, const char *);
        } else {
            uint32_t number = va_arg(list, uint32_t), base = *format == 'x' ? 16 : 10;
            char *digit = digits + sizeof digits;
            int minus = *format == 'd' && (int32_t)number < 0;
            if (minus)
                number = -number;
            *--digit = 0;
            do
                *--digit = "0123456789abcdef"[number % base];
            while (number /= base);
            if (minus)
                *--digit = '-';
            text = digit;
        }
        while (*text && len < sizeof line - 1)
            line[len++] = *text++;
    }
    va_end(list);
    line[len] = 0;
    l4_outstring(line);
}

/* The words of a command line behind the program's name: whether this is one. */
int has_argument(const l4_loader *loader, const char *wanted)
{
    const char *at = loader->flags & 4 ? (const char *)loader->command : "";
    while (*at) {
        const char *end = at, *w = wanted;
        while (*end && *end != ' ')
            end++;
        while (at < end && *w && *at == *w)
            at++, w++;
        if (at == end && !*w)
            return 1;
        at = *end ? end + 1 : end;
    }
    return 0;
}

/* A pager for tasks that run this task's program: they get its pages, where they are. */
void give_pages(void)
{
    l4_message m;
    uint32_t dope = l4_wait(&m);
    for (;;) {
        if (L4_ERROR(dope)) {
            dope = l4_wait(&m);
            continue;
        }
        uint32_t address = m.word[0] & ~0xfffu;
        /* So that this task has it. */
        volatile uint32_t *page = (volatile uint32_t *)address;
        *page = *page;
        m.word[0] = address;
        m.word[1] = l4_fpage(address, L4_PAGE_SIZE, L4_WRITE);
        dope = l4_reply_and_wait(&m, L4_MAP);
    }
}
