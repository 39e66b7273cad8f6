/* The vDSO of 32-bit programs: where the auxiliary vector points, names and version, calls through it, exec both ways. */
/* only: i386 i386-static */
#include "t.h"
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

static Elf32_Ehdr *eh;

/* A function by its name and version. */
static void *find(const char *name, const char *version)
{
	Elf32_Phdr *ph = (void *)((char *)eh + eh->e_phoff);
	Elf32_Dyn *d = 0;
	char *base = (char *)eh, *strings = 0;
	Elf32_Sym *symbols = 0;
	uint32_t *hash = 0;
	uint16_t *versions = 0;
	Elf32_Verdef *def = 0;
	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD)
			base = (char *)eh + ph[i].p_offset - ph[i].p_vaddr;
		if (ph[i].p_type == PT_DYNAMIC)
			d = (void *)((char *)eh + ph[i].p_offset);
	}
	int count = 0;
	for (; d && d->d_tag; d++) {
		void *at = base + d->d_un.d_ptr;
		if (d->d_tag == DT_STRTAB) strings = at;
		if (d->d_tag == DT_SYMTAB) symbols = at;
		if (d->d_tag == DT_HASH) hash = at;
		if (d->d_tag == DT_VERSYM) versions = at;
		if (d->d_tag == DT_VERDEF) def = at;
	}
	if (!strings || !symbols || !versions || !def || !hash)
		return 0;
	for (uint32_t i = 1; i < hash[1]; i++) {
		if (strcmp(strings + symbols[i].st_name, name) || symbols[i].st_shndx == SHN_UNDEF)
			continue;
		for (Elf32_Verdef *v = def;; v = (void *)((char *)v + v->vd_next)) {
			Elf32_Verdaux *aux = (void *)((char *)v + v->vd_aux);
			if (v->vd_ndx == (versions[i] & 0x7fff) && !strcmp(strings + aux->vda_name, version))
				return base + symbols[i].st_value;
			if (!v->vd_next)
				break;
		}
	}
	return 0;
}

static int listed(struct dl_phdr_info *i, size_t n, void *found)
{
	if (i->dlpi_addr == (uintptr_t)eh)
		*(int *)found = 1;
	return 0;
}

static void *waiting(void *p)
{
	char c;
	read(*(int *)p, &c, 1);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return 5;
	eh = (void *)getauxval(AT_SYSINFO_EHDR);
	T(eh && !memcmp(eh->e_ident, ELFMAG, 4) && eh->e_ident[EI_CLASS] == ELFCLASS32 && eh->e_machine == EM_386 && eh->e_type == ET_DYN);
	void *call = (void *)getauxval(AT_SYSINFO);
	T(call == find("__kernel_vsyscall", "LINUX_2.5"));
	T(find("__kernel_sigreturn", "LINUX_2.5") != 0);
	T(find("__kernel_rt_sigreturn", "LINUX_2.5") != 0);
	T(find("__kernel_vsyscall", "LINUX_2.6") == 0);
	/* The clocks, between two calls. */
	int (*gettime)(int, int32_t *) = find("__vdso_clock_gettime", "LINUX_2.6");
	int (*gettime64)(int, int64_t *) = find("__vdso_clock_gettime64", "LINUX_2.6");
	int (*getres)(int, int32_t *) = find("__vdso_clock_getres", "LINUX_2.6");
	int (*day)(int32_t *, void *) = find("__vdso_gettimeofday", "LINUX_2.6");
	int32_t (*seconds)(int32_t *) = find("__vdso_time", "LINUX_2.6");
	T(gettime && gettime64 && getres && day && seconds);
	int64_t before[2], wide[2], after[2];
	int32_t narrow[2], micros[2], now;
	R(syscall(403, CLOCK_REALTIME, before));
	R(gettime64(CLOCK_REALTIME, wide));
	R(gettime(CLOCK_REALTIME, narrow));
	R(day(micros, 0));
	R(syscall(403, CLOCK_REALTIME, after));
#define NS(t) ((t)[0] * 1000000000ll + (t)[1])
	T(NS(before) <= NS(wide) && NS(wide) <= NS(narrow) && NS(narrow) <= NS(after));
	T(NS(before) / 1000 <= micros[0] * 1000000ll + micros[1] && micros[0] * 1000000ll + micros[1] <= NS(after) / 1000);
	T(seconds(&now) == now && seconds(0) >= micros[0] - 1);
	R(gettime(CLOCK_PROCESS_CPUTIME_ID, narrow));
	R(getres(CLOCK_MONOTONIC, narrow));
	N(narrow[1]);
	N(gettime(99, narrow));
	N(gettime64(-1, wide));
	int pid;
	asm volatile("call *%1" : "=a"(pid) : "r"(call), "a"(SYS_getpid) : "memory");
	T(pid == getpid());
	int six;
	asm volatile("push %%ebx\n push %%ebp\n xor %%ebx, %%ebx\n xor %%ebp, %%ebp\n call *%1\n pop %%ebp\n pop %%ebx"
		     : "=a"(six) : "D"(call), "a"(9999), "c"(1), "d"(2), "S"(3) : "memory");
	N(six);
	char line[256];
	int named = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, maps))
		if (strstr(line, "[vdso]"))
			named = strtoul(line, 0, 16) == (unsigned long)eh && strstr(line, "r-xp");
	fclose(maps);
	N(named);
	S((char *)getauxval(AT_PLATFORM));
	T(getauxval(AT_PHENT) == sizeof(Elf32_Phdr) && getauxval(AT_PAGESZ) == 4096 && getauxval(AT_ENTRY) != 0);
	T((uintptr_t)&line < 0xffffe000 && (uintptr_t)&line > 0xf0000000);

	/* A thread cancelled in a call is unwound through it. */
	int p[2];
	pthread_t t;
	void *result;
	must(pipe(p));
	must(-pthread_create(&t, 0, waiting, p));
	usleep(50000);
	R(pthread_cancel(t));
	R(pthread_join(t, &result));
	T(result == PTHREAD_CANCELED);

	/* To a 64-bit program and back. */
	pid_t child = fork();
	int status;
	if (!child) {
		execl("/bin/sh", "sh", "-c", "exec \"$0\" again", argv[0], (char *)0);
		_exit(1);
	}
	waitpid(child, &status, 0);
	N(WEXITSTATUS(status));
	return t_failed;
}
