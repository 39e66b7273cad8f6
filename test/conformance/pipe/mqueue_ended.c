/* seconds: 120 */
/* The registration of a process that has ended bars no other, also when others looked at its descriptors while it ended. */
#include "t.h"
#include <dirent.h>
#include <mqueue.h>
static volatile int pid, over;
static void *look(void *a)
{
	while (!over) {
		char name[64];
		snprintf(name, sizeof name, "/proc/%d/fd", pid);
		DIR *d = pid ? opendir(name) : NULL;
		while (d && readdir(d))
			;
		if (d)
			closedir(d);
	}
	return a;
}
int main(void)
{
	char name[32];
	snprintf(name, sizeof name, "/ended%d", getpid());
	mqd_t q = mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
	T(q >= 0);
	must(mq_unlink(name));
	for (int i = 0; i < 200; i++)
		must(dup(0));
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		must(pthread_create(&t[i], 0, look, 0));
	int busy = 0;
	for (int i = 0; i < 200; i++) {
		pid_t p = must(fork());
		if (!p) {
			struct sigevent e = { .sigev_notify = SIGEV_NONE };
			int r = mq_notify(q, &e) ? 1 : 0;
			t_ms(1);
			_exit(r);
		}
		pid = p;
		int st;
		must(waitpid(p, &st, 0));
		busy += st != 0;
	}
	over = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	N(busy);
	return t_failed;
}
