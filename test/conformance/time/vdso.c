/* The vDSO: found by both hash tables with its version, listed in maps, its functions agreeing with the calls; the vsyscall
   page's functions. */
/* not: i386 */
#include "t.h"
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <setjmp.h>
#include <sys/auxv.h>
#include <sys/wait.h>

static uintptr_t base;
static const Elf64_Sym *symtab;
static const char *strtab, *soname;
static const uint32_t *hash, *gnu;
static const uint16_t *versym;
static const char *verdef;
static int verdefnum;

static void parse(void)
{
	const Elf64_Ehdr *eh = (void *)base;
	const Elf64_Phdr *ph = (void *)(base + eh->e_phoff);
	uintptr_t bias = 0, dynamic = 0, size = 0;
	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD)
			bias = base + ph[i].p_offset - ph[i].p_vaddr, size = ph[i].p_memsz;
		if (ph[i].p_type == PT_DYNAMIC)
			dynamic = base + ph[i].p_offset;
	}
	T(eh->e_type == ET_DYN && eh->e_machine == EM_X86_64 && size > 0 && dynamic != 0);
	uintptr_t name = 0;
	for (const Elf64_Dyn *d = (void *)dynamic; d->d_tag; d++) {
		uintptr_t at = bias + d->d_un.d_ptr;
		switch (d->d_tag) {
		case DT_STRTAB: strtab = (void *)at; break;
		case DT_SYMTAB: symtab = (void *)at; break;
		case DT_HASH: hash = (void *)at; break;
		case DT_GNU_HASH: gnu = (void *)at; break;
		case DT_VERSYM: versym = (void *)at; break;
		case DT_VERDEF: verdef = (void *)at; break;
		case DT_VERDEFNUM: verdefnum = d->d_un.d_val; break;
		case DT_SONAME: name = d->d_un.d_val; break;
		}
	}
	soname = strtab + name;
}

static uint32_t sysv(const char *s)
{
	uint32_t h = 0, g;
	for (; *s; s++) {
		h = (h << 4) + (unsigned char)*s;
		g = h & 0xf0000000;
		h = (h ^ g >> 24) & ~g;
	}
	return h;
}

static int is(uint32_t at, const char *name)
{
	return symtab[at].st_shndx != SHN_UNDEF && !strcmp(strtab + symtab[at].st_name, name);
}

/* By DT_GNU_HASH, as glibc and Go look. */
static uint32_t by_gnu(const char *name)
{
	uint32_t h = 5381, buckets = gnu[0], first = gnu[1], words = gnu[2], shift = gnu[3];
	for (const unsigned char *s = (void *)name; *s; s++)
		h = h * 33 + *s;
	const uint64_t *bloom = (void *)(gnu + 4);
	const uint32_t *bucket = (void *)(bloom + words), *chain = bucket + buckets;
	uint64_t word = bloom[h / 64 % words];
	if (!(word >> h % 64 & 1) || !(word >> (h >> shift) % 64 & 1))
		return 0;
	for (uint32_t at = bucket[h % buckets]; at >= first; at++) {
		if ((chain[at - first] | 1) == (h | 1) && is(at, name))
			return at;
		if (chain[at - first] & 1)
			break;
	}
	return 0;
}

/* By DT_HASH, as musl looks. */
static uint32_t by_sysv(const char *name)
{
	if (!hash)
		return by_gnu(name);
	for (uint32_t at = hash[2 + sysv(name) % hash[0]]; at; at = hash[2 + hash[0] + at])
		if (is(at, name))
			return at;
	return 0;
}

static const char *version(uint32_t at)
{
	const Elf64_Verdef *d = (void *)verdef;
	for (int i = 0; i < verdefnum; i++) {
		const Elf64_Verdaux *aux = (void *)((char *)d + d->vd_aux);
		const char *name = strtab + aux->vda_name;
		if (!(d->vd_flags & VER_FLG_BASE) && d->vd_ndx == (versym[at] & 0x7fff))
			return d->vd_hash == sysv(name) ? name : "wrong hash";
		d = (void *)((char *)d + d->vd_next);
	}
	return "none";
}

static void *find(const char *name)
{
	uint32_t at = by_gnu(name);
	say("%s: %d, both ways the same %d, version %s, function %d\n", name, at != 0, at == by_sysv(name), version(at),
	    ELF64_ST_TYPE(symtab[at].st_info) == STT_FUNC);
	return (void *)(base + symtab[at].st_value);
}

static int listed(const char *what, uintptr_t *start)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], prot[8];
	unsigned long low, high;
	int n = 0;
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		size_t len = strlen(line), own = strlen(what);
		if (len < own || strcmp(line + len - own, what))
			continue;
		sscanf(line, "%lx-%lx %7s", &low, &high, prot);
		say("%s %s\n", what, prot);
		*start = low;
		n++;
	}
	fclose(f);
	return n;
}

