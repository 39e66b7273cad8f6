/* A process that has seen a thousand others come and go, all of them there at once, makes some more, one at a time; the last sleeps until
 * the file `ready` is gone. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#define OTHERS 1000
#define LATER 70

int main(void)
{
	static pid_t others[OTHERS];
	for (int i = 0; i < OTHERS; i++) {
		others[i] = fork();
		if (others[i] < 0)
			return perror("fork"), 1;
		if (!others[i])
			for (;;)
				pause();
	}
	for (int i = 0; i < OTHERS; i++)
		kill(others[i], SIGKILL);
	for (int i = 0; i < OTHERS; i++)
		waitpid(others[i], 0, 0);
	for (int i = 0; i < LATER; i++) {
		pid_t later = fork();
		if (!later)
			_exit(0);
		waitpid(later, 0, 0);
	}
	pid_t child = fork();
	if (!child) {
		close(open("ready", O_CREAT | O_WRONLY, 0600));
		while (!access("ready", F_OK))
			usleep(10000);
		return 0;
	}
	int status = -1;
	waitpid(child, &status, 0);
	return status;
}
