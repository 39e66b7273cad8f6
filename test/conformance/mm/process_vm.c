/* process_vm_readv, process_vm_writev and the refusals; get_mempolicy as libraries probe it; membarrier. */
#include "t.h"
int main(void)
{
	char a[16] = "remote memory", b[16] = "";
	struct iovec l = {b, 13}, r = {a, 13};
	R(process_vm_readv(getpid(), &l, 1, &r, 1, 0));
	S(b);
	r.iov_base = (void *)8;
	R(process_vm_readv(getpid(), &l, 1, &r, 1, 0));
	R(process_vm_readv(getpid(), &l, 1, &r, 1, 1));
	R(process_vm_readv(0x3ffffff, &l, 1, &r, 1, 0));
	char *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int p[2];
	must(pipe(p));
	pid_t c = must(fork());
	if (!c) {
		close(p[1]);
		read(p[0], b, 1);
		S(s);
		_exit(0);
	}
	strcpy(a, "written");
	r.iov_base = s, r.iov_len = 8, l.iov_base = a, l.iov_len = 8;
	R(process_vm_writev(c, &l, 1, &r, 1, 0));
	close(p[1]);
	t_reap("child", c);
	T(syscall(SYS_membarrier, 0, 0, 0) >= 0 || errno == ENOSYS);
	return t_done();
}
