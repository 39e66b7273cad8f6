/* Two sandboxes against the first wall, run by the suite `keys`: one can write to a file of the host's that the other may only read and run.
 *
 * two write FILE SAID: puts harmless code there, waits until SAID shows that the other has run it, and puts an instruction in it that loads the key
 * register.
 * two run FILE: maps and runs the code, until it is other code or does what it did at first.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A word of kernel memory. */
#define CONTROL (0x552000000000ul + (24ul << 20))
/* Looks at what the other has done, of 50 ms each. */
#define LOOKS 1200

/* mov $1,%eax; ret */
static const unsigned char harmless[16] = {0xb8, 1, 0, 0, 0, 0xc3};
/* xor %eax,%eax; xor %ecx,%ecx; xor %edx,%edx; wrpkru; ret */
static const unsigned char opening[16] = {0x31, 0xc0, 0x31, 0xc9, 0x31, 0xd2, 0x0f, 0x01, 0xef, 0xc3};

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int write_code(const char *path, const char *said)
{
	char page[4096] = {0};
	memcpy(page, harmless, sizeof harmless);
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
	if (file < 0 || write(file, page, sizeof page) != sizeof page)
		return fail(path);
	for (int look = 0; look < LOOKS; look++) {
		char word[64] = {0};
		int other = open(said, O_RDONLY);
		if (other >= 0 && read(other, word, sizeof word - 1) > 0 && strstr(word, "mapped")) {
			memcpy(page, opening, sizeof opening);
			return pwrite(file, page, sizeof page, 0) == sizeof page ? 0 : fail(path);
		}
		close(other);
		usleep(50000);
	}
	return 2;
}

static void refused(int signal)
{
	const char *line = signal == SIGILL ? "SIGILL\n" : "SIGSEGV\n";
	_exit(write(1, line, strlen(line)) > 0 ? 0 : 1);
}

static int run_code(const char *path)
{
	int file = open(path, O_RDONLY);
	if (file < 0)
		return fail(path);
	unsigned char *code = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	if (code == MAP_FAILED)
		return fail(path);
	signal(SIGILL, refused);
	signal(SIGSEGV, refused);
	int (*run)(void) = (int (*)(void))(uintptr_t)code;
	printf("mapped %d\n", run());
	fflush(stdout);
	for (int look = 0; look < LOOKS; look++) {
		unsigned char now[16] = {0};
		if (pread(file, now, sizeof now, 0) == sizeof now && !memcmp(now, opening, sizeof now)) {
			/* Its own copy still returns 1. Opened, the key lets the kernel's memory be read. */
			if (run() != 1)
				printf("the kernel's word: %lx\n", (unsigned long)*(volatile uint64_t *)CONTROL);
			else
				puts("a copy");
			return 0;
		}
		usleep(50000);
	}
	puts("nothing was written");
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "write"))
		return write_code(argv[2], argv[3]);
	return argc == 3 && !strcmp(argv[1], "run") ? run_code(argv[2]) : 2;
}
