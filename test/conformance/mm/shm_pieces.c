/* shm_nattch counts mappings: each part of one that was cut, whatever cut it, and they are not joined again. */
#include "t.h"
#include <sys/shm.h>
#define PAGE 4096
static int id;
static void attached(const char *what)
{
	struct shmid_ds d;
	must(shmctl(id, IPC_STAT, &d));
	say("%s: %d\n", what, (int)d.shm_nattch);
}
static void child(const char *what, void *detach)
{
	pid_t p = must(fork());
	if (!p) {
		if (detach)
			shmdt(detach);
		attached(what);
		_exit(0);
	}
	t_reap("child", p);
	attached("after it");
}
int main(void)
{
	struct shmid_ds d;
	id = must(shmget(IPC_PRIVATE, 4 * PAGE, 0600));
	attached("new");
	/* Room for all that is moved. */
	char *room = mmap(0, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(room == MAP_FAILED ? -1 : 0);
	char *p = shmat(id, room, SHM_REMAP);
	must(p == (void *)-1 ? -1 : 0);
	attached("attached");
	mprotect(p + PAGE, PAGE, PROT_READ);
	attached("cut in three");
	mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE);
	attached("all alike");
	munmap(p + PAGE, PAGE);
	attached("a hole");
	char *q = mremap(p + 2 * PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + 16 * PAGE);
	T(q == room + 16 * PAGE);
	attached("moved");
	munmap(p, PAGE);
	attached("head gone");
	T(mremap(q + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + 32 * PAGE) == room + 32 * PAGE);
	attached("one page moved");
	child("in a child", 0);
	char *r = shmat(id, 0, SHM_RDONLY);
	attached("a second time");
	child("detached there", r);
	shmdt(r);
	attached("detached");
	munmap(room + 32 * PAGE, PAGE);
	attached("that page gone");
	must(shmctl(id, IPC_RMID, 0));
	attached("removed");
	munmap(room, 64 * PAGE);
	R(shmctl(id, IPC_STAT, &d));
	return t_done();
}
