/* What a process' end undoes on semaphores has limits, and an operation that meets one changes nothing. */
#include "t.h"
#include <sys/ipc.h>
#include <sys/sem.h>
static int set;
static int op(int num, int by, int flags)
{
	struct sembuf one = {num, by, flags | IPC_NOWAIT};
	return semop(set, &one, 1);
}
static void values(void) { say("values %d %d\n", semctl(set, 0, GETVAL), semctl(set, 1, GETVAL)); }
int main(void)
{
	set = must(semget(IPC_PRIVATE, 2, IPC_CREAT | 0600));
	struct sembuf both[] = {{1, 5, SEM_UNDO | IPC_NOWAIT}, {0, 1, SEM_UNDO | IPC_NOWAIT}}, zero[] = {{1, 3, SEM_UNDO}, {0, 0, IPC_NOWAIT}};
	struct sembuf over[] = {{1, 7, SEM_UNDO}, {1, -2, SEM_UNDO}, {0, 32767, 0}, {0, 1, 0}};
	CHILD("up", R(op(0, 32767, SEM_UNDO)); R(op(0, -32767, 0)); R(op(0, 1, SEM_UNDO)); R(op(0, 2, SEM_UNDO)); values();
	      R(semop(set, both, 2)); values(); R(op(0, 5, 0)); R(op(0, -1, SEM_UNDO)); R(op(0, 2, SEM_UNDO)); values());
	values();
	R(semctl(set, 0, SETVAL, 32767));
	CHILD("down", R(op(0, -32767, SEM_UNDO)); R(op(0, 2, 0)); R(op(0, -1, SEM_UNDO)); R(op(0, -1, SEM_UNDO)); values());
	values();
	R(semctl(set, 0, SETVAL, 1));
	R(semctl(set, 1, SETVAL, 0));
	CHILD("taken back", R(semop(set, zero, 2)); R(semop(set, over, 4)); values(); R(op(1, 4, SEM_UNDO)));
	values();
	return (int)semctl(set, 0, IPC_RMID) | t_done();
}
