/* RLIMIT_MSGQUEUE: what a user's queues may hold together, whichever process opens them; what is gone counts no more. */
#include "t.h"
#include <mqueue.h>
#include <sys/file.h>
static char name[3][32];
static mqd_t make(int at, long messages, long size)
{
	struct mq_attr a = {.mq_maxmsg = messages, .mq_msgsize = size};
	return mq_open(name[at], O_RDWR | O_CREAT | O_EXCL, 0600, &a);
}
int main(void)
{
	/* A user who has no other queues: this test runs several times at once. */
	if (!getuid())
		must(setgid(100000 + getpid())), must(setuid(100000 + getpid()));
	else {
		char lock[40];
		snprintf(lock, sizeof lock, "/tmp/.mqueue_limit.%d", getuid());
		must(flock(must(open(lock, O_RDWR | O_CREAT, 0600)), LOCK_EX));
	}
	for (int i = 0; i < 3; i++)
		snprintf(name[i], sizeof name[i], "/limit%d.%d", getpid(), i);
	struct rlimit l = {20000, 20000};
	must(setrlimit(RLIMIT_MSGQUEUE, &l));
	mqd_t first = must(make(0, 1, 8192)), second = must(make(1, 1, 8192));
	R(make(2, 1, 8192));
	R(make(2, 10, 8192));
	/* One that is there costs nothing. */
	mqd_t again = must(mq_open(name[0], O_RDWR));
	must(mq_close(again));
	/* Without a name it is there until it is closed. */
	must(mq_unlink(name[1]));
	R(make(2, 1, 8192));
	must(mq_close(second));
	second = must(make(2, 1, 8192));
	/* In a child as well, and until its end. */
	CHILD("child", R(make(1, 1, 8192)));
	must(mq_close(first)), must(mq_close(second));
	must(mq_unlink(name[0])), must(mq_unlink(name[2]));
	CHILD("child", must(make(1, 1, 8192)); must(mq_unlink(name[1])));
	must(make(1, 2, 8192));
	must(mq_unlink(name[1]));
	return t_failed;
}
