/* A JIT that asks for memory it may write and run at the same time. */
#include "t.h"
/* not: i386 */
#define PAGE 4096
typedef int fn(int);
static void emit(unsigned char *p, int value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}
static const char *rights(void *at)
{
	static char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	while (f && fgets(line, sizeof line, f)) {
		unsigned long a, b;
		static char perms[8];
		if (sscanf(line, "%lx-%lx %7s", &a, &b, perms) == 3 && a <= (unsigned long)at && (unsigned long)at < b) {
			fclose(f);
			return perms;
		}
	}
	if (f)
		fclose(f);
	return "none";
}
int main(void)
{
	unsigned char *p = mmap(0, 8 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(p != MAP_FAILED);
	S(rights(p));
	long sum = 0;
	for (int i = 0; i < 3000; i++) {
		emit(p + i % 200 * 16, i);
		sum += ((fn *)(p + i % 200 * 16))(0);
	}
	N(sum);
	S(rights(p));
	/* The kernel stores into pages that have just run. */
	emit(p, 1);
	N(((fn *)p)(0));
	int f[2];
	must(pipe(f));
	unsigned char other[6];
	emit(other, 2);
	must(write(f[1], other, 6));
	R(read(f[0], p, 6));
	N(((fn *)p)(0));
	int file = must(open("code", O_RDWR | O_CREAT | O_TRUNC, 0600));
	emit(other, 3);
	must(write(file, other, 6));
	R(pread(file, p, 6, 0));
	N(((fn *)p)(0));
	unlink("code");
	/* A file of the host's, over pages of which some have run. */
	unsigned char image[3 * PAGE];
	file = must(open("/proc/self/exe", O_RDONLY));
	must(pread(file, image, sizeof image, 0));
	emit(p + PAGE, 1);
	((fn *)p)(0);
	((fn *)(p + PAGE))(0);
	R(pread(file, p, 3 * PAGE, 0) == 3 * PAGE);
	T(!memcmp(p, image, 3 * PAGE));
	close(file);
	struct iovec v = {other, 6}, w = {p, 6};
	emit(other, 4);
	R(process_vm_writev(getpid(), &v, 1, &w, 1, 0));
	N(((fn *)p)(0));
	struct timespec *t = (void *)(p + PAGE - 64);
	emit(p + PAGE - 80, 5);
	N(((fn *)(p + PAGE - 80))(0));
	R(clock_gettime(CLOCK_REALTIME, t));
	T(t->tv_sec > 1000000000);
	N(((fn *)(p + PAGE - 80))(0));
	/* A function that changes the one behind it, in another page, and calls it:
	 * mov %edi, off(%rip); jmp target */
	unsigned char *q = p + 2 * PAGE;
	emit(p + 3 * PAGE, 0);
	int off = PAGE + 1 - 6;
	memcpy(q, "\x89\x3d", 2);
	memcpy(q + 2, &off, 4);
	off = PAGE - 11;
	q[6] = 0xe9;
	memcpy(q + 7, &off, 4);
	sum = 0;
	for (int i = 0; i < 500; i++)
		sum += ((fn *)q)(i);
	N(sum);
	/* Half of it made read and execute only, then all of it writable only. */
	R(mprotect(p, 4 * PAGE, PROT_READ | PROT_EXEC));
	N(((fn *)p)(0));
	S(rights(p));
	S(rights(p + 4 * PAGE));
	R(mprotect(p, 8 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
	S(rights(p));
	emit(p, 9);
	N(((fn *)p)(0));
	R(madvise(p, 8 * PAGE, MADV_DONTNEED));
	N(*p);
	emit(p, 10);
	N(((fn *)p)(0));
	return t_done();
}
