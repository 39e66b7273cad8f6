/* Operations on files: reading and writing with and without position and vectors, opening, names, attributes, closing. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
#include <sys/xattr.h>
static struct ring r;

static int open_by(const char *what, int dir, const char *path, int flags, int mode)
{
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_OPENAT, dir, path, mode, 0, 1);
	s->open_flags = flags;
	must(ring_submit(&r, 1));
	struct io_uring_cqe c;
	ring_take(&r, &c);
	ring_say(what, &c, 1);
	return c.res;
}

int main(void)
{
	char b[64] = "", d[8] = "";
	must(ring_open(&r, 16, 0, 0));
	int f = open_by("open", AT_FDCWD, "file", O_RDWR | O_CREAT | O_EXCL, 0640);
	open_by("again", AT_FDCWD, "file", O_RDWR | O_CREAT | O_EXCL, 0640);
	open_by("nothing", AT_FDCWD, "nothing", O_RDONLY, 0);
	open_by("nowhere", AT_FDCWD, (char *)8, O_RDONLY, 0);
	T(f > 0 && fcntl(f, F_GETFD) == 0);
	ring_one(&r, "write", IORING_OP_WRITE, f, "hello world", 11, 0);
	N(lseek(f, 0, SEEK_CUR));
	ring_one(&r, "write at the position", IORING_OP_WRITE, f, "HELLO", 5, -1);
	N(lseek(f, 0, SEEK_CUR));
	ring_one(&r, "read", IORING_OP_READ, f, b, 64, 0);
	S(b);
	ring_one(&r, "read at the position", IORING_OP_READ, f, b, 3, -1);
	N(lseek(f, 0, SEEK_CUR));
	ring_one(&r, "read behind the end", IORING_OP_READ, f, b, 3, 100);
	ring_one(&r, "read before the start", IORING_OP_READ, f, b, 3, -2);
	ring_one(&r, "read to nowhere", IORING_OP_READ, f, (void *)8, 3, 0);
	ring_one(&r, "read what is not open", IORING_OP_READ, 999, b, 3, 0);
	struct iovec v[2] = {{b, 5}, {d, 6}};
	memset(b, 0, sizeof b);
	ring_one(&r, "readv", IORING_OP_READV, f, v, 2, 0);
	T(!memcmp(b, "HELLO", 5) && !memcmp(d, " world", 6));
	v[0].iov_base = "ab", v[0].iov_len = 2, v[1].iov_base = "cd", v[1].iov_len = 2;
	ring_one(&r, "writev", IORING_OP_WRITEV, f, v, 2, 20);
	ring_one(&r, "too many", IORING_OP_WRITEV, f, v, 5000, 20);
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_WRITE, f, "end", 3, 0, 1);
	s->rw_flags = RWF_APPEND;
	ring_do(&r, "appended");
	N(lseek(f, 0, SEEK_END));
	ring_sqe(&r, IORING_OP_WRITE, f, "end", 3, 0, 1)->rw_flags = 0x4000;
	ring_do(&r, "unknown flags");
	ring_one(&r, "fsync", IORING_OP_FSYNC, f, 0, 0, 0);
	ring_sqe(&r, IORING_OP_FSYNC, f, 0, 0, 0, 1)->fsync_flags = IORING_FSYNC_DATASYNC;
	ring_do(&r, "fdatasync");
	ring_sqe(&r, IORING_OP_FSYNC, f, 0, 0, 0, 1)->fsync_flags = 6;
	ring_do(&r, "unknown flags");
	ring_sqe(&r, IORING_OP_FALLOCATE, f, (void *)5000, 0, 100, 1);
	ring_do(&r, "fallocate");
	N(lseek(f, 0, SEEK_END));
	ring_one(&r, "fadvise", IORING_OP_FADVISE, f, 0, 100, 0);
	void *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ring_sqe(&r, IORING_OP_MADVISE, -1, m, 8192, 0, 1)->fadvise_advice = MADV_DONTNEED;
	ring_do(&r, "madvise");
	ring_sqe(&r, IORING_OP_MADVISE, -1, (char *)m + 1, 8192, 0, 1)->fadvise_advice = MADV_DONTNEED;
	ring_do(&r, "madvise askew");
	struct statx x;
	memset(&x, 0, sizeof x);
	s = ring_sqe(&r, IORING_OP_STATX, AT_FDCWD, "file", STATX_SIZE | STATX_MODE, (uintptr_t)&x, 1);
	ring_do(&r, "statx");
	T(x.stx_size == 5100 && (x.stx_mode & 0777) == 0640);
	ring_sqe(&r, IORING_OP_STATX, AT_FDCWD, "nothing", STATX_SIZE, (uintptr_t)&x, 1);
	ring_do(&r, "statx of nothing");
	ring_one(&r, "mkdirat", IORING_OP_MKDIRAT, AT_FDCWD, "dir", 0755, 0);
	ring_one(&r, "mkdirat", IORING_OP_MKDIRAT, AT_FDCWD, "dir", 0755, 0);
	ring_one(&r, "symlinkat", IORING_OP_SYMLINKAT, AT_FDCWD, "file", 0, (uintptr_t)"dir/link");
	ring_sqe(&r, IORING_OP_LINKAT, AT_FDCWD, "file", AT_FDCWD, (uintptr_t)"dir/same", 1);
	ring_do(&r, "linkat");
	ring_sqe(&r, IORING_OP_RENAMEAT, AT_FDCWD, "dir/same", AT_FDCWD, (uintptr_t)"dir/other", 1);
	ring_do(&r, "renameat");
	ring_sqe(&r, IORING_OP_RENAMEAT, AT_FDCWD, "dir/other", AT_FDCWD, (uintptr_t)"file", 1)->rename_flags = 1;
	ring_do(&r, "renameat onto another");
	N(access("dir/other", F_OK));
	ring_one(&r, "unlinkat", IORING_OP_UNLINKAT, AT_FDCWD, "dir", 0, 0);
	ring_one(&r, "unlinkat", IORING_OP_UNLINKAT, AT_FDCWD, "dir/other", 0, 0);
	ring_one(&r, "unlinkat", IORING_OP_UNLINKAT, AT_FDCWD, "dir/link", 0, 0);
	ring_sqe(&r, IORING_OP_UNLINKAT, AT_FDCWD, "dir", 0, 0, 1)->unlink_flags = AT_REMOVEDIR;
	ring_do(&r, "unlinkat of a directory");
	/* Opened, written and closed by one chain: the number is known beforehand. */
	int next = must(dup(0));
	must(close(next));
	s = ring_sqe(&r, IORING_OP_OPENAT, AT_FDCWD, "chained", 0600, 0, 1);
	s->open_flags = O_CREAT | O_WRONLY, s->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_WRITE, next, "chain", 5, 0, 2)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_CLOSE, next, 0, 0, 0, 3);
	must(ring_submit(&r, 3));
	struct io_uring_cqe c;
	while (ring_take(&r, &c))
		ring_say("chain", &c, c.user_data == 1);
	R(close(next));
	struct stat st;
	must(stat("chained", &st));
	N(st.st_size);
	ring_one(&r, "close", IORING_OP_CLOSE, f, 0, 0, 0);
	ring_one(&r, "close again", IORING_OP_CLOSE, f, 0, 0, 0);
	ring_one(&r, "close the ring", IORING_OP_CLOSE, r.fd, 0, 0, 0);
	struct { uint64_t flags, mode, resolve; } how = {O_RDONLY, 0, 0};
	ring_sqe(&r, IORING_OP_OPENAT2, AT_FDCWD, "file", sizeof how, (uintptr_t)&how, 1);
	must(ring_submit(&r, 1));
	ring_take(&r, &c);
	ring_say("openat2", &c, 1);
	f = c.res;
	ring_one(&r, "write to what is read", IORING_OP_WRITE, f, "x", 1, 0);
	/* splice: file to pipe, pipe to file. */
	int p[2];
	must(pipe(p));
	s = ring_sqe(&r, IORING_OP_SPLICE, p[1], 0, 5, -1, 1);
	s->splice_off_in = 0, s->splice_fd_in = f;
	ring_do(&r, "splice");
	memset(b, 0, sizeof b);
	must(read(p[0], b, 5));
	S(b);
	must(write(p[1], "piped", 5));
	int q[2];
	must(pipe(q));
	s = ring_sqe(&r, IORING_OP_TEE, q[1], 0, 5, 0, 1);
	s->splice_fd_in = p[0];
	ring_do(&r, "tee");
	N(read(q[0], b, 5) + read(p[0], b, 5));
	s = ring_sqe(&r, IORING_OP_SPLICE, f, 0, 5, -1, 1);
	s->splice_off_in = 0, s->splice_fd_in = f;
	ring_do(&r, "splice without a pipe");
	unlink("file"), unlink("chained");
	ring_close(&r);
	return t_failed;
}
