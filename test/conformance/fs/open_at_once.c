/* Opening what is there and known: the lowest number whatever has been taken before, nothing noticed of an open that gets none, threads that
 * open files of one table at its limit, and paths of every length. */
#include "../t.h"
#include <sys/inotify.h>

enum { LIMIT = 40, ROUNDS = 2000 };

static void *opener(void *wrong)
{
	for (int i = 0; i < ROUNDS; i++) {
		int fd = open("known", O_RDONLY);
		if (fd < 0) {
			if (errno != EMFILE)
				(*(int *)wrong)++;
			continue;
		}
		/* Nobody else has this number: it can be closed once. */
		if (fd >= LIMIT || close(fd) != 0)
			(*(int *)wrong)++;
	}
	return 0;
}

int main(void)
{
	struct rlimit limit = {LIMIT, LIMIT};
	struct stat st;
	char events[4096], path[PATH_MAX + 8];
	int filled[LIMIT], count = 0, f;
	must(setrlimit(RLIMIT_NOFILE, &limit));
	must(close(must(open("known", O_CREAT | O_RDWR, 0600))));
	must(mkdir("directory", 0700));
	must(mkfifo("fifo", 0600));
	must(symlink("known", "link"));
	must(stat("known", &st));

	int low = must(dup(0));
	must(close(low));
	T(open("known", O_RDONLY) == low);
	T(fcntl(low, F_GETFD) == 0);
	must(close(low));
	/* A number at the limit has been used. */
	T(dup2(0, LIMIT - 1) == LIMIT - 1);
	T(open("known", O_RDONLY | O_CLOEXEC) == low);
	T(fcntl(low, F_GETFD) == FD_CLOEXEC);
	T(open("directory", O_RDONLY | O_DIRECTORY) == low + 1);
	must(close(low));
	must(close(LIMIT - 1));
	T(open("known", O_RDONLY) == low);
	must(close(low));
	must(close(low + 1));

	R(open("known", O_RDONLY | O_DIRECTORY));
	R(open("directory", O_RDWR));
	R(open("directory", O_RDONLY | O_TRUNC));
	R(open("link", O_RDONLY | O_NOFOLLOW));
	R(open("known/", O_RDONLY));
	R(open("missing", O_RDONLY));
	R(open((char *)8, O_RDONLY));
	R(open("", O_RDONLY));
	OK(open("link", O_RDONLY));
	OK(open("/dev/null", O_RDWR));
	OK(open("fifo", O_RDONLY | O_NONBLOCK));
	for (f = low; f < low + 3; f++)
		must(close(f));
	for (int len = 120; len < 136; len++) {
		for (int i = 0; i < len; i++)
			path[i] = i < len - 5 ? (i % 2 ? '/' : '.') : "known"[i - (len - 5)];
		path[len] = 0;
		if (len % 2)
			T(open(path, O_RDONLY) == low && close(low) == 0);
	}
	memset(path, '/', sizeof path);
	strcpy(path + PATH_MAX - 6, "known");
	R(open(path, O_RDONLY));
	path[PATH_MAX - 1] = '/';
	path[PATH_MAX] = 0;
	R(open(path, O_RDONLY));

	int seen = must(inotify_init1(IN_NONBLOCK));
	must(inotify_add_watch(seen, "known", IN_OPEN | IN_CLOSE));
	must(inotify_add_watch(seen, "directory", IN_OPEN | IN_CLOSE));
	while ((f = dup(0)) >= 0)
		filled[count++] = f;
	R(open("known", O_RDONLY));
	R(open("directory", O_RDONLY));
	R(open("/dev/null", O_RDONLY));
	R(open("missing", O_RDONLY));
	R(read(seen, events, sizeof events));

	/* Two numbers for four threads. */
	must(close(filled[0]));
	must(close(filled[1]));
	pthread_t threads[4];
	int wrong[4] = {0};
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], 0, opener, &wrong[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], 0);
	T(wrong[0] + wrong[1] + wrong[2] + wrong[3] == 0);
	T(open("known", O_RDONLY) == filled[0]);
	T(open("known", O_RDONLY) == filled[1]);
	R(open("known", O_RDONLY));
	must(unlink("known"));
	must(unlink("link"));
	must(unlink("fifo"));
	must(rmdir("directory"));
	return t_failed;
}
