/* Machinery of the host that works behind the key's back: none of it may reach the host. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static int attack(void)
{
	char parameters[256] = { 0 };
	int won = 0;
	won |= syscall(SYS_userfaultfd, 0) >= 0;
	won |= syscall(SYS_perf_event_open, parameters, 0, -1, -1, 0) >= 0;
	won |= syscall(SYS_bpf, 5, parameters, sizeof parameters) >= 0;
	won |= syscall(SYS_kexec_load, 0, 0, 0, 0) == 0;
	won |= syscall(SYS_init_module, parameters, 16, "") == 0;
	won |= syscall(SYS_iopl, 3) == 0;
	won |= syscall(SYS_ioperm, 0x60, 4, 1) == 0;
	won |= syscall(SYS_modify_ldt, 1, parameters, 16) == 0 && 0;
	won |= syscall(SYS_setns, 0, 0) == 0;
	won |= syscall(SYS_open_by_handle_at, -100, parameters, 0) >= 0;
	/* These are of the program's own kernel, whatever they return. A ring there reaches no memory but the program's. */
	int ring = syscall(SYS_io_uring_setup, 4, parameters);
	if (ring >= 0) {
		char *kernel = (char *)KERNEL;
		won |= syscall(SYS_io_uring_register, ring, 0 /* buffers */, (struct { void *base; size_t len; }[]){ { kernel, 4096 } }, 1) == 0;
		won |= syscall(SYS_io_uring_register, ring, 8 /* probe */, kernel, 1) == 0;
		close(ring);
	}
	syscall(SYS_pkey_alloc, 0, 0);
	syscall(SYS_prctl, 59, 0, 0, 0, 0);
	syscall(SYS_prctl, 22, 0, 0, 0, 0);
	return !won && getppid() > 0 ? REFUSED : 0;
}