static int64_t ns(struct timespec t)
{
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static sigjmp_buf back;
static void fault(int s)
{
	siglongjmp(back, s);
}

int main(int argc, char **argv)
{
	base = getauxval(AT_SYSINFO_EHDR);
	T(base != 0 && base % 4096 == 0);
	uintptr_t code = 0, data = 0;
	T(listed("[vdso]", &code) == 1 && code == base);
	T(listed("[vvar]", &data) == 1 && data < code);
	parse();
	say("soname %s\n", soname);
	int (*get)(int, struct timespec *) = find("__vdso_clock_gettime");
	int (*day)(struct timeval *, struct timezone *) = find("__vdso_gettimeofday");
	time_t (*seconds)(time_t *) = find("__vdso_time");
	int (*cpu)(unsigned *, unsigned *, void *) = find("__vdso_getcpu");
	int (*res)(int, struct timespec *) = find("__vdso_clock_getres");
	T(find("clock_gettime") == (void *)get);
	T(find("gettimeofday") == (void *)day);
	T(find("time") == (void *)seconds);
	T(find("getcpu") == (void *)cpu);
	T(find("clock_getres") == (void *)res);
	say("no such thing: %d\n", by_gnu("__vdso_nothing") | by_sysv("__vdso_nothing"));

	for (int c = -1; c < 14; c++) {
		/* The alarm clocks are there only where the machine has an RTC. */
		if (c == CLOCK_REALTIME_ALARM || c == CLOCK_BOOTTIME_ALARM)
			continue;
		struct timespec a = {0}, b = {0}, d = {0}, r = {0}, s = {0};
		int x = get(c, &a), y = syscall(SYS_clock_gettime, c, &b) ? -errno : 0, z = get(c, &d);
		say("clock %d: %d %d, in order %d\n", c, x, y, x || (ns(a) <= ns(b) && ns(b) <= ns(d)));
		x = res(c, &r);
		y = syscall(SYS_clock_getres, c, &s) ? -errno : 0;
		say("resolution: %d %d, the same %d\n", x, y, ns(r) == ns(s));
	}
	R(-res(CLOCK_REALTIME, 0));
	struct timeval v, w;
	struct timezone z = {1, 1};
	T(day(&v, &z) == 0 && syscall(SYS_gettimeofday, &w, 0) == 0);
	int64_t d = (w.tv_sec - v.tv_sec) * 1000000ll + w.tv_usec - v.tv_usec;
	T(d >= 0 && d < 5000000);
	T(z.tz_minuteswest == 0 && z.tz_dsttime == 0);
	T(day(0, &z) == 0 && day(&v, 0) == 0);
	time_t t1, t2 = seconds(&t1), t3 = syscall(SYS_time, 0);
	T(t1 == t2 && t3 - t2 >= 0 && t3 - t2 < 5 && seconds(0) >= t2);
	unsigned p = 9999, n = 9999;
	T(cpu(&p, &n, 0) == 0 && p < 4096 && n < 1024 && cpu(0, 0, 0) == 0);

	/* The page before the vDSO existed (vsyscall(2) of old); a host may refuse it, then it is SIGSEGV. */
	signal(SIGSEGV, fault);
	int sig = sigsetjmp(back, 1);
	if (!sig) {
		int (*vday)(struct timeval *, struct timezone *) = (void *)0xffffffffff600000;
		time_t (*vtime)(time_t *) = (void *)0xffffffffff600400;
		int (*vcpu)(unsigned *, unsigned *, void *) = (void *)0xffffffffff600800;
		T(vday(&w, 0) == 0);
		d = (w.tv_sec - v.tv_sec) * 1000000ll + w.tv_usec - v.tv_usec;
		T(d >= 0 && d < 5000000);
		t3 = vtime(&t1);
		T(t3 == t1 && t3 - t2 >= 0 && t3 - t2 < 5);
		T(vcpu(&p, &n, 0) == 0 && p < 4096);
	}
	say("vsyscall page: signal %d\n", sig);

	/* The same in a forked process and after exec. */
	fflush(stdout);
	if (argc < 2) {
		pid_t child = fork();
		if (!child) {
			struct timespec a;
			T(get(CLOCK_MONOTONIC, &a) == 0 && a.tv_sec + a.tv_nsec > 0);
			fflush(stdout);
			execl("/proc/self/exe", argv[0], "again", (char *)0);
			_exit(99);
		}
		int status;
		waitpid(child, &status, 0);
		say("again: %x\n", status);
	}
	return 0;
}
