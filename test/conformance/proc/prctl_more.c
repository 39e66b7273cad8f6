/* prctl(2): the auxiliary vector, memory that does not become executable, control of speculation. */
/* not: i386 */
/* linux: 6.6 */
#include "t.h"
#include <elf.h>
#include <sys/prctl.h>
#include <sys/auxv.h>
enum { SET_MDWE = 65, GET_MDWE = 66, REFUSE = 1, NO_INHERIT = 2, GET_AUXV = 0x41555856 };
static long page;
static char *map(int prot) { return mmap(0, page, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static unsigned long entry(const unsigned long *v, int n, unsigned long kind)
{
	for (int i = 0; i + 1 < n && v[i] != AT_NULL; i += 2)
		if (v[i] == kind)
			return v[i + 1];
	return 0;
}
static void refused(void)
{
	char *p = map(PROT_READ | PROT_WRITE), *x;
	T(p != MAP_FAILED);
	R(mprotect(p, page, PROT_READ | PROT_EXEC));
	R(mprotect(p, page, PROT_EXEC));
	R(mprotect(p, page, PROT_READ));
	R(map(PROT_READ | PROT_WRITE | PROT_EXEC) == MAP_FAILED ? -1 : 0);
	x = map(PROT_READ | PROT_EXEC);
	T(x != MAP_FAILED);
	R(mprotect(x, page, PROT_READ | PROT_WRITE | PROT_EXEC));
	R(mprotect(x, page, PROT_EXEC));
	R(mprotect(x, page, PROT_READ));
	R(mprotect(x, page, PROT_READ | PROT_EXEC));
}
/* A copy of this program that wants an executable stack. */
static void with_exec_stack(const char *name)
{
	static char file[16 << 20];
	int in = must(open("/proc/self/exe", O_RDONLY)), out = must(open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755));
	ssize_t size = 0, n;
	while ((n = must(read(in, file + size, sizeof file - size))) > 0)
		size += n;
	Elf64_Ehdr *head = (Elf64_Ehdr *)file;
	for (int i = 0; i < head->e_phnum; i++) {
		Elf64_Phdr *part = (Elf64_Phdr *)(file + head->e_phoff) + i;
		if (part->p_type == PT_GNU_STACK)
			part->p_flags |= PF_X;
	}
	T(write(out, file, size) == size);
	close(in), close(out);
}
int main(int argc, char **argv)
{
	page = sysconf(_SC_PAGESIZE);
	if (argc > 1) {
		/* The next program. */
		R(prctl(GET_MDWE, 0, 0, 0, 0));
		T(map(PROT_READ | PROT_WRITE | PROT_EXEC) == MAP_FAILED);
		return t_done();
	}
	unsigned long v[256], few[4] = {7, 7, 7, 7};
	memset(v, 1, sizeof v);
	long size = prctl(GET_AUXV, v, sizeof v, 0, 0);
	T(size > 300 && size <= (long)sizeof v && size % 16 == 0);
	T(entry(v, 256, AT_PAGESZ) == (unsigned long)page);
	T(entry(v, 256, AT_ENTRY) == getauxval(AT_ENTRY));
	T(entry(v, 256, AT_RANDOM) == getauxval(AT_RANDOM));
	T(v[size / 8 - 1] == 0 && v[size / 8] == 0x0101010101010101ul);
	T(prctl(GET_AUXV, few, 16, 0, 0) == size && few[0] == v[0] && few[1] == v[1] && few[2] == 7);
	T(prctl(GET_AUXV, 0, 0, 0, 0) == size);
	R(prctl(GET_AUXV, 1, 16, 0, 0));
	R(prctl(GET_AUXV, v, sizeof v, 1, 0));
	R(prctl(GET_AUXV, v, sizeof v, 0, 1));
	/* Nothing is refused. */
	R(prctl(GET_MDWE, 0, 0, 0, 0));
	R(prctl(GET_MDWE, 1, 0, 0, 0));
	R(prctl(SET_MDWE, 4, 0, 0, 0));
	R(prctl(SET_MDWE, NO_INHERIT, 0, 0, 0));
	R(prctl(SET_MDWE, REFUSE, 1, 0, 0));
	R(prctl(SET_MDWE, 0, 0, 0, 0));
	T(map(PROT_READ | PROT_WRITE | PROT_EXEC) != MAP_FAILED);
	CHILD("not inherited",
	      R(prctl(SET_MDWE, REFUSE | NO_INHERIT, 0, 0, 0)); R(prctl(GET_MDWE, 0, 0, 0, 0)); refused();
	      R(prctl(SET_MDWE, REFUSE, 0, 0, 0));
	      CHILD("its child", R(prctl(GET_MDWE, 0, 0, 0, 0)); T(map(PROT_READ | PROT_WRITE | PROT_EXEC) != MAP_FAILED)));
	CHILD("inherited",
	      R(prctl(SET_MDWE, REFUSE, 0, 0, 0)); R(prctl(SET_MDWE, REFUSE, 0, 0, 0)); refused();
	      R(prctl(SET_MDWE, 0, 0, 0, 0)); R(prctl(SET_MDWE, REFUSE | NO_INHERIT, 0, 0, 0));
	      CHILD("its child", R(prctl(GET_MDWE, 0, 0, 0, 0)); refused());
	      execl("/proc/self/exe", argv[0], "next", NULL); must(-1));
	with_exec_stack("exec_stack");
	CHILD("an executable stack", R(prctl(SET_MDWE, REFUSE, 0, 0, 0)); execl("./exec_stack", argv[0], "next", NULL); must(-1));
	/* Speculation: what there is of it no thread can change differs; what there is none of does not. */
	for (long kind = 0; kind < 3; kind++) {
		long now = prctl(PR_GET_SPECULATION_CTRL, kind, 0, 0, 0);
		T(now >= 0 && now < 32);
		/* Without PR_SPEC_PRCTL nothing can be forbidden. */
		T(now & 1 || prctl(PR_SET_SPECULATION_CTRL, kind, 4, 0, 0) == -1);
		T(now == 0 || prctl(PR_GET_SPECULATION_CTRL, kind, 0, 0, 0) == now || now & 1);
	}
	R(prctl(PR_GET_SPECULATION_CTRL, 3, 0, 0, 0));
	R(prctl(PR_GET_SPECULATION_CTRL, 0, 1, 0, 0));
	R(prctl(PR_SET_SPECULATION_CTRL, 3, 4, 0, 0));
	R(prctl(PR_SET_SPECULATION_CTRL, 0, 4, 1, 0));
	return t_done();
}
