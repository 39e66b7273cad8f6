/* SCM_CREDENTIALS of what is written without naming who: the process that writes, not the one that made the socket. */
#include "t.h"
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static pid_t maker;

/* Receives one byte and prints whose it is. */
static void receive(const char *how, int from, pid_t writer)
{
	char b[8], room[CMSG_SPACE(sizeof(struct ucred))] = {0};
	struct iovec v = {b, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	must(recvmsg(from, &m, 0));
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	if (!h || h->cmsg_type != SCM_CREDENTIALS) {
		say("%s: no credentials\n", how);
		return;
	}
	struct ucred *c = (struct ucred *)CMSG_DATA(h);
	const char *who = c->pid == writer ? "the writer" : c->pid == maker ? "the maker" : "somebody else";
	say("%s: %s uid %d gid %d\n", how, who, c->uid == getuid(), c->gid == getgid());
}

/* Sends a byte in each way that names nobody. */
static void ways(int to)
{
	struct iovec v = {"v", 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	must(write(to, "w", 1));
	must(writev(to, &v, 1));
	must(send(to, "s", 1, 0));
	must(sendmsg(to, &m, 0));
	int p[2];
	must(pipe(p));
	must(write(p[1], "p", 1));
	must(splice(p[0], 0, to, 0, 1, 0));
	close(p[0]), close(p[1]);
	int f = must(open("bytes", O_RDONLY));
	must(sendfile(to, f, 0, 1));
	close(f);
}

static void all(const char *kind, int from, int to)
{
	static const char *names[] = {"write", "writev", "send", "sendmsg", "splice", "sendfile"};
	char line[64];
	pid_t c = must(fork());
	if (!c) {
		ways(to);
		_exit(0);
	}
	for (int i = 0; i < 6; i++) {
		snprintf(line, sizeof line, "%s %s by a child", kind, names[i]);
		receive(line, from, c);
	}
	t_reap("child", c);
	ways(to);
	for (int i = 0; i < 6; i++) {
		snprintf(line, sizeof line, "%s %s", kind, names[i]);
		receive(line, from, maker);
	}
}

int main(void)
{
	int p[2], on = 1;
	maker = getpid();
	t_write("bytes", "bytes");
	int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	const char *names[] = {"stream", "datagrams", "packets"};
	for (int i = 0; i < 3; i++) {
		must(socketpair(AF_UNIX, kinds[i], 0, p));
		must(setsockopt(p[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
		all(names[i], p[0], p[1]);
		close(p[0]), close(p[1]);
	}
	/* What the server writes on a connection that another process has accepted. */
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "name"};
	int l = must(socket(AF_UNIX, SOCK_STREAM, 0));
	must(bind(l, (void *)&a, sizeof a));
	must(listen(l, 1));
	int s = must(socket(AF_UNIX, SOCK_STREAM, 0));
	must(setsockopt(s, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	must(connect(s, (void *)&a, sizeof a));
	pid_t c = must(fork());
	if (!c) {
		int got = must(accept(l, 0, 0));
		must(write(got, "g", 1));
		_exit(0);
	}
	receive("accepted by a child", s, c);
	t_reap("child", c);
	unlink("name"), unlink("bytes");
	return t_done();
}
