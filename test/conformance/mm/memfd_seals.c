/* memfd_create and file seals. */
#include "t.h"
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif
int main(void)
{
	char l[256], b[8] = "", link[64];
	int f = must(memfd_create("name", MFD_CLOEXEC));
	T(fcntl(f, F_GETFD) == FD_CLOEXEC);
	N(fcntl(f, F_GET_SEALS)); /* no sealing asked for: sealed against seals */
	R(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE));
	snprintf(link, sizeof link, "/proc/self/fd/%d", f);
	ssize_t n = readlink(link, l, sizeof l - 1);
	l[n > 0 ? n : 0] = 0;
	S(l);
	struct stat s;
	R(fstat(f, &s));
	T(S_ISREG(s.st_mode) && s.st_size == 0 && s.st_nlink == 0);
	R(write(f, "abc", 3));
	R(lseek(f, 0, SEEK_SET));
	R(read(f, b, 8));
	R(memfd_create("x", 0x1000));
	R(memfd_create((char *)8, 0));
	char big[300];
	memset(big, 'n', sizeof big);
	big[299] = 0;
	R(memfd_create(big, 0));
	f = must(memfd_create("s", MFD_ALLOW_SEALING));
	N(fcntl(f, F_GET_SEALS));
	must(ftruncate(f, 4096));
	R(fcntl(f, F_ADD_SEALS, F_SEAL_SHRINK));
	R(ftruncate(f, 100));
	R(ftruncate(f, 8192));
	R(fcntl(f, F_ADD_SEALS, F_SEAL_GROW));
	R(ftruncate(f, 8193));
	R(pwrite(f, "xyz", 3, 8191));
	R(pwrite(f, "x", 1, 8192));
	char *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	R(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE)); /* a writable mapping is in the way */
	munmap(m, 4096);
	R(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE));
	R(pwrite(f, "x", 1, 0));
	T(mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0) == MAP_FAILED && errno == EPERM);
	T(mmap(0, 4096, PROT_READ, MAP_SHARED, f, 0) != MAP_FAILED);
	T(mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, f, 0) != MAP_FAILED);
	R(fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	R(fcntl(f, F_ADD_SEALS, F_SEAL_SEAL));
	R(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE));
	N(fcntl(f, F_GET_SEALS));
	R(fcntl(0, F_GET_SEALS));
	int g = must(open("plain", O_RDWR | O_CREAT, 0600));
	R(fcntl(g, F_GET_SEALS) == -1);
	/* A descriptor opened anew through /proc. */
	snprintf(l, sizeof l, "/proc/self/fd/%d", f);
	OK(open(l, O_RDONLY));
	CHILD("exec from a memfd", {
		int e = must(memfd_create("exe", MFD_CLOEXEC)), t = must(open("/bin/true", O_RDONLY));
		char c[65536];
		for (ssize_t k; (k = read(t, c, sizeof c)) > 0;)
			must(write(e, c, k));
		char *a[] = {"true", 0};
		fexecve(e, a, a + 1);
	});
	return t_done();
}
