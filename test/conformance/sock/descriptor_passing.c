/* SCM_RIGHTS and SCM_CREDENTIALS: one and many descriptors, truncation, close-on-exec, peek, what is dropped. */
#include "t.h"
#include <sys/socket.h>
static int send_fds(int s, int *f, int n, const char *text)
{
	char c[CMSG_SPACE(sizeof(int) * 300)];
	memset(c, 0, sizeof c);
	struct iovec v = {(void *)text, strlen(text)};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = CMSG_SPACE(sizeof(int) * n)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(h), f, sizeof(int) * n);
	return syscall(SYS_sendmsg, s, &m, 0); /* as it is: a C library may copy it */
}
static int got[300], count, flags;
static long recv_fds(int s, int room, int fl)
{
	char c[CMSG_SPACE(sizeof(int) * 300)], b[64];
	struct iovec v = {b, 64};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = room};
	count = 0;
	ssize_t r = recvmsg(s, &m, fl);
	flags = m.msg_flags;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); r >= 0 && h; h = CMSG_NXTHDR(&m, h))
		if (h->cmsg_type == SCM_RIGHTS) {
			count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(got, CMSG_DATA(h), count * sizeof(int));
		}
	return r;
}
int main(void)
{
	int s[2], p[2], file = must(open("f", O_CREAT | O_RDWR, 0600));
	char b[64] = "";
	/* Without privilege no more descriptors may be in messages than one may have open. */
	struct rlimit open_files;
	must(getrlimit(RLIMIT_NOFILE, &open_files));
	open_files.rlim_cur = open_files.rlim_max;
	must(setrlimit(RLIMIT_NOFILE, &open_files));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s)), must(pipe(p));
	must(write(file, "shared offset", 13)), must(lseek(file, 7, SEEK_SET));
	R(send_fds(s[0], &file, 1, "text"));
	R(recv_fds(s[1], CMSG_SPACE(4), 0));
	N(count);
	N(fcntl(got[0], F_GETFD));
	R(read(got[0], b, 64));
	S(b);
	N(lseek(file, 0, SEEK_CUR));
	close(got[0]);
	int two[2] = {p[0], p[1]};
	R(send_fds(s[0], two, 2, "pipe"));
	close(p[0]), close(p[1]); /* they live in the message */
	R(recv_fds(s[1], CMSG_SPACE(8), MSG_CMSG_CLOEXEC));
	N(count);
	N(fcntl(got[0], F_GETFD));
	R(write(got[1], "through", 7));
	R(read(got[0], b, 64));
	close(got[0]), close(got[1]);
	/* Room for fewer: the others are closed. */
	int many[10];
	must(pipe(p));
	for (int i = 0; i < 10; i++)
		many[i] = p[1];
	R(send_fds(s[0], many, 10, "ten"));
	close(p[1]);
	R(recv_fds(s[1], CMSG_SPACE(4 * 3), 0));
	T(count >= 3 && count <= 4);
	T(flags & MSG_CTRUNC);
	for (int i = 0; i < count; i++)
		close(got[i]);
	R(read(p[0], b, 1)); /* so this is the end */
	/* Received by read: dropped. */
	must(pipe(p));
	R(send_fds(s[0], &p[1], 1, "plain"));
	close(p[1]);
	R(read(s[1], b, 64));
	R(read(p[0], b, 1));
	/* Messages with descriptors do not join with what follows. */
	R(send_fds(s[0], &file, 1, "A"));
	R(write(s[0], "B", 1));
	R(send_fds(s[0], &file, 1, "C"));
	R(recv_fds(s[1], 1000, 0));
	R(recv_fds(s[1], 1000, 0));
	N(count);
	R(recv_fds(s[1], 1000, MSG_DONTWAIT));
	N(count);
	int bad = 99;
	R(send_fds(s[0], &bad, 1, "x"));
	int lots[254];
	for (int i = 0; i < 254; i++)
		lots[i] = file;
	R(send_fds(s[0], lots, 254, "x"));
	R(send_fds(s[0], lots, 253, "x"));
	R(recv_fds(s[1], CMSG_SPACE(4 * 253), 0));
	N(count);
	for (int i = 0; i < count; i++)
		close(got[i]);
	/* A socket in its own queue, both ends closed: nothing to see, nothing may break. */
	int q[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, q));
	R(send_fds(q[0], &q[1], 1, "loop"));
	close(q[0]), close(q[1]);
	/* Sockets in sockets' queues, deeper than anybody follows by recursion: all are closed with the last, at once. */
	must(pipe(p));
	int held = p[1];
	for (int i = 0; i < 1500; i++) {
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, q));
		must(send_fds(q[0], &held, 1, "x"));
		close(held), close(q[0]);
		held = q[1];
	}
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	R(read(p[0], b, 1));
	close(held);
	R(read(p[0], b, 1));
	close(p[0]);
	/* Without privileges, no more in flight than files may be open. */
	pid_t poor = must(fork());
	if (!poor) {
		struct rlimit few = {20, 20};
		must(setrlimit(RLIMIT_NOFILE, &few));
		if (getuid() == 0)
			must(setresuid(4711, 4711, 4711));
		int full = 0;
		must(socketpair(AF_UNIX, SOCK_DGRAM, 0, q));
		while (full < 200 && send_fds(q[0], &q[1], 1, "x") == 1)
			full++;
		N(full >= 5 && full <= 21 ? errno : -full);
		recv_fds(q[1], CMSG_SPACE(4), 0);
		R(send_fds(q[0], &q[1], 1, "x"));
		fflush(stdout);
		_exit(0);
	}
	t_reap("poor", poor);
	/* To a child. */
	pid_t c = must(fork());
	if (!c) {
		close(s[0]);
		recv_fds(s[1], CMSG_SPACE(4), 0);
		write(got[0], "from the child", 14);
		_exit(count);
	}
	int g = must(open("g", O_CREAT | O_RDWR, 0600));
	R(send_fds(s[0], &g, 1, "x"));
	t_reap("child", c);
	R(pread(g, b, 64, 0));
	/* Credentials. */
	int on = 1;
	R(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	R(write(s[0], "who", 3));
	char ctl[256];
	struct iovec v = {b, 64};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof ctl};
	R(recvmsg(s[1], &m, 0));
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	T(h && h->cmsg_type == SCM_CREDENTIALS);
	struct ucred u;
	memcpy(&u, CMSG_DATA(h), sizeof u);
	T(u.pid == getpid() && u.uid == getuid() && u.gid == getgid());
	u.pid = 1;
	memset(ctl, 0, sizeof ctl);
	m.msg_controllen = CMSG_SPACE(sizeof u), h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_CREDENTIALS, h->cmsg_len = CMSG_LEN(sizeof u);
	u.pid = 0x3ffffff;
	memcpy(CMSG_DATA(h), &u, sizeof u);
	T(sendmsg(s[0], &m, 0) == -1);
	h->cmsg_len = 4; /* nonsense lengths */
	R(sendmsg(s[0], &m, 0));
	h->cmsg_len = 1000;
	R(sendmsg(s[0], &m, 0));
	return t_done();
}
