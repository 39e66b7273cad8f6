/* /proc/self/maps: sorted, no overlap, names and rights of what was mapped. */
#include "t.h"
struct line { unsigned long a, b, off; char r[8], name[512]; };
static struct line all[500];
static int n;
static void load(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char l[1024];
	for (n = 0; f && n < 500 && fgets(l, sizeof l, f); n++) {
		all[n].name[0] = 0;
		unsigned long ino;
		unsigned ma, mi;
		if (sscanf(l, "%lx-%lx %7s %lx %x:%x %lu %511[^\n]", &all[n].a, &all[n].b, all[n].r, &all[n].off, &ma, &mi, &ino, all[n].name) < 7)
			say("odd line: %s", l);
	}
	if (f)
		fclose(f);
}
static struct line *at(void *p)
{
	static struct line none = {.r = "none", .name = "none"};
	for (int i = 0; i < n; i++)
		if ((unsigned long)p >= all[i].a && (unsigned long)p < all[i].b)
			return &all[i];
	return &none;
}
static const char *base(const char *s) { return strrchr(s, '/') ? strrchr(s, '/') + 1 : s; }
int main(void)
{
	t_write("f", "text");
	int f = must(open("f", O_RDWR)), x = 0;
	must(ftruncate(f, 20000));
	char *p = mmap(0, 8192, PROT_READ, MAP_PRIVATE, f, 4096), *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	char *a = mmap(0, 4096 * 5, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *z = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(a + 8192, 4096, PROT_READ | PROT_EXEC);
	sbrk(100000);
	load();
	int sorted = 1;
	for (int i = 1; i < n; i++)
		sorted &= all[i].a >= all[i - 1].b;
	T(n > 5 && sorted);
	say("file private %s %lx %s\n", at(p)->r, at(p)->off, base(at(p)->name));
	say("file shared %s %lx %s\n", at(s)->r, at(s)->off, base(at(s)->name));
	say("anon %s <%s>\n", at(a)->r, at(a)->name);
	say("anon, middle %s, length %lx\n", at(a + 8192)->r, at(a + 8192)->b - at(a + 8192)->a);
	say("none %s\n", at(z)->r);
	say("stack %s %s\n", at(&x)->r, at(&x)->name);
	say("heap %s %s\n", at((char *)sbrk(0) - 1)->r, at((char *)sbrk(0) - 1)->name);
	say("text %s %s\n", at(main)->r, base(at(main)->name));
	say("data %s\n", at(&n)->r);
	int vdso = 0;
	for (int i = 0; i < n; i++)
		vdso += !strcmp(all[i].name, "[vdso]");
	N(vdso);
	munmap(a + 4096, 4096);
	load();
	say("gone %s\n", at(a + 4096)->r);
	unlink("f");
	load();
	T(strstr(at(s)->name, "(deleted)") != 0);
	/* The dynamic loader and debuggers rely on smaps and auxv too. */
	OK(open("/proc/self/smaps", O_RDONLY));
	OK(open("/proc/self/auxv", O_RDONLY));
	/* Memory through /proc/self/mem. */
	int m = must(open("/proc/self/mem", O_RDWR));
	volatile int word = 1234;
	int got = 0;
	R(pread(m, &got, 4, (off_t)&word));
	N(got);
	got = 4321;
	R(pwrite(m, &got, 4, (off_t)&word));
	N(word);
	R(pread(m, &got, 4, 8));
	return t_done();
}
