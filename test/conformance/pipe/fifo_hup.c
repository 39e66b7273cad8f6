/* A FIFO's reader is notified of the end of the last writer also if that one had opened first; if none was there, only of one who came since. */
#include "t.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/stat.h>

static int writer;

static void *write_end(void *arg) {
	writer = open("fifo", O_WRONLY);
	return arg;
}

static void events(const char *when, int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n = poll(&p, 1, 0);
	say("%s: %d %#x\n", when, n, p.revents);
}

int main(void) {
	char b[8];
	must(mkfifo("fifo", 0600));
	for (int writer_first = 0; writer_first < 2; writer_first++) {
		pthread_t t;
		int reader;
		say("writer first: %d\n", writer_first);
		if (writer_first) {
			must(pthread_create(&t, NULL, write_end, NULL) ? -1 : 0);
			t_ms(50);
			reader = must(open("fifo", O_RDONLY));
			pthread_join(t, NULL);
		} else {
			reader = must(open("fifo", O_RDONLY | O_NONBLOCK));
			events("none yet", reader);
			writer = must(open("fifo", O_WRONLY));
		}
		must(fcntl(reader, F_SETFL, O_NONBLOCK));
		int e = must(epoll_create1(0));
		struct epoll_event ask = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET}, got = {0};
		must(epoll_ctl(e, EPOLL_CTL_ADD, reader, &ask));
		R(epoll_wait(e, &got, 1, 0));
		must(write(writer, "x", 1));
		R(epoll_wait(e, &got, 1, 0));
		R(read(reader, b, 8));
		R(read(reader, b, 8));
		events("empty", reader);
		close(writer);
		R(epoll_wait(e, &got, 1, 1000));
		say("events: %#x\n", got.events);
		R(read(reader, b, 8));
		events("closed", reader);
		close(reader);
		close(e);
	}
	return 0;
}
