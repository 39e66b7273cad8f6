// Memory is used up: the process that has most is killed, and no other. With an argument there is nobody else.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1l << 20)

static void eats(void)
{
	for (;;) {
		char *more = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (more == MAP_FAILED)
			_exit(1);
		memset(more, 1, MIB);
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		eats();
	for (int round = 0; round < 2; round++) {
		int told[2], status;
		pipe(told);
		// Somebody else needs a little memory all the time, too.
		pid_t other = fork();
		if (other == 0) {
			close(told[1]);
			char byte;
			pid_t parent = getppid();
			while (getppid() == parent) {
				char *page = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
				memset(page, 2, 16 * 4096);
				munmap(page, 16 * 4096);
				struct timeval none = {0, 1000};
				fd_set set;
				FD_ZERO(&set);
				FD_SET(told[0], &set);
				if (select(told[0] + 1, &set, NULL, NULL, &none) > 0 && read(told[0], &byte, 1) == 0)
					_exit(7);
			}
		}
		pid_t eater = fork();
		if (eater == 0)
			eats();
		waitpid(eater, &status, 0);
		printf("eater: signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
		close(told[1]);
		close(told[0]);
		waitpid(other, &status, 0);
		printf("other: exit code %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
		char *again = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(again, 3, 16 * MIB);
		munmap(again, 16 * MIB);
	}
	return 0;
}
