/* Standard input that the host does not read by copying: a socket, a file with O_DIRECT; and a file that is appended to by who inherits it. `give KIND PROGRAM...` becomes the program
 * with such an input; `take KIND` prints what it reads, which is to be the same on Linux. Run by the suite `sandbox`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096ul
#define FILE_SIZE (300 * PAGE)
#define MUST(what) ((what) ? (void)0 : (printf("%d: %s: %s\n", __LINE__, #what, strerror(errno)), exit(1)))

static unsigned char byte_at(size_t at)
{
	return at * 31 + at / PAGE;
}

static unsigned char *pages(size_t count, int prot)
{
	unsigned char *at = mmap(0, count * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(at != MAP_FAILED);
	return at;
}

static void give(const char *kind, char **program)
{
	int fds[2];
	unsigned char *bytes = pages(FILE_SIZE / PAGE, PROT_READ | PROT_WRITE);
	for (size_t at = 0; at < FILE_SIZE; at++)
		bytes[at] = byte_at(at);
	if (!strcmp(kind, "direct")) {
		fds[1] = open("direct", O_RDWR | O_CREAT | O_TRUNC, 0600);
		MUST(fds[1] >= 0 && write(fds[1], bytes, FILE_SIZE) == (ssize_t)FILE_SIZE && !fsync(fds[1]));
		fds[0] = open("direct", O_RDONLY | O_DIRECT);
		/* Not every file system has it. */
		if (fds[0] < 0)
			fds[0] = open("direct", O_RDONLY);
		MUST(fds[0] >= 0 && !unlink("direct"));
	} else if (!strcmp(kind, "append")) {
		fds[0] = open("appended", O_RDWR | O_CREAT | O_TRUNC, 0600);
		MUST(fds[0] >= 0 && pwrite(fds[0], bytes, 100, 0) == 100 && !unlink("appended"));
	} else {
		int is_stream = !strcmp(kind, "stream");
		MUST(!socketpair(AF_UNIX, is_stream ? SOCK_STREAM : SOCK_DGRAM, 0, fds));
		MUST(write(fds[1], bytes, is_stream ? 3 * PAGE : 20 * PAGE) > 0);
		MUST(write(fds[1], bytes, 100) == 100);
		MUST(is_stream ? !shutdown(fds[1], SHUT_WR) : write(fds[1], "", 0) == 0);
	}
	MUST(dup2(fds[0], 0) == 0);
	execvp(program[0], program);
	exit(127);
}

/* A read's count or error, and whether the bytes are those at `from`. */
static void say(const char *what, ssize_t got, const unsigned char *bytes, size_t from)
{
	int same = 1;
	for (ssize_t at = 0; at < got; at++)
		same &= bytes[at] == byte_at(from + at);
	printf("%s: %zd %s%s\n", what, got, got < 0 ? strerror(errno) : "", same ? "" : " other bytes");
}

static int take(const char *kind)
{
	unsigned char *room = pages(FILE_SIZE / PAGE + 2, PROT_READ | PROT_WRITE), *closed = pages(1, PROT_READ);
	if (!strcmp(kind, "direct")) {
		say("page", read(0, room, PAGE), room, 0);
		say("closed", read(0, closed, PAGE), closed, 0);
		say("next", read(0, room, 2 * PAGE), room, PAGE);
		say("at", pread(0, room, PAGE, 7 * PAGE), room, 7 * PAGE);
		struct iovec two[2] = { { room + 3 * PAGE, PAGE }, { room + 4 * PAGE, PAGE } };
		say("two", readv(0, two, 2), room + 3 * PAGE, 3 * PAGE);
		say("not aligned", pread(0, room + 1, PAGE, 0), room + 1, 0);
		say("rest", read(0, room, FILE_SIZE + PAGE), room, 5 * PAGE);
		say("end", read(0, room, PAGE), room, 0);
		return 0;
	}
	if (!strcmp(kind, "append")) {
		say("set", fcntl(0, F_SETFL, O_APPEND), room, 0);
		for (size_t at = 0; at < 8; at++)
			room[at] = byte_at(100 + at);
		say("write", write(0, room, 4), room, 100);
		printf("at %ld\n", (long)lseek(0, 0, SEEK_CUR));
		struct iovec two[2] = { { room + 4, 1 }, { room + 5, 3 } };
		MUST(lseek(0, 7, SEEK_SET) == 7);
		say("two", writev(0, two, 2), room, 100);
		printf("at %ld\n", (long)lseek(0, 0, SEEK_CUR));
		say("all", pread(0, room, 200, 0), room, 0);
		say("clear", fcntl(0, F_SETFL, 0), room, 0);
		MUST(lseek(0, 8, SEEK_SET) == 8);
		say("over", write(0, room, 0), room, 0);
		say("over", write(0, room + 8, 4), room, 0);
		printf("at %ld\n", (long)lseek(0, 0, SEEK_CUR));
		return 0;
	}
	if (!strcmp(kind, "stream")) {
		/* A buffer that cannot be written to takes nothing out. */
		say("closed", read(0, closed, 10), closed, 0);
		say("first", read(0, room + 5, 100), room + 5, 0);
		struct iovec two[2] = { { room, 50 }, { room + PAGE - 50, 50 } };
		ssize_t got = readv(0, two, 2);
		say("two", got > 50 ? 50 : got, room, 100);
		size_t all = 100 + got;
		while ((got = read(0, room + all, 64 * PAGE)) > 0)
			all += got;
		printf("all: %zu\n", all);
		return 0;
	}
	say("large", read(0, room, 64 * PAGE), room, 0);
	say("cut", read(0, room, 10), room, 0);
	say("empty", read(0, room, 10), room, 0);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "give"))
		give(argv[2], argv + 3);
	return argc == 3 ? take(argv[2]) : 2;
}
