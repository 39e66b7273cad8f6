/* A program file that is run again and again, and changed between: by write, through a mapping, by truncation. What runs is
 * always what it holds. Some of its instructions hold bytes that a kernel in the same address space may have to take care of. */
/* not: i386 */
#include "t.h"
#include <elf.h>
#include <sys/mman.h>

/* 64 bytes to begin with; mov $0xef010f, %edi, whose constant is made of the bytes of another instruction; and $0x7f, %edi;
 * add $N, %edi; mov $SYS_exit, %eax; syscall; ud2. */
#define LEAD 64
static unsigned char file[4096];
static int size, number;

static void build(void)
{
	Elf64_Ehdr e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_EXEC,
			.e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_entry = 0x500000 + 120, .e_phoff = 64,
			.e_ehsize = 64, .e_phentsize = 56, .e_phnum = 1};
	Elf64_Phdr p = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x500000, .p_paddr = 0x500000, .p_align = 4096};
	static const unsigned char code[] = {0xbf, 0x0f, 0x01, 0xef, 0x00, 0x83, 0xe7, 0x7f, 0x83, 0xc7, 0x00,
					     0xb8, SYS_exit, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b};
	memset(file, 0x90, sizeof file);
	size = 120 + LEAD + sizeof code;
	number = 120 + LEAD + 10;
	p.p_filesz = p.p_memsz = size;
	memcpy(file, &e, 64);
	memcpy(file + 64, &p, 56);
	memcpy(file + 120 + LEAD, code, sizeof code);
}
static int run(const char *path)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		execl(path, path, (char *)0);
		_exit(errno);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
int main(void)
{
	char path[64];
	build();
	snprintf(path, sizeof path, "changed.%d", getpid());
	int fd = open(path, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0755);
	T(write(fd, file, size) == size);
	N(run(path) == ETXTBSY); /* it is open for writing */
	close(fd);
	for (int i = 0; i < 5; i++)
		N(run(path)); /* 0xef010f & 0x7f */
	for (int i = 1; i < 4; i++) {
		unsigned char n = i;
		fd = open(path, O_RDWR | O_CLOEXEC);
		T(pwrite(fd, &n, 1, number) == 1);
		close(fd);
		N(run(path));
		N(run(path));
	}
	for (int i = 10; i < 13; i++) {
		fd = open(path, O_RDWR | O_CLOEXEC);
		unsigned char *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		T(m != MAP_FAILED);
		close(fd);
		m[number] = i;
		/* The mapping may still write. */
		N(run(path));
		munmap(m, 4096);
		N(run(path));
		N(run(path));
		N(run(path));
	}
	/* Cut short, and something else behind it. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	T(ftruncate(fd, number) == 0);
	unsigned char rest[] = {20, 0xb8, SYS_exit, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b};
	T(pwrite(fd, rest, sizeof rest, number) == sizeof rest);
	close(fd);
	for (int i = 0; i < 3; i++)
		N(run(path));
	/* Another file with the first one's name. */
	unlink(path);
	file[number] = 30;
	fd = open(path, O_CREAT | O_RDWR | O_EXCL | O_CLOEXEC, 0755);
	T(write(fd, file, size) == size);
	close(fd);
	for (int i = 0; i < 3; i++)
		N(run(path));
	unlink(path);
	return t_done();
}
