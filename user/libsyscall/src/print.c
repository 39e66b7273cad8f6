#include <stdarg.h>

#include "call.h"

size_t strlen(const char *text);

/* A line on its way: written when it is full and at the end, so that most lines are one call. */
struct line {
    char text[256];
    unsigned len;
    int total;
};

static void put(struct line *line, char c)
{
    if (line->len == sizeof line->text) {
        print(line->text, line->len);
        line->len = 0;
    }
    line->text[line->len++] = c;
    line->total++;
}

/* A piece of text in its field. */
static void field(struct line *line, const char *text, int len, int width, int left, char pad)
{
    int fill = width - len;
    if (pad == '0' && len && (*text == '-')) {
        put(line, *text++);
        len--;
    }
    for (; !left && fill > 0; fill--)
        put(line, pad);
    while (len--)
        put(line, *text++);
    for (; fill > 0; fill--)
        put(line, ' ');
}

/* Digits of a number, ending before `end`; returns where they begin. */
static char *digits(char *end, uint64_t value, unsigned base)
{
    do
        *--end = "0123456789abcdef"[value % base];
    while (value /= base);
    return end;
}

/* A number with decimals; with an exponent where `scientific`. */
static int decimal(char *out, double value, int places, int scientific)
{
    char *at = out;
    int exponent = 0;
    if (value != value) {
        out[0] = 'n', out[1] = 'a', out[2] = 'n';
        return 3;
    }
    if (value < 0) {
        *at++ = '-';
        value = -value;
    }
    if (value > 1.7976931348623157e308) {
        at[0] = 'i', at[1] = 'n', at[2] = 'f';
        return (int)(at - out) + 3;
    }
    if (places > 17)
        places = 17;
    if (scientific && value > 0) {
        while (value >= 10)
            value /= 10, exponent++;
        while (value < 1)
            value *= 10, exponent--;
    }
    uint64_t scale = 1;
    for (int i = 0; i < places; i++)
        scale *= 10;
    if (value >= 1.8e19) {
        scientific = 1;
        while (value >= 10)
            value /= 10, exponent++;
    }
    uint64_t whole = (uint64_t)value;
    uint64_t part = (uint64_t)((value - (double)whole) * (double)scale + 0.5);
    if (part >= scale) {
        part -= scale;
        if (++whole == 10 && scientific)
            whole = 1, exponent++;
    }
    char buffer[24], *start = digits(buffer + sizeof buffer, whole, 10);
    while (start < buffer + sizeof buffer)
        *at++ = *start++;
    if (places) {
        *at++ = '.';
        start = digits(buffer + sizeof buffer, part, 10);
        for (int fill = places - (int)(buffer + sizeof buffer - start); fill > 0; fill--)
            *at++ = '0';
        while (start < buffer + sizeof buffer)
            *at++ = *start++;
    }
    if (scientific) {
        *at++ = 'e';
        *at++ = exponent < 0 ? '-' : '+';
        if (exponent < 0)
            exponent = -exponent;
        if (exponent < 10)
            *at++ = '0';
        start = digits(buffer + sizeof buffer, (uint64_t)exponent, 10);
        while (start < buffer + sizeof buffer)
            *at++ = *start++;
    }
    return (int)(at - out);
}

int octo_printf(const char *format, ...)
{
    struct line line = {.len = 0, .total = 0};
    va_list args;
    va_start(args, format);
    for (; *format; format++) {
        if (*format != '%') {
            put(&line, *format);
            continue;
        }
        int left = 0, width = 0, places = -1, wide = 0;
        char pad = ' ', buffer[64], *end = buffer + sizeof buffer, *start;
        for (format++; *format == '-' || *format == '0'; format++)
            *format == '-' ? (left = 1) : (pad = '0');
        for (; *format >= '0' && *format <= '9'; format++)
            width = width * 10 + *format - '0';
        if (*format == '.')
            for (places = 0, format++; *format >= '0' && *format <= '9'; format++)
                places = places * 10 + *format - '0';
        for (; *format == 'l' || *format == 'z'; format++)
            wide += *format == 'z' ? (sizeof(size_t) == sizeof(long)) : 1;
        if (left)
            pad = ' ';
        switch (*format) {
        case 'd':
        case 'i': {
            long long value = wide > 1 ? va_arg(args, long long) : wide ? va_arg(args, long) : va_arg(args, int);
            start = digits(end, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
            if (value < 0)
                *--start = '-';
            field(&line, start, (int)(end - start), width, left, pad);
            break;
        }
        case 'u':
        case 'x': {
            uint64_t value =
                wide > 1 ? va_arg(args, unsigned long long) : wide ? va_arg(args, unsigned long) : va_arg(args, unsigned);
            start = digits(end, value, *format == 'u' ? 10 : 16);
            field(&line, start, (int)(end - start), width, left, pad);
            break;
        }
        case 'p':
            start = digits(end, WORD(va_arg(args, void *)), 16);
            *--start = 'x', *--start = '0';
            field(&line, start, (int)(end - start), width, left, ' ');
            break;
        case 'c':
            buffer[0] = (char)va_arg(args, int);
            field(&line, buffer, 1, width, left, ' ');
            break;
        case 's': {
            const char *text = va_arg(args, const char *);
            int len = (int)strlen(text ? text : (text = "(null)"));
            field(&line, text, places >= 0 && places < len ? places : len, width, left, ' ');
            break;
        }
        case 'f':
        case 'e': {
            int len = decimal(buffer, va_arg(args, double), places < 0 ? 6 : places, *format == 'e');
            field(&line, buffer, len, width, left, pad);
            break;
        }
        case '%':
            put(&line, '%');
            break;
        default:
            put(&line, '?');
        }
    }
    va_end(args);
    if (line.len)
        print(line.text, line.len);
    return line.total;
}
