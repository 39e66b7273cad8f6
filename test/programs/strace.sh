# strace: calls of a program and of those it starts, counted, changed on their way, and of one that runs already.
# seconds: 120
cat > p.c <<'C'
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *thread(void *p) { rmdir("/nowhere/thread"); return p; }
int main(int argc, char **argv)
{
	pthread_t t;
	pthread_create(&t, 0, thread, 0);
	pthread_join(t, 0);
	if (!fork()) {
		rmdir("/nowhere/child");
		execl("/bin/true", "true", (char *)0);
	}
	wait(0);
	errno = 0;
	int r = rmdir("/nowhere/parent");
	printf("%d %s\n", r, strerror(errno));
	return 3;
}
C
gcc -O1 -pthread -o p p.c
strace -f -qq -e trace=rmdir,execve -e signal=none -o out ./p; echo "ended $?"
sed -E 's/^[0-9]+ +//; s/0x[0-9a-f]+ .*\*\/\)/ENV)/' out | sort
strace -f -c -o out ./p > said; cat said; grep -c -E 'rmdir|execve' out
# Another error, another result, no call at all.
strace -f -qq -e trace=rmdir -e inject=rmdir:error=EDOM ./p 2> err
strace -f -qq -e trace=rmdir -e inject=rmdir:retval=7 ./p 2> err
strace -qq -e trace=exit_group -e signal=all -o out sh -c 'kill -USR1 $$' 2> err; echo "ended $?"
sed -E 's/si_pid=[0-9]+, si_uid=[0-9]+/si_pid=N/' out
# One that runs already, in a call that waits; it goes on by itself afterwards.
mkfifo fifo
sh -c 'read line < fifo; echo "read $line"; exit 4' & pid=$!
sleep 0.3
strace -qq -p $pid -e trace=exit_group -o out & tracer=$!
for i in $(seq 200); do grep -q 'TracerPid:	[1-9]' /proc/$pid/status && break; sleep 0.05; done
echo something > fifo
wait $pid; echo "waited $?"
wait $tracer; grep -o 'exit_group(4)' out
