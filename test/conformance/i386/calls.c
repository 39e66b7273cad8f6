/* Calls that i386 has in another form: arguments in two words or in memory, narrow structures, numbers of 16 bits. */
/* only: i386 i386-static */
#include "t.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <linux/net.h>
#include <net/if.h>
#include <sys/personality.h>

static void files(void)
{
	char b[8] = "";
	int fd = must(open("f", O_RDWR | O_CREAT | O_LARGEFILE, 0600));
	long long at = -1;
	R(syscall(SYS_pwrite64, fd, "far", 3, 0, 2));
	R(syscall(SYS_pread64, fd, b, 3, 0, 2));
	S(b);
	R(syscall(SYS_lseek, fd, -3, SEEK_END));
	R(syscall(SYS__llseek, fd, 2, 1, &at, SEEK_SET));
	T(at == (2LL << 32) + 1);
	R(syscall(SYS__llseek, fd, -1, -1, &at, SEEK_CUR));
	T(at == 2LL << 32);
	unsigned s32[16];
	R(syscall(SYS_fstat, fd, s32));
	struct stat64 s;
	R(syscall(SYS_fstat64, fd, &s));
	T(s.st_size == (2LL << 32) + 3 && s.st_nlink == 1 && (s.st_mode & 07777) == 0600 && s.__st_ino == (unsigned)s.st_ino);
	R(syscall(SYS_ftruncate64, fd, 5, 1));
	R(syscall(SYS_fstat64, fd, &s));
	T(s.st_size == (1LL << 32) + 5);
	R(syscall(SYS_ftruncate, fd, -1));
	R(syscall(SYS_ftruncate, fd, 10));
	R(syscall(SYS_fstat, fd, s32));
	N(s32[5]);
	R(syscall(SYS_truncate64, "f", 0, -1));
	R(syscall(SYS_fallocate, fd, 0, 0, 0, 100, 0));
	R(syscall(SYS_fstat, fd, s32));
	N(s32[5]);
	R(syscall(SYS_fadvise64_64, fd, 0, 0, 10, 0, 0));
	R(syscall(SYS_readahead, fd, 0, 0, 10));
	struct iovec v[2] = { { "ab", 2 }, { "cd", 2 } };
	R(syscall(SYS_writev, fd, v, 2));
	R(syscall(SYS_pwritev, fd, v, 2, 20, 0));
	R(syscall(SYS_preadv, fd, &(struct iovec){ b, 4 }, 1, 20, 0));
	S(b);
	R(syscall(SYS_readv, fd, &(struct iovec){ b, -1 }, 1));
	struct { short type, whence; int start, len, pid; } l = { F_WRLCK, SEEK_SET, 3, 4 };
	R(syscall(SYS_fcntl, fd, F_SETLK, &l));
	struct { short type, whence; long long start, len; int pid; } __attribute__((packed)) w = { F_WRLCK, SEEK_SET, 0, 0 };
	pid_t child = fork();
	if (!child) {
		R(syscall(SYS_fcntl64, fd, 12, &w));
		N(w.type), N((int)w.start), N((int)w.len);
		T(w.pid == getppid());
		R(syscall(SYS_fcntl, fd, F_GETLK, &l));
		N(l.start), N(l.len);
		_exit(0);
	}
	waitpid(child, 0, 0);
	R(syscall(SYS_fcntl, fd, 12, &w));
	struct { unsigned type, bsize; unsigned long long blocks, bfree, bavail, files, ffree; int fsid[2]; unsigned namelen, frsize, flags, spare[4]; } __attribute__((packed)) f;
	R(syscall(SYS_fstatfs64, fd, sizeof f, &f));
	T(f.bsize != 0 && f.namelen >= 14 && f.frsize != 0);
	R(syscall(SYS_fstatfs64, fd, 80, &f));
	int off = 2;
	int other = must(open("g", O_RDWR | O_CREAT, 0600));
	R(syscall(SYS_sendfile, other, fd, &off, 4));
	N(off);
	unlink("f"), unlink("g");
	close(fd), close(other);
}

