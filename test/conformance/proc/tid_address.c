/* set_tid_address, robust list registration, rseq results, arch_prctl. */
/* not: i386 */
#include "t.h"
#include <asm/prctl.h>
static int word;
struct head { void *next; long off; void *pending; };
static struct head own = {&own, 0, 0};
int main(void)
{
	T(syscall(SYS_set_tid_address, &word) == t_gettid());
	void *h;
	size_t n;
	T(syscall(SYS_get_robust_list, 0, &h, &n) == 0);
	R(syscall(SYS_set_robust_list, &own, sizeof own));
	R(syscall(SYS_set_robust_list, &own, 8));
	T(syscall(SYS_get_robust_list, 0, &h, &n) == 0 && h == &own && n == sizeof own);
	R(syscall(SYS_get_robust_list, 0x3ffffff, &h, &n));
	unsigned long fs = 0;
	R(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs));
	T(fs != 0 && *(unsigned long *)fs == fs);
	R(syscall(SYS_arch_prctl, ARCH_SET_FS, 1ul << 63));
	R(syscall(SYS_arch_prctl, ARCH_GET_FS, 8));
	R(syscall(SYS_arch_prctl, 0x9999, 0));
	CHILD("fs survives fork", {
		unsigned long f2 = 0;
		syscall(SYS_arch_prctl, ARCH_GET_FS, &f2);
		T(f2 == fs);
	});
	T(getpid() == syscall(SYS_getpid));
	T(t_gettid() == getpid());
	return t_done();
}
