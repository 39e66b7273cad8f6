/* execve: arguments, environment, what is kept and what is reset, auxiliary vector. */
/* not: i386 */
#include "t.h"
#include <sys/auxv.h>
extern char **environ;
static void h(int s) { (void)s; }
static int second(int argc, char **argv)
{
	N(argc);
	for (int i = 1; i < argc; i++)
		say("argv[%d]=<%s>\n", i, argv[i]);
	for (char **e = environ; *e; e++)
		say("env <%s>\n", *e);
	struct sigaction a;
	sigaction(SIGUSR1, 0, &a);
	T(a.sa_handler == SIG_DFL); /* handlers are reset */
	sigaction(SIGUSR2, 0, &a);
	T(a.sa_handler == SIG_IGN); /* ignored stays ignored */
	sigset_t m;
	sigprocmask(SIG_BLOCK, 0, &m);
	T(sigismember(&m, SIGHUP)); /* the mask stays */
	sigpending(&m);
	T(sigismember(&m, SIGHUP)); /* and what is pending */
	R(fcntl(50, F_GETFD));
	R(fcntl(51, F_GETFD));
	R(fcntl(52, F_GETFL) & O_APPEND);
	stack_t s;
	sigaltstack(0, &s);
	T(s.ss_flags == SS_DISABLE);
	N(umask(0));
	R(nice(0));
	T(getauxval(AT_PAGESZ) == 4096);
	T(getauxval(AT_UID) == getuid() && getauxval(AT_EGID) == getegid());
	T(getauxval(AT_PHDR) && getauxval(AT_PHNUM) > 1 && getauxval(AT_PHENT) == 56);
	T(getauxval(AT_ENTRY) != 0);
	T(getauxval(AT_RANDOM) != 0);
	T(getauxval(AT_SECURE) == 0);
	T(getauxval(AT_CLKTCK) == 100);
	S((char *)getauxval(AT_PLATFORM));
	S((char *)getauxval(AT_EXECFN));
	T(getauxval(AT_HWCAP) != 0);
	T(((uintptr_t)argv & 7) == 0);
	struct itimerval v;
	getitimer(ITIMER_REAL, &v);
	T(v.it_value.tv_sec > 0); /* alarms go on */
	return t_done();
}
int main(int argc, char **argv)
{
	if (argc > 1)
		return second(argc, argv);
	static char stk[65536];
	stack_t s = {.ss_sp = stk, .ss_size = sizeof stk};
	sigaltstack(&s, 0);
	t_handle(SIGUSR1, h, 0);
	signal(SIGUSR2, SIG_IGN);
	sigset_t m;
	sigemptyset(&m);
	sigaddset(&m, SIGHUP);
	sigprocmask(SIG_BLOCK, &m, 0);
	raise(SIGHUP);
	must(dup2(1, 50));
	must(dup3(1, 51, O_CLOEXEC));
	int f = must(open("app", O_CREAT | O_WRONLY | O_APPEND, 0600));
	must(dup2(f, 52));
	umask(031);
	alarm(1000);
	char *a[] = {"name", "", "a b", "ünïcode", "-x", "\n", 0}, *e[] = {"PATH=/bin", "EMPTY=", "noequals", "X=y z", 0};
	execve("/proc/self/exe", a, e);
	return 9;
}