static void times_(void)
{
	/* What is behind 32 bits of nanoseconds does not count. */
	unsigned long long span[2] = { 0, 0xdeadbeef00000001 };
	R(syscall(SYS_clock_nanosleep_time64, CLOCK_MONOTONIC, 0, span, 0));
	int t32[2] = { 0, 1000 };
	R(syscall(SYS_nanosleep, t32, 0));
	t32[1] = 1000000000;
	R(syscall(SYS_nanosleep, t32, 0));
	long long now[2] = { 0, -1 };
	R(syscall(SYS_clock_gettime64, CLOCK_REALTIME, now));
	R(syscall(SYS_clock_gettime, CLOCK_REALTIME, t32));
	T(now[0] > 1000000000 && now[1] >= 0 && now[1] < 1000000000 && t32[0] - now[0] <= 1);
	int seconds = 0;
	T(syscall(SYS_time, &seconds) == seconds);
	T(seconds - now[0] <= 1);
	int tv[2], zone[2];
	R(syscall(SYS_gettimeofday, tv, zone));
	T(tv[0] - seconds <= 1 && tv[1] < 1000000);
	int timer[4] = { 0, 0, 100, 500000 }, old[4];
	R(syscall(SYS_setitimer, ITIMER_REAL, timer, 0));
	R(syscall(SYS_getitimer, ITIMER_REAL, old));
	T(old[2] == 100 && old[3] <= 500000 && old[0] == 0);
	N(syscall(SYS_alarm, 0));
	int ticks[4] = { -1, -1, -1, -1 };
	T(syscall(SYS_times, ticks) != -1 && ticks[0] >= 0 && ticks[3] >= 0);
	struct rusage u;
	memset(&u, 0xff, sizeof u);
	R(syscall(SYS_getrusage, RUSAGE_SELF, &u));
	T(u.ru_utime.tv_sec >= 0 && u.ru_maxrss > 0 && u.ru_nswap == 0);
	char f[4] = { 1, 0, 0, 0 };
	int a[5] = { 0, 0, 0, 0, (int)t32 };
	t32[0] = 0, t32[1] = 1000;
	R(syscall(SYS_select, a));
	unsigned sets[3] = { 0, 0x5a5a5a5a, 0 };
	int p[2];
	must(pipe(p));
	must(write(p[1], "x", 1));
	sets[0] = 1u << p[0];
	R(syscall(SYS__newselect, p[0] + 1, sets, 0, 0, 0));
	T(sets[0] == 1u << p[0] && sets[1] == 0x5a5a5a5a);
	close(p[0]), close(p[1]);
	unsigned word = 5;
	int limit[2] = { 0, 1000000 };
	R(syscall(SYS_futex, &word, 0, 5, limit));
	unsigned long long limit64[2] = { 0, 0xffffffff000f4240 };
	R(syscall(SYS_futex_time64, &word, 0, 5, limit64));
	R(syscall(SYS_futex_time64, &word, 0, 6, 0));
}

