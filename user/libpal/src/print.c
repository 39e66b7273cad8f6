/* Text for the console, and what the compiler calls. */
#include <stdarg.h>

#include "internal.h"

void *memcpy(void *to, const void *from, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        ((char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int byte, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        ((char *)to)[i] = (char)byte;
    return to;
}

struct out {
    int len;
    char text[512];
};

static void put(struct out *out, char c)
{
    if (out->len < (int)sizeof out->text)
        out->text[out->len++] = c;
}

static void number(struct out *out, unsigned long value, unsigned base)
{
    char digits[24];
    int n = 0;
    do {
        digits[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    while (n)
        put(out, digits[--n]);
}

static void one(struct out *out, char c, bool wide, va_list *args)
{
    switch (c) {
    case 's':
        for (const char *s = va_arg(*args, const char *); *s; s++)
            put(out, *s);
        break;
    case 'c':
        put(out, (char)va_arg(*args, int));
        break;
    case 'd': {
        long value = wide ? va_arg(*args, long) : va_arg(*args, int);
        if (value < 0)
            put(out, '-');
        number(out, value < 0 ? -(unsigned long)value : (unsigned long)value, 10);
        break;
    }
    case 'u':
    case 'x':
        number(out, wide ? va_arg(*args, unsigned long) : va_arg(*args, unsigned), c == 'x' ? 16 : 10);
        break;
    case 'p':
        put(out, '0');
        put(out, 'x');
        number(out, (unsigned long)va_arg(*args, void *), 16);
        break;
    default:
        put(out, c);
    }
}

int pal_printf(PAL_STR format, ...)
{
    static PAL_HANDLE console;
    struct out out = { 0 };
    va_list args;
    va_start(args, format);
    for (const char *p = format; *p; p++) {
        if (*p != '%') {
            put(&out, *p);
            continue;
        }
        bool wide = *++p == 'l';
        if (wide)
            p++;
        if (!*p)
            break;
        one(&out, *p, wide, &args);
    }
    va_end(args);
    if (!console && !(console = DkStreamOpen("dev:tty", PAL_ACCESS_WRONLY, 0, 0, 0)))
        return -1;
    int done = 0;
    while (done < out.len) {
        PAL_NUM n = DkStreamWrite(console, 0, (PAL_NUM)(out.len - done), out.text + done, NULL);
        if (!n)
            return -1;
        done += (int)n;
    }
    return done;
}
