/* Page tables: used up by few bytes in each. For limits.c. */
#include <sys/prctl.h>

/* Pages of zeroes, which cost no memory; what shows them is the host's, and grows. */
static int page_tables(void)
{
    const size_t most = 1ul << 40;
    volatile char *at = map(most, MAP_PRIVATE | MAP_NORESERVE);
    MUST(at != MAP_FAILED);
    for (size_t offset = 0; offset < most; offset += 2 * MIB)
        MUST(at[offset] == 0);
    return 0;
}

/* The same by one page of a file, mapped for reading in every table's range. */
static int tables_of_mappings(void)
{
    const size_t count = 60000;
    int fd = open("/proc/self/exe", O_RDONLY);
    volatile char *at = mmap(0, count * 2 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MUST(fd >= 0 && at != MAP_FAILED && !munmap((void *)at, count * 2 * MIB));
    for (size_t offset = 0; offset < count * 2 * MIB; offset += 2 * MIB) {
        MUST(mmap((void *)(at + offset), 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == at + offset);
        MUST(at[offset] == 0x7f);
    }
    return 0;
}

/* The same without rights in the end: the tables stay. And under a name that is no text, which the host shows beside their size. */
static int tables_kept(void)
{
    const size_t most = 1ul << 37;
    volatile char *at = mmap(0, most, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(at != MAP_FAILED && !prctl(PR_SET_NAME, "\xff\xfe\xfd"));
    for (size_t offset = 0; offset < most; offset += 2 * MIB)
        MUST(at[offset] == 0);
    MUST(!mprotect((void *)at, most, PROT_NONE));
    sleep(5);
    return 0;
}
