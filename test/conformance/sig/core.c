/* Core files: who leaves one, what the parent learns, and what is in it. */
/* not: i386 */
#include "t.h"
#include <elf.h>
#include <sys/prctl.h>
#include <sys/procfs.h>
static char needle[64] = "a needle in the memory";
static int may;
static void *waits(void *a)
{
	pause();
	return a;
}
__attribute__((noinline)) static void crash(void) { *(volatile int *)8 = 1; }
/* How the child ended, and whether it left a file. */
static void ended(const char *what, pid_t p, int dumps)
{
	siginfo_t i;
	int st;
	must(waitid(P_PID, p, &i, WEXITED | WNOWAIT));
	must(waitpid(p, &st, 0));
	say("%s: %s\n", what, WIFSIGNALED(st) ? t_sig(WTERMSIG(st)) : "exited");
	T(!!WCOREDUMP(st) == (dumps && may));
	T(i.si_code == (dumps && may ? CLD_DUMPED : CLD_KILLED) && i.si_status == WTERMSIG(st));
	T(access("core", F_OK) == (dumps && may ? 0 : -1));
}
static pid_t child(void)
{
	pid_t p = must(fork());
	if (!p) {
		struct rlimit l = {RLIM_INFINITY, RLIM_INFINITY};
		getrlimit(RLIMIT_CORE, &l);
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_CORE, &l);
	}
	return p;
}
static void look(int threads, int whole)
{
	struct stat st;
	int f = open("core", O_RDONLY), states = 0, files = 0, found = 0, right = 0, info = 0;
	if (f < 0 || fstat(f, &st)) {
		T(!may);
		return;
	}
	char *m = mmap(0, st.st_size, PROT_READ, MAP_PRIVATE, f, 0);
	Elf64_Ehdr *e = (void *)m;
	T(!memcmp(m, "\177ELF", 4) && e->e_type == ET_CORE && e->e_machine == EM_X86_64);
	T((st.st_mode & 07777) == 0600);
	Elf64_Phdr *ph = (void *)(m + e->e_phoff);
	for (int i = 0; i < e->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD) {
			uint64_t at = (uintptr_t)needle - ph[i].p_vaddr;
			if ((uintptr_t)needle >= ph[i].p_vaddr && at + sizeof needle <= ph[i].p_filesz)
				found = !memcmp(m + ph[i].p_offset + at, needle, sizeof needle);
		} else
			for (char *n = m + ph[i].p_offset, *end = n + ph[i].p_filesz; n < end;) {
				Elf64_Nhdr *h = (void *)n;
				char *d = n + sizeof *h + (h->n_namesz + 3 & ~3);
				if (h->n_type == NT_PRSTATUS && !states++) {
					struct elf_prstatus *s = (void *)d;
					uint64_t pc = s->pr_reg[16];
					right = s->pr_cursig == SIGSEGV && pc >= (uintptr_t)crash && pc < (uintptr_t)crash + 64;
				}
				if (h->n_type == NT_FILE)
					files++;
				if (h->n_type == NT_SIGINFO)
					info = ((siginfo_t *)d)->si_signo == SIGSEGV && ((siginfo_t *)d)->si_addr == (void *)8;
				n = d + (h->n_descsz + 3 & ~3);
			}
	T(states == threads && files == 1 && right && info);
	T(found == whole);
	munmap(m, st.st_size);
	close(f);
	unlink("core");
}
int main(void)
{
	struct rlimit l;
	char pattern[128] = "", uses[8] = "";
	int f = open("/proc/sys/kernel/core_pattern", O_RDONLY);
	read(f, pattern, sizeof pattern - 1);
	close(f);
	if ((f = open("/proc/sys/kernel/core_uses_pid", O_RDONLY)) >= 0)
		read(f, uses, 1), close(f);
	getrlimit(RLIMIT_CORE, &l);
	may = !strcmp(pattern, "core\n") && uses[0] != '1' && l.rlim_max == RLIM_INFINITY;
	pid_t p = must(fork());
	if (!p) {
		l.rlim_cur = 0;
		setrlimit(RLIMIT_CORE, &l);
		abort();
	}
	ended("no limit for it", p, 0);
	if (!(p = child()))
		crash();
	ended("crash", p, 1);
	look(1, 1);
	if (!(p = child())) {
		pthread_t t;
		for (int i = 0; i < 3; i++)
			pthread_create(&t, 0, waits, 0);
		crash();
	}
	ended("of several threads", p, 1);
	look(4, 1);
	if (!(p = child())) {
		f = open("/proc/self/coredump_filter", O_RDWR);
		write(f, "0x10", 4);
		if (!fork())
			crash();
		wait(0);
		_exit(0);
	}
	t_reap("filter of a child", p);
	look(1, 0);
	char b[16] = "";
	f = must(open("/proc/self/coredump_filter", O_RDONLY));
	must(read(f, b, 15));
	S(b);
	if (!(p = child()))
		raise(SIGKILL);
	ended("killed", p, 0);
	if (!(p = child()))
		raise(SIGTERM);
	ended("terminated", p, 0);
	if (!(p = child()))
		raise(SIGQUIT);
	ended("quit", p, 1);
	unlink("core");
	if (!(p = child())) {
		prctl(PR_SET_DUMPABLE, 0);
		raise(SIGQUIT);
	}
	ended("secret", p, 0);
	must(mkdir("core", 0700));
	if (!(p = child()))
		raise(SIGQUIT);
	int st;
	must(waitpid(p, &st, 0));
	T(WIFSIGNALED(st) && !WCOREDUMP(st));
	rmdir("core");
	return t_done();
}