static void many(void)
{
	unsigned long m[6] = { 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 };
	char *at = (char *)syscall(SYS_mmap, m);
	T(at != MAP_FAILED);
	strcpy(at, "old mmap");
	S(at);
	int fd = must(open("pages", O_RDWR | O_CREAT, 0600));
	must(ftruncate(fd, 8192));
	must(pwrite(fd, "second", 6, 4096));
	at = (char *)syscall(SYS_mmap2, 0, 4096, PROT_READ, MAP_SHARED, fd, 1);
	T(at != MAP_FAILED);
	S(at);
	unlink("pages"), close(fd);
	T(syscall(SYS_mmap2, 0xfffff000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == -1);
	T(syscall(SYS_mmap2, 0xffffe000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == -1);
	T(syscall(SYS_mmap2, 0xffffd000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != -1);

	unsigned long pair[4] = { AF_UNIX, SOCK_STREAM, 0, 0 };
	int s[2];
	pair[3] = (unsigned long)s;
	R(syscall(SYS_socketcall, SYS_SOCKETPAIR, pair));
	unsigned long to[4] = { s[0], (unsigned long)"word", 4, 0 };
	R(syscall(SYS_socketcall, SYS_SEND, to));
	char b[8] = "", control[64];
	struct iovec v = { b, sizeof b };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	unsigned long from[3] = { s[1], (unsigned long)&h, 0 };
	R(syscall(SYS_socketcall, SYS_RECVMSG, from));
	S(b), N(h.msg_controllen);
	struct cmsghdr *c = (void *)control;
	c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(4);
	memcpy(CMSG_DATA(c), &s[0], 4);
	h.msg_controllen = CMSG_SPACE(4), v.iov_len = 1;
	from[0] = s[0];
	R(syscall(SYS_socketcall, SYS_SENDMSG, from));
	memset(control, 0, sizeof control);
	h.msg_controllen = sizeof control, from[0] = s[1];
	R(syscall(SYS_socketcall, SYS_RECVMSG, from));
	N(h.msg_controllen), N(c->cmsg_len), N(c->cmsg_type);
	R(syscall(SYS_socketcall, 0, from));
	R(syscall(SYS_socketcall, 21, from));
	R(syscall(SYS_socketcall, SYS_SEND, 16));

	struct timeval tv = { 1, 500000 };
	socklen_t len = sizeof tv;
	R(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv));
	tv.tv_sec = tv.tv_usec = -1;
	R(getsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, &len));
	N(tv.tv_sec), N(tv.tv_usec), N(len);
	R(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, 7));
	struct { struct ifreq request; char guard[16]; } ask;
	memset(&ask, 0x5a, sizeof ask);
	strcpy(ask.request.ifr_name, "lo");
	int inet = must(socket(AF_INET, SOCK_DGRAM, 0));
	R(ioctl(inet, SIOCGIFINDEX, &ask));
	N(ask.request.ifr_ifindex), N(ask.guard[0]), N(ask.guard[15]);
	close(inet);

	int id = must(syscall(SYS_ipc, 13, IPC_PRIVATE, IPC_CREAT | 0600, 0, 0, 0));
	struct { long kind; char text[8]; } message = { 3, "post" }, got = { 0 };
	R(syscall(SYS_ipc, 11, id, 5, 0, &message, 0));
	struct { void *text; long kind; } box = { &got, -5 };
	R(syscall(SYS_ipc, 12, id, 8, 0, &box, 0));
	N(got.kind), S(got.text);
	struct msqid_ds ds;
	R(msgctl(id, IPC_STAT, &ds));
	T(ds.msg_qnum == 0 && (ds.msg_perm.mode & 0777) == 0600 && ds.msg_qbytes > 0);
	R(syscall(SYS_ipc, 14, id, IPC_RMID, 0, 0, 0));
	id = must(syscall(SYS_ipc, 2, IPC_PRIVATE, 2, IPC_CREAT | 0600, 0, 0));
	unsigned long value = 7;
	R(syscall(SYS_ipc, 3, id, 1, SETVAL, &value, 0));
	R(syscall(SYS_ipc, 3, id, 1, GETVAL, &value, 0));
	struct sembuf op = { 1, -7, 0 };
	R(syscall(SYS_ipc, 1, id, 1, 0, &op, 0));
	R(syscall(SYS_ipc, 3, id, 0, IPC_RMID, &value, 0));
	id = must(syscall(SYS_ipc, 23, IPC_PRIVATE, 4096, IPC_CREAT | 0600, 0, 0));
	char *seg = 0;
	R(syscall(SYS_ipc, 21, id, 0, &seg, 0, 0));
	strcpy(seg, "shared");
	struct shmid_ds sd;
	R(shmctl(id, IPC_STAT, &sd));
	N(sd.shm_segsz), N(sd.shm_nattch);
	R(syscall(SYS_ipc, 22, 0, 0, 0, seg, 0));
	R(shmctl(id, IPC_RMID, 0));
	R(syscall(SYS_ipc, 99, 0, 0, 0, 0, 0));

	unsigned long r[2];
	struct rlimit64 r64 = { 0x1234567890, 0x1234567890 };
	R(prlimit64(0, RLIMIT_FSIZE, &r64, 0));
	R(syscall(SYS_getrlimit, RLIMIT_FSIZE, r));
	T(r[0] == 0x7fffffff);
	R(syscall(SYS_ugetrlimit, RLIMIT_FSIZE, r));
	T(r[0] == 0xffffffff);
	unsigned short ids[3];
	R(syscall(SYS_getresuid, ids, ids + 1, ids + 2));
	T(ids[0] == syscall(SYS_getuid) && ids[0] == syscall(SYS_getuid32));
	T(syscall(SYS_getgroups, 0, 0) == syscall(SYS_getgroups32, 0, 0));
	char name[325];
	R(syscall(SYS_olduname, name));
	S(name);
	R(syscall(SYS_oldolduname, name));
	S(name);
	struct sysinfo si;
	memset(&si, 0xff, sizeof si);
	R(syscall(SYS_sysinfo, &si));
	T(si.totalram > 0 && si.uptime > 0 && si.mem_unit >= 1 && si.freeram <= si.totalram);
	pid_t child = fork();
	int status;
	if (!child)
		_exit(9);
	T(syscall(SYS_waitpid, child, &status, 0) == child && WEXITSTATUS(status) == 9);
	siginfo_t i;
	struct rusage u;
	if (!(child = fork()))
		_exit(11);
	R(syscall(SYS_waitid, P_PID, child, &i, WEXITED, &u));
	T(i.si_pid == child);
	N(i.si_status), N(i.si_code);
	R(syscall(SYS_ioctl, 99, 0, 0));
	R(syscall(400000));
	N(personality(0xffffffff) >= 0);
	struct utsname n;
	personality(8);
	uname(&n);
	S(n.machine);
	personality(0);
}

int main(void)
{
	files();
	times_();
	many();
	return t_failed;
}
