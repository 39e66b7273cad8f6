/* At RLIMIT_NOFILE a call that would make a descriptor does nothing at all: no file is made or emptied, no connection taken. */
#include "../t.h"
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static int ready(int fd, int events)
{
	struct pollfd p = {fd, events, 0};
	return poll(&p, 1, 0) == 1 && p.revents == events;
}

int main(void)
{
	struct rlimit limit = {32, 32};
	struct stat st;
	int filled[32], count = 0;
	must(setrlimit(RLIMIT_NOFILE, &limit));
	int f = must(open("full", O_CREAT | O_RDWR, 0600));
	must(write(f, "data", 4));
	must(close(f));
	must(mkfifo("fifo", 0600));

	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	int tcp = must(socket(AF_INET, SOCK_STREAM, 0)), tcp_client = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(tcp, (void *)&at, sizeof at));
	must(getsockname(tcp, (void *)&at, &len));
	must(listen(tcp, 5));
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "listener"};
	int local = must(socket(AF_UNIX, SOCK_STREAM, 0)), local_client = must(socket(AF_UNIX, SOCK_STREAM, 0));
	must(bind(local, (void *)&name, sizeof name));
	must(listen(local, 5));

	while ((f = dup(0)) >= 0)
		filled[count++] = f;
	/* Nobody has connected yet: what would wait for one does not. */
	R(accept(tcp, 0, 0));
	R(accept(local, 0, 0));
	must(connect(tcp_client, (void *)&at, sizeof at));
	must(connect(local_client, (void *)&name, sizeof name));
	R(accept(tcp, 0, 0));
	R(accept(local, 0, 0));
	R(open("full", O_RDWR | O_TRUNC));
	R(open("new", O_CREAT | O_RDWR, 0600));
	R(open("missing", O_RDONLY));
	R(open("fifo", O_RDONLY));
	R(open(".", O_TMPFILE | O_RDWR, 0600));
	R(mq_open("/t_descriptor_limit", O_CREAT | O_RDWR, 0600, 0));
	for (int i = 0; i < count; i++)
		must(close(filled[i]));

	must(stat("full", &st));
	N((int)st.st_size);
	R(stat("new", &st));
	R(mq_unlink("/t_descriptor_limit"));
	T(ready(tcp, POLLIN));
	T(ready(local, POLLIN));
	T(!ready(tcp_client, POLLIN | POLLHUP));
	OK(accept(tcp, 0, 0));
	OK(accept(local, 0, 0));

	/* A number that was set aside for nothing is the lowest again. */
	int low = must(dup(0));
	must(close(low));
	R(open("missing", O_RDONLY));
	T(dup(0) == low);
	must(unlink("full"));
	must(unlink("fifo"));
	must(unlink("listener"));
	return t_failed;
}
