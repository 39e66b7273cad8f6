/* dup, dup2, dup3, close_range and the fcntl commands that copy and mark descriptors. */
#include "t.h"
int main(void)
{
	int f = must(open("f", O_RDWR | O_CREAT, 0600));
	must(write(f, "0123456789", 10));
	int g = must(dup(f));
	N(lseek(g, 3, SEEK_SET));
	N(lseek(f, 0, SEEK_CUR));
	R(fcntl(f, F_SETFL, O_APPEND | O_NONBLOCK));
	T((fcntl(g, F_GETFL) & (O_APPEND | O_NONBLOCK)) == (O_APPEND | O_NONBLOCK));
	R(fcntl(f, F_SETFD, FD_CLOEXEC));
	N(fcntl(g, F_GETFD));
	N(fcntl(f, F_GETFD));
	R(dup2(f, f));
	N(fcntl(f, F_GETFD)); /* unchanged when both are the same */
	R(dup2(f, 40));
	N(fcntl(40, F_GETFD));
	R(dup3(f, 41, O_CLOEXEC));
	N(fcntl(41, F_GETFD));
	R(dup3(f, f, 0));
	R(dup3(f, 42, O_APPEND));
	R(dup2(99, 40));
	N(fcntl(40, F_GETFD)); /* still open after the refusal */
	R(dup2(f, -1));
	R(dup2(f, 1 << 30));
	R(dup(-1));
	N(fcntl(f, F_DUPFD, 50));
	N(fcntl(f, F_DUPFD, 50));
	N(fcntl(f, F_DUPFD_CLOEXEC, 60));
	N(fcntl(60, F_GETFD));
	R(fcntl(f, F_DUPFD, -1));
	R(fcntl(f, F_DUPFD, 1 << 30));
	R(fcntl(f, 9999, 0));
	R(fcntl(99, F_GETFD));
	R(fcntl(f, F_SETFL, O_RDONLY));
	N(fcntl(f, F_GETFL) & O_ACCMODE); /* the access mode does not change */
	R(fcntl(f, F_SETOWN, getpid()));
	T(fcntl(f, F_GETOWN) == getpid());
	N(fcntl(f, F_GETSIG));
	for (int i = 100; i < 110; i++)
		must(dup2(f, i));
	R(syscall(SYS_close_range, 102, 105, 0));
	R(fcntl(101, F_GETFD));
	R(fcntl(102, F_GETFD));
	R(fcntl(105, F_GETFD));
	R(fcntl(106, F_GETFD));
	R(syscall(SYS_close_range, 106, -1u, 4 /* CLOEXEC */));
	N(fcntl(107, F_GETFD));
	R(syscall(SYS_close_range, 9, 8, 0));
	R(syscall(SYS_close_range, 3, 4, 0x100));
	N(lseek(40, 0, SEEK_CUR));
	R(close(f));
	N(lseek(40, 0, SEEK_CUR));
	R(read(40, (char[4]){0}, 4));
	return t_done();
}
