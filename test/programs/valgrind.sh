# valgrind: what memcheck, helgrind and callgrind find, in programs of both places, with threads, signals and children.
# seconds: 240
cat > p.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int shared;
static volatile sig_atomic_t caught;
static void *run(void *p)
{
	shared += p != 0;
	return malloc(33);
}
static void handler(int s) { caught += s; }
int main(int argc, char **argv)
{
	char *what = argc > 1 ? argv[1] : "";
	int *p = malloc(40);
	pthread_t t[2];
	void *of[2];
	if (!strcmp(what, "undefined"))
		puts(p[3] ? "set" : "zero");
	if (!strcmp(what, "beyond"))
		p[10] = 1;
	if (!strcmp(what, "leak"))
		p = malloc(77);
	free(p);
	if (!strcmp(what, "freed"))
		p[1] = 2;
	for (int i = 0; i < 2; i++)
		pthread_create(t + i, 0, run, strcmp(what, "race") ? 0 : what);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], of + i), free(of[i]);
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		execlp("echo", "echo", "child", (char *)0);
		_exit(1);
	}
	waitpid(child, 0, 0);
	printf("caught %d\n", caught);
	return 3;
}
C
gcc -g -O0 -pthread -o p p.c
gcc -g -O0 -pthread -no-pie -o q p.c
# Addresses, process numbers and sums over the C library's own allocations are the machine's.
said() { sed -E 's/^==[0-9]+== ?//; s/0x[0-9A-F]+/ADDR/g' | grep -oE "^(Invalid|Conditional|Possible data race|ERROR SUMMARY: [0-9]+)[a-z -]*|definitely lost: [0-9,]+ bytes|.*at ADDR: (main|run) .*" ; }
for form in ./p ./q; do
	for what in none undefined beyond freed leak; do
		valgrind --leak-check=full $form $what > out 2> err; echo "$form $what: $?"
		cat out; said < err
	done
done
valgrind --tool=helgrind ./p race > out 2> err; echo "race: $?"; grep -q "Possible data race" err && echo "found"
valgrind --tool=callgrind --callgrind-out-file=calls ./p > out 2> err; echo "callgrind: $?"; cat out; grep -q "fn=.*main" calls && echo "counted"
valgrind --trace-children=yes ./p > out 2> err; echo "children: $?"; cat out; grep -c "ERROR SUMMARY: 0" err
valgrind sh -c 'kill -SEGV $$' > out 2> err; echo "signal: $?"
