# gdb: breakpoints, steps, threads, registers, memory and calls of functions, in programs of three kinds.
# seconds: 240
cat > p.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <string.h>
int total, watched;
char text[16] = "before";
__attribute__((noinline)) int add(int a, int b)
{
	int c = a + b;
	__atomic_add_fetch(&total, c, __ATOMIC_SEQ_CST);
	return c;
}
static void *run(void *p)
{
	add((long)p, 1);
	return 0;
}
int main(void)
{
	pthread_t t[2];
	for (long i = 0; i < 2; i++) {
		pthread_create(t + i, 0, run, (void *)i);
		pthread_join(t[i], 0);
	}
	watched = 1;
	watched = 2;
	printf("%d %s\n", add(3, 4), text);
	printf("total %d\n", total);
	return 5;
}
C
cat > commands <<'G'
set debuginfod enabled off
set confirm off
set width 0
set can-use-hw-watchpoints 0
set print thread-events off
break main
run
info symbol $pc
x/1i $pc
stepi
nexti
print $_siginfo.si_signo
break add if b == 1
continue
backtrace 1
print a
finish
continue
up
info locals
delete
tbreak p.c:24
continue
watch watched
continue
continue
print add(40, 2)
set var text = "after"
print total
info registers cs
delete
catch syscall exit_group
continue
continue
G
for form in "" "-no-pie" "-static"; do
	gcc -g -O0 $form -pthread -o p p.c
	echo "-- $form"
	gdb -nx -batch -x commands ./p < /dev/null > out 2> err; echo "ended $?"
	# Addresses and numbers of threads differ from run to run.
	grep -vE "libthread_db|New Thread|^\[|Missing separate|warning:" out | sed -E 's/0x[0-9a-f]+/ADDR/g; s/LWP [0-9]+/LWP N/; s/process [0-9]+/process N/'
done
# With the processor's own breakpoints and watchpoints.
cat > hardware <<'G'
set debuginfod enabled off
set confirm off
set width 0
set print thread-events off
break main
run
watch watched
continue
continue
delete 2
hbreak add if b == 4
continue
watch *(short *)text
finish
set var text[2] = 'F'
delete 3
watch total
continue
G
gdb -nx -batch -x hardware ./p < /dev/null > out 2> err; echo "ended $?"
grep -vE "libthread_db|New Thread|^\[|Missing separate|warning:" out | sed -E 's/0x[0-9a-f]+/ADDR/g; s/LWP [0-9]+/LWP N/; s/process [0-9]+/process N/'
# One that runs already.
cat > q.c <<'C'
#include <unistd.h>
volatile int go;
int main(void) { while (!go) usleep(1000); return 6; }
C
gcc -g -O0 -o q q.c
./q & pid=$!
gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'print go' -ex 'set var go = 1' -p $pid ./q < /dev/null 2> err | grep '^\$1'
wait $pid; echo "waited $?"
