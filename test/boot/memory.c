// Paged memory: copy on write, shared mappings, files that are mapped and cut, room given back.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
static sigjmp_buf back;
static int caught, code;
static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)context;
	caught = signal;
	code = info->si_code;
	siglongjmp(back, 1);
}

static void check(const char *what, int good) { printf("%s %s\n", what, good ? "ok" : "WRONG"); }

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);

	char *private = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	strcpy(private, "parent");
	if (fork() == 0) {
		int seen = strcmp(private, "parent") == 0;
		strcpy(private, "child");
		strcpy(shared, seen ? "child" : "lost");
		_exit(0);
	}
	wait(NULL);
	check("private after fork", strcmp(private, "parent") == 0);
	check("shared after fork", strcmp(shared, "child") == 0);

	int fd = open("/tmp/file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char page[PAGE];
	memset(page, 'f', PAGE);
	for (int i = 0; i < 4; i++)
		if (write(fd, page, PAGE) != PAGE)
			return 1;
	char *file = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *copy = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	copy[0] = 'p';
	file[1] = 's';
	pread(fd, page, 2, 0);
	check("shared write reaches the file", page[0] == 'f' && page[1] == 's');
	check("private write does not", copy[0] == 'p' && file[0] == 'f');
	pwrite(fd, "w", 1, 3 * PAGE);
	check("file write reaches the mapping", file[3 * PAGE] == 'w');
	ftruncate(fd, PAGE);
	caught = 0;
	if (sigsetjmp(back, 1) == 0)
		(void)*(volatile char *)(file + 2 * PAGE);
	check("behind the end of a cut file", caught == SIGBUS);

	mprotect(private, PAGE, PROT_READ);
	caught = 0;
	if (sigsetjmp(back, 1) == 0)
		private[0] = 'x';
	check("write without the right", caught == SIGSEGV && code == SEGV_ACCERR);
	mprotect(private, PAGE, PROT_NONE);
	caught = 0;
	if (sigsetjmp(back, 1) == 0)
		(void)*(volatile char *)private;
	check("no right at all", caught == SIGSEGV && code == SEGV_ACCERR);
	mprotect(private, PAGE, PROT_READ | PROT_WRITE);
	mprotect(private, PAGE, PROT_WRITE);
	check("a right to write is one to read", *(volatile char *)private == 'p');
	mprotect(private, PAGE, PROT_READ | PROT_WRITE);
	check("what was there is there again", strcmp(private, "parent") == 0);
	madvise(private, PAGE, MADV_DONTNEED);
	check("dropped pages are zero", private[0] == 0);
	private[7 * PAGE] = '7';
	char *moved = mremap(private, 8 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	check("moved and grown", moved != MAP_FAILED && moved[7 * PAGE] == '7' && moved[63 * PAGE] == 0);
	munmap(moved, 64 * PAGE);
	caught = 0;
	if (sigsetjmp(back, 1) == 0)
		(void)*(volatile char *)moved;
	check("gone", caught == SIGSEGV && code == SEGV_MAPERR);
	check("a call with a bad pointer", write(1, moved, 1) == -1);

	// Memory comes back: far more than the machine has, in turns.
	for (int i = 0; i < 64; i++) {
		char *turn = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (long at = 0; at < 32 << 20; at += PAGE)
			turn[at] = 1;
		munmap(turn, 32 << 20);
	}
	check("memory comes back", 1);
	return 0;
}
