/* uname, sysinfo, personality, hostname, capabilities: properties, as the host's values are its own. */
#include "t.h"
#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
int main(void)
{
	struct utsname u;
	R(uname(&u));
	S(u.sysname);
	S(u.machine);
	T(u.release[0] >= '4' && u.release[0] <= '9');
	char h[256];
	T(gethostname(h, sizeof h) == 0 && !strcmp(h, u.nodename));
	R(uname((void *)8));
	struct sysinfo i;
	R(sysinfo(&i));
	T(i.totalram > 0 && i.freeram <= i.totalram && i.mem_unit >= 1 && i.uptime > 0 && i.procs > 0);
	N(personality(0xffffffff));
	R(personality(ADDR_NO_RANDOMIZE));
	N(personality(0xffffffff));
	CHILD("inherits", N(personality(0xffffffff)));
	struct __user_cap_header_struct c = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	R(syscall(SYS_capget, &c, d));
	c.version = 1;
	R(syscall(SYS_capget, &c, d));
	T(c.version == _LINUX_CAPABILITY_VERSION_3);
	N(sysconf(_SC_PAGESIZE));
	N(sysconf(_SC_CLK_TCK));
	T(getauxval(6) == 4096);
	return t_done();
}
