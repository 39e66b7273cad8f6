/* O_APPEND: the position afterwards is right behind what this writer has written, whatever others append meanwhile; nothing written
 * moves nothing. */
#include "t.h"
enum { ROUNDS = 2000, LEN = 16 };

static int appends(const char *mark)
{
	int f = must(open("log", O_RDWR | O_APPEND)), right = 0;
	for (int i = 0; i < ROUNDS; i++) {
		char out[LEN + 1], in[LEN + 1] = "";
		snprintf(out, sizeof out, "%s %013d\n", mark, i);
		if (write(f, out, LEN) != LEN)
			break;
		off_t at = lseek(f, 0, SEEK_CUR);
		if (pread(f, in, LEN, at - LEN) == LEN && !memcmp(in, out, LEN))
			right++;
	}
	close(f);
	return right;
}

int main(void)
{
	int f = must(open("log", O_RDWR | O_CREAT | O_APPEND, 0600)), code;
	R(write(f, "0123456789abcdef", LEN));
	R(lseek(f, 4, SEEK_SET));
	R(write(f, "", 0));
	R(lseek(f, 0, SEEK_CUR));
	R(pwrite(f, "0123456789abcdef", LEN, 3));
	R(lseek(f, 0, SEEK_CUR));
	struct iovec v[2] = {{"01234567", 8}, {"89abcdef", 8}};
	R(writev(f, v, 2));
	R(lseek(f, 0, SEEK_CUR));
	pid_t child = must(fork());
	if (!child)
		_exit(appends("child") != ROUNDS);
	N(appends("mine "));
	must(waitpid(child, &code, 0));
	N(code);
	struct stat s;
	fstat(f, &s);
	N(s.st_size);
	return t_failed;
}
