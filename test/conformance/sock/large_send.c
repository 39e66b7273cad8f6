/* A send of a gigabyte into a buffer as large can be killed; what a call that does not wait sends is what there is room for. */
#include "../t.h"
#include <sys/socket.h>
#include <sys/wait.h>
enum { LARGE = 6 << 20 };

/* The socket's buffer is made to hold at least so many bytes, if that is permitted. */
static int enlarge(int fd, int bytes)
{
	return setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
}

int main(void)
{
	int p[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	char *m = mmap(0, 1 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(m == MAP_FAILED ? -1 : 0);
	if (enlarge(p[0], 1 << 30)) {
		say("not permitted\n");
		return t_done();
	}
	T(send(p[0], m, LARGE, MSG_DONTWAIT) == LARGE);
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	T(write(p[0], m, LARGE) == LARGE);
	static char b[65536];
	long all = 0, n;
	while ((n = recv(p[1], b, sizeof b, MSG_DONTWAIT)) > 0)
		all += n;
	N(all);
	pid_t child = must(fork());
	if (!child) {
		fcntl(p[0], F_SETFL, 0);
		for (;;)
			if (send(p[0], m, 1 << 30, 0) < 0)
				pause();
	}
	t_ms(100);
	kill(child, SIGKILL);
	int s;
	must(waitpid(child, &s, 0));
	N(WTERMSIG(s));
	return t_done();
}
