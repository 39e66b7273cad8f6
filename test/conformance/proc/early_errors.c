/* Which error comes first: of semaphores that are none and not the caller's, of a message queue opened for nothing. */
#include "t.h"
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/sem.h>
int main(void)
{
	int id = must(semget(IPC_PRIVATE, 2, 0));
	struct sembuf in = {1, 1, 0}, out = {2, 1, 0}, none = {7, 0, 0};
	pid_t p = must(fork());
	if (!p) {
		if (geteuid() == 0)
			must(setresgid(65534, 65534, 65534)), must(setresuid(65534, 65534, 65534));
		R(semop(id, &in, 1));
		R(semop(id, &out, 1));
		R(semop(id, &none, 1));
		_exit(0);
	}
	t_reap("nobody", p);
	semctl(id, 0, IPC_RMID);
	mq_unlink("/janua-early");
	R(syscall(SYS_mq_open, "janua-early", 3, 0600, 0) == -1);
	S(t_errno(errno));
	mqd_t q = must(mq_open("/janua-early", O_CREAT | O_RDWR, 0600, 0));
	R(syscall(SYS_mq_open, "janua-early", 3, 0600, 0));
	R(syscall(SYS_mq_open, "janua-early", 3 | O_CREAT | O_EXCL, 0600, 0));
	mq_close(q), mq_unlink("/janua-early");
	return t_done();
}
