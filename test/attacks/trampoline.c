/* Everything that changes memory, on the pages the kernel put into the program for calls that no longer trap. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "code.h"

static long at_site(unsigned char *site)
{
	return ((long (*)(void))site)();
}

/* A call made by code of its own, often enough to be rewritten where it is. */
static unsigned char *make_site(void)
{
	static const unsigned char getpid_site[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
	unsigned char *page = memory(PAGE, PROT_READ | PROT_WRITE);
	memset(page, 0x90, 512);
	memcpy(page + 512, getpid_site, sizeof getpid_site);
	if (mprotect(page, PAGE, PROT_READ | PROT_EXEC))
		_exit(99);
	for (int i = 0; i < 20; i++)
		if (at_site(page + 512) != getpid())
			_exit(98);
	return page + 512;
}

/* Tries all there is on one range. Whether its first page can be written to afterwards, or is no longer what it was. */
static int change(char *start, size_t len)
{
	static const unsigned char ones[16] = {[0 ... 15] = 1};
	unsigned char before[PAGE];
	struct iovec from = {(void *)ones, sizeof ones}, to = {start, sizeof ones};
	memcpy(before, start, PAGE);
	mprotect(start, len, PROT_READ | PROT_WRITE);
	mprotect(start, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	syscall(SYS_pkey_mprotect, start, len, PROT_READ | PROT_WRITE, 0);
	process_vm_writev(getpid(), &to, 1, &from, 1, 0);
	int fd = open("/proc/self/mem", O_RDWR);
	if (fd >= 0) {
		pwrite(fd, ones, sizeof ones, (off_t)(uintptr_t)start);
		close(fd);
	}
	int zero = open("/dev/zero", O_RDONLY);
	read(zero, start, sizeof ones);
	close(zero);
	madvise(start, len, MADV_DONTNEED);
	madvise(start, len, MADV_FREE);
	madvise(start, len, MADV_DONTFORK);
	madvise(start, len, MADV_WIPEONFORK);
	mremap(start, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, memory(len, PROT_NONE));
	mremap(start, len, len, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
	mremap(memory(len, PROT_READ | PROT_WRITE), len, len, MREMAP_MAYMOVE | MREMAP_FIXED, start);
	mmap(start, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	munmap(start, len);
	munmap(start, PAGE);
	return memcmp(before, start, PAGE) != 0;
}

static int attack(void)
{
	unsigned char *site = make_site();
	char line[512];
	struct { char *start; size_t len; } ranges[64];
	int count = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && count < 64 && fgets(line, sizeof line, maps)) {
		unsigned long start, end;
		char rights[8];
		if (strstr(line, "[janua]") && sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && rights[2] == 'x') {
			ranges[count].start = (char *)start;
			ranges[count++].len = end - start;
		}
	}
	fclose(maps);
	for (int i = 0; i < count; i++)
		if (change(ranges[i].start, ranges[i].len))
			return 0;
	/* Calls go on as before, in a child too. */
	pid_t pid = fork();
	if (pid == 0)
		_exit(at_site(site) == getpid() ? 0 : 1);
	int status;
	if (waitpid(pid, &status, 0) != pid || status || at_site(site) != getpid())
		return 0;
	return REFUSED;
}
