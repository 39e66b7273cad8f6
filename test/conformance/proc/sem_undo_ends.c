/* SEM_UNDO: what the end of a process undoes, in several sets, in sets that are gone, and for all of its threads together. */
#include "t.h"
#include <sys/ipc.h>
#include <sys/sem.h>

static int make(int count)
{
	return must(semget(IPC_PRIVATE, count, 0600));
}

static int operate(int set, int num, int by, int flags)
{
	struct sembuf op = {num, by, flags};
	return semop(set, &op, 1);
}

static void *up(void *set)
{
	must(operate(*(int *)set, 0, 3, SEM_UNDO));
	return 0;
}

int main(void)
{
	int sets[40], many = 40;
	for (int i = 0; i < many; i++) {
		sets[i] = make(2);
		must(semctl(sets[i], 0, SETVAL, 10));
	}
	CHILD("several sets", {
		for (int i = 0; i < many; i += 3) {
			must(operate(sets[i], 0, -2, SEM_UNDO));
			must(operate(sets[i], 0, -1, 0));
			must(operate(sets[i], 1, i, SEM_UNDO));
		}
	});
	int right = 0;
	for (int i = 0; i < many; i++)
		right += semctl(sets[i], 0, GETVAL) == (i % 3 ? 10 : 9) && semctl(sets[i], 1, GETVAL) == 0;
	T(right == many);
	CHILD("sets that are gone", {
		for (int i = 0; i < 200; i++) {
			int set = make(1);
			must(operate(set, 0, 5, SEM_UNDO));
			must(semctl(set, 0, IPC_RMID));
			if (i == 100)
				must(operate(sets[1], 0, -4, SEM_UNDO));
		}
		N(semctl(sets[1], 0, GETVAL));
	});
	N(semctl(sets[1], 0, GETVAL));
	CHILD("threads", {
		pthread_t thread;
		for (int i = 0; i < 2; i++) {
			T(pthread_create(&thread, 0, up, &sets[2]) == 0);
			T(pthread_join(thread, 0) == 0);
		}
		N(semctl(sets[2], 0, GETVAL));
	});
	N(semctl(sets[2], 0, GETVAL));
	/* A child has nothing to undo of its parent's, and exec changes nothing. */
	CHILD("fork", {
		must(operate(sets[4], 0, -5, SEM_UNDO));
		CHILD("its child", N(semctl(sets[4], 0, GETVAL)));
		N(semctl(sets[4], 0, GETVAL));
		execl("/bin/true", "true", (char *)0);
	});
	N(semctl(sets[4], 0, GETVAL));
	/* Who waits is woken by an end. */
	int go[2];
	must(pipe(go));
	must(semctl(sets[5], 0, SETVAL, 1));
	pid_t holder = must(fork());
	if (!holder) {
		char byte;
		must(operate(sets[5], 0, -1, SEM_UNDO));
		write(go[1], "x", 1);
		pause();
	}
	char byte;
	must(read(go[0], &byte, 1));
	R(operate(sets[5], 0, -1, IPC_NOWAIT));
	must(kill(holder, SIGKILL));
	R(operate(sets[5], 0, -1, 0));
	t_reap("holder", holder);
	for (int i = 0; i < many; i++)
		must(semctl(sets[i], 0, IPC_RMID));
	return t_failed;
}
