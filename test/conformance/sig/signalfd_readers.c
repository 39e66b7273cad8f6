/* A signalfd shows each reader its own signals: its thread's and its process', not its maker's; an epoll shows those of
 * who waits, and hears of those of who added it. */
#include "t.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

static sigset_t set;
static int fd, ep, blocking;
static pid_t main_tid, second_tid;
static int here[2], there[2];

static void direct(pid_t process, int thread, int sig) { must((int)syscall(SYS_tgkill, process, thread, sig)); }

/* Reads all there is: the signals by name. */
static void take(const char *who, int from)
{
	struct signalfd_siginfo s[8];
	memset(s, 0, sizeof s);
	struct pollfd p = {from, POLLIN, 0};
	int ready = poll(&p, 1, 0);
	ssize_t n = read(from, s, sizeof s);
	say("%s: poll %d", who, ready);
	if (n < 0)
		say(" read %s\n", errno == EAGAIN ? "EAGAIN" : "?");
	else {
		for (unsigned i = 0; i < n / sizeof *s; i++)
			say(" %s", t_sig(s[i].ssi_signo));
		say("\n");
	}
}

/* What an epoll shows at once. */
static void look(const char *who)
{
	struct epoll_event e = {0, {0}};
	int n = epoll_wait(ep, &e, 1, 0);
	say("%s: epoll %d events %x\n", who, n, n > 0 ? e.events : 0);
}

static void pass(int end) { must((int)write(end, "", 1)); }
static void await(int end) { char c; must((int)read(end, &c, 1)); }

static void *second(void *unused)
{
	(void)unused;
	second_tid = t_gettid();
	/* The first thread has SIGUSR1; this one gets SIGUSR2, and the process SIGRTMIN. */
	take("second, while the first has one", fd);
	look("second, while the first has one");
	direct(getpid(), t_gettid(), SIGUSR2);
	take("second, its own", fd);
	kill(getpid(), SIGRTMIN);
	take("second, the process'", fd);
	pass(there[1]);
	/* A wait for one's own signal: the first thread's is no end of it. */
	await(here[0]);
	struct signalfd_siginfo s;
	R(read(blocking, &s, sizeof s));
	say("second, after waiting: %s\n", t_sig(s.ssi_signo));
	struct pollfd p = {fd, POLLIN, 0};
	direct(getpid(), main_tid, SIGUSR1);
	R(poll(&p, 1, 20));
	look("second, beside the first's");
	pass(there[1]);
	await(here[0]);
	return 0;
}

static void threads(void)
{
	pthread_t t;
	direct(getpid(), main_tid, SIGUSR1);
	must(pthread_create(&t, 0, second, 0));
	await(there[0]);
	take("first", fd);
	/* Its own signal does not end the other's wait. */
	pass(here[1]);
	t_asleep(getpid(), second_tid);
	direct(getpid(), main_tid, SIGUSR1);
	t_asleep(getpid(), second_tid);
	direct(getpid(), second_tid, SIGUSR2);
	await(there[0]);
	take("first, which has had one twice", fd);
	pass(here[1]);
	pthread_join(t, 0);
}

/* Sends a descriptor. */
static void send_fd(int to, int what)
{
	char c = 0, room[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &what, sizeof what);
	must((int)sendmsg(to, &m, 0));
}

static int receive_fd(int from)
{
	char c, room[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	must((int)recvmsg(from, &m, 0));
	int got;
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
	return got;
}

int main(void)
{
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, 0);
	main_tid = t_gettid();
	must(pipe(here));
	must(pipe(there));
	int pair[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	/* A process that has nothing of what is made from here on. */
	pid_t stranger = must(fork());
	if (!stranger) {
		int got = receive_fd(pair[1]);
		take("passed on, nothing of its own", got);
		raise(SIGUSR2);
		take("passed on, its own", got);
		ep = receive_fd(pair[1]);
		look("passed on");
		raise(SIGUSR2);
		/* The epoll has not been notified of it. */
		look("passed on, with its own");
		pass(pair[1]);
		await(pair[1]);
		look("passed on, with its own and the maker's");
		pass(pair[1]);
		_exit(0);
	}
	fd = must(signalfd(-1, &set, SFD_NONBLOCK));
	blocking = must(signalfd(-1, &set, 0));
	ep = must(epoll_create1(0));
	struct epoll_event e = {EPOLLIN, {0}};
	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
	look("first, nothing");
	threads();

	raise(SIGUSR1);
	send_fd(pair[0], fd);
	send_fd(pair[0], ep);
	await(pair[0]);
	kill(getpid(), SIGRTMIN);
	pass(pair[0]);
	await(pair[0]);
	t_reap("stranger", stranger);
	take("maker", fd);

	/* After fork nothing is pending, whatever the parent has. */
	raise(SIGUSR1);
	CHILD("forked", {
		take("forked", fd);
		kill(getpid(), SIGUSR2);
		take("forked, its own", fd);
	});
	look("parent");
	take("parent", fd);
	look("parent, once read");
	/* An epoll of one's own, of the descriptor of another. */
	CHILD("own epoll", {
		ep = must(epoll_create1(0));
		must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
		look("nothing yet");
		raise(SIGRTMIN);
		look("its own");
		take("its own", fd);
		look("read");
	});
	/* An epoll in an epoll asks for the same reader. */
	int outer = must(epoll_create1(0));
	must(epoll_ctl(outer, EPOLL_CTL_ADD, ep, &e));
	ep = outer;
	raise(SIGUSR2);
	look("through two");
	take("through two", fd);
	look("through two, read");
	return t_done();
}
