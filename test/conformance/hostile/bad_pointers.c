/* Every system call number with bad arguments of several kinds: each call returns or ends that process; this one goes on. */
/* seconds: 120 */
/* not: i386 */
#include "t.h"
#include <sys/prctl.h>
/* Calls that by intent do not come back, sleep for ever, end the machine's services or kill at large. */
static int left_out(int nr)
{
	switch (nr) {
	case SYS_exit: case SYS_exit_group: case SYS_pause: case SYS_rt_sigsuspend: case SYS_rt_sigreturn: case SYS_vfork: case SYS_fork: case SYS_clone: case 435 /* clone3 */:
	case SYS_reboot: case SYS_kill: case SYS_tkill: case SYS_tgkill: case SYS_rt_sigqueueinfo: case SYS_rt_tgsigqueueinfo: case SYS_swapon: case SYS_swapoff: case SYS_vhangup:
	case SYS_mount: case SYS_umount2: case SYS_pivot_root: case SYS_sethostname: case SYS_setdomainname: case SYS_settimeofday: case SYS_clock_settime: case SYS_adjtimex: case SYS_clock_adjtime:
	case SYS_init_module: case SYS_finit_module: case SYS_delete_module: case SYS_kexec_load: case SYS_kexec_file_load: case SYS_acct: case SYS_sync: case SYS_syncfs: case SYS_iopl: case SYS_ioperm:
	case SYS_quotactl: case SYS_chroot: case SYS_unshare: case SYS_setns: case SYS_syslog: case SYS_nfsservctl: case SYS_bpf: case SYS_ptrace: case SYS_setpriority: case SYS_sched_setscheduler: case SYS_sched_setattr: case SYS_sched_setparam:
	case SYS_munmap: case SYS_mprotect: case SYS_mremap: case SYS_mmap: case SYS_brk: case SYS_arch_prctl: case SYS_set_thread_area: case SYS_seccomp: case SYS_prctl: case SYS_remap_file_pages: case SYS_shmat: case SYS_shmdt: case SYS_munlockall: case SYS_mlockall:
	case SYS_msgget: case SYS_semget: case SYS_shmget:
	case SYS_rseq: case SYS_set_tid_address: case SYS_set_robust_list: case SYS_close_range: case SYS_close: case SYS_dup2: case SYS_dup3: case 329 /* pkey_mprotect */: case 462 /* mseal */: case SYS_setpgid: case SYS_setsid: case SYS_personality:
		return 1;
	}
	return 0;
}
static char page[8192] __attribute__((aligned(4096)));
static const long kinds[][6] = {
	{8, 8, 8, 8, 8, 8},
	{-1, -1, -1, -1, -1, -1},
	{0x7fffffffffffffff, 0x7fffffffffffffff, 0x7fffffffffffffff, 0x7fffffffffffffff, 0x7fffffffffffffff, 0x7fffffffffffffff},
	{0x552000000000, 0x552000000000, 64, 0x552000000000, 8, 8},
	{3, 0x552000001000, 0x1000, 0x552000001000, 0x1000, 0},
	{0xffffffff81000000, 0xffffffff81000000, 4096, 0xffffffff81000000, 4096, 4096},
	{3, 0x7ffffffff000, 0x10000, 0x7ffffffff000, 0x10000, 0},
	{(long)0x8000000000000000, 1, (long)0x8000000000000000, 1, (long)0x8000000000000000, 1},
	{0, 0, 0, 0, 0, 0},
};
/* One number with one kind of arguments in a process of its own; the alarm ends what sleeps. */
static void trial(int nr, const long *a)
{
	signal(SIGALRM, SIG_DFL);
	alarm(1);
	syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
int main(void)
{
	int numbers = 0, gone = 0, kinds_n = sizeof kinds / sizeof *kinds;
	for (int nr = 0; nr <= 470; nr++) {
		if (left_out(nr))
			continue;
		numbers++;
		pid_t p = must(fork());
		if (!p) {
			/* Away from the test's terminal, session, files and output. */
			struct rlimit z = {0, 0}, fsz = {1 << 20, 1 << 20};
			setrlimit(RLIMIT_CORE, &z), setrlimit(RLIMIT_FSIZE, &fsz);
			setsid();
			mkdir("d", 0700), chdir("d");
			/* Not a device: calls like fchmod(0, 0) succeed, natively on the machine's own file. */
			int n = open("n", O_RDWR | O_CREAT, 0600);
			dup2(n, 0), dup2(n, 1), dup2(n, 2);
			int f = open("f", O_RDWR | O_CREAT, 0600);
			dup2(f, 3), dup2(f, 8);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			/* Each kind in a child, so that all are tried whatever one does. */
			for (int k = 0; k < kinds_n; k++) {
				pid_t q = fork();
				if (!q) {
					prctl(PR_SET_PDEATHSIG, SIGKILL);
					trial(nr, kinds[k]);
					_exit(0);
				}
				alarm(4);
				waitpid(q, 0, 0);
				alarm(0);
			}
			_exit(0);
		}
		int st;
		if (waitpid(p, &st, 0) == p && WIFEXITED(st) && WEXITSTATUS(st) == 0)
			gone++;
		else
			say("number %d: status %#x\n", nr, st);
	}
	T(numbers > 300);
	T(gone == numbers);
	R(syscall(-1));
	R(syscall(100000));
	R(syscall(0x7fffffff));
	R(syscall(0x40000000 + SYS_getpid));
	memset(page, 1, sizeof page);
	say("survived\n");
	return t_done();
}
