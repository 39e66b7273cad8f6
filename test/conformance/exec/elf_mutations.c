/* Three hundred random mutations of an ELF image: whatever the result, this process goes on and can still run a sound program. */
/* seconds: 120 */
#include "t.h"
static unsigned char img[1 << 20];
static uint64_t seed;
static uint64_t rnd(void)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed;
}
int main(int argc, char **argv)
{
	if (argc > 1)
		return 42;
	seed = 0x9e3779b97f4a7c15ull * (t_seed() + 1);
	int f = must(open("/proc/self/exe", O_RDONLY));
	ssize_t n = must(read(f, img, sizeof img));
	close(f);
	int ended = 0, tries = 300;
	for (int i = 0; i < tries; i++) {
		unsigned char save[1024];
		memcpy(save, img, sizeof save);
		for (int k = 1 + rnd() % 4; k > 0; k--) {
			unsigned o = rnd() % (64 + 56 * 12);
			unsigned char v[] = {0, 0xff, 0x7f, 0x80, rnd(), rnd(), 1, 0xfe};
			for (unsigned w = 1 << rnd() % 4, c = v[rnd() % 8]; w > 0; w--, o++)
				img[o] = c;
		}
		unlink("m");
		f = must(open("m", O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0755));
		must(write(f, img, n));
		close(f);
		memcpy(img, save, sizeof save);
		pid_t p = must(fork());
		if (!p) {
			struct rlimit l = {0, 0};
			setrlimit(RLIMIT_CORE, &l);
			/* One that asks for all the memory there is must not get it, or the limit met is reported. */
			struct rlimit most = {1 << 30, 1 << 30};
			setrlimit(RLIMIT_AS, &most);
			int z = open("/dev/null", O_RDWR);
			dup2(z, 0), dup2(z, 1), dup2(z, 2);
			alarm(2);
			char *a[] = {"m", "x", 0}, *e[] = {0};
			execve("./m", a, e);
			_exit(51);
		}
		int st;
		if (waitpid(p, &st, 0) == p && (WIFEXITED(st) || WIFSIGNALED(st)))
			ended++;
	}
	T(ended == tries);
	CHILD("sound one", execl("/proc/self/exe", "x", "y", (char *)0));
	return t_done();
}
