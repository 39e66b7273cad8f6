/* Without lines: a read of fewer bytes than VMIN waits for no more than it asks for. */
#include "t.h"
#include <termios.h>
#include <stdlib.h>

int main(void) {
	struct termios t;
	char data[8];
	int master = must(posix_openpt(O_RDWR | O_NOCTTY));
	must(grantpt(master));
	must(unlockpt(master));
	int slave = must(open(ptsname(master), O_RDWR | O_NOCTTY));
	must(tcgetattr(slave, &t));
	t.c_lflag &= ~(ICANON | ECHO);
	t.c_cc[VMIN] = 4;
	t.c_cc[VTIME] = 0;
	must(tcsetattr(slave, TCSANOW, &t));
	must(write(master, "ab", 2));
	struct pollfd p = {slave, POLLIN, 0};
	alarm(20);
	R(poll(&p, 1, 0));
	R(read(slave, data, 1));
	R(read(slave, data, 1));
	must(write(master, "abc", 3));
	R(read(slave, data, 3));
	/* One that waits is woken by the last byte it asks for. */
	pid_t child = must(fork());
	if (!child) {
		R(read(slave, data, 2));
		_exit(0);
	}
	t_asleep(child, child);
	must(write(master, "a", 1));
	must(write(master, "b", 1));
	t_reap("reader", child);
	return 0;
}
