/* What compilers take for granted. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
#if defined(__x86_64__)
    void *start = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return start;
#else
    char *d = to;
    const char *s = from;
    if ((((size_t)d | (size_t)s) & (sizeof(long) - 1)) == 0)
        for (; bytes >= sizeof(long); bytes -= sizeof(long), d += sizeof(long), s += sizeof(long))
            *(long __attribute__((may_alias)) *)d = *(const long __attribute__((may_alias)) *)s;
    while (bytes--)
        *d++ = *s++;
    return to;
#endif
}

void *memmove(void *to, const void *from, size_t bytes)
{
    char *d = to;
    const char *s = from;
    if (d < s)
        while (bytes--)
            *d++ = *s++;
    else
        while (bytes--)
            d[bytes] = s[bytes];
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
#if defined(__x86_64__)
    void *start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
    return start;
#else
    char *d = to;
    while (bytes--)
        *d++ = (char)value;
    return to;
#endif
}

int memcmp(const void *one, const void *other, size_t bytes)
{
    const unsigned char *a = one, *b = other;
    for (; bytes--; a++, b++)
        if (*a != *b)
            return *a - *b;
    return 0;
}

size_t strlen(const char *text)
{
    size_t len = 0;
    while (text[len])
        len++;
    return len;
}
