# Programs of clang's sanitizers, which claim more of the address space than gcc's (docs/layout.md): memory, dataflow, thread, address.
# seconds: 180
# needs: clang
cat > p.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int raced;
static void *run(void *racing)
{
	if (racing)
		raced++;
	return malloc(100);
}
int main(int argc, char **argv)
{
	char *what = argc > 1 ? argv[1] : "";
	pthread_t t[2];
	void *p;
	for (int i = 0; i < 2; i++)
		pthread_create(t + i, 0, run, strcmp(what, "race") ? 0 : what);
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], &p);
		if (!strcmp(what, "undefined") && ((volatile char *)p)[3])
			puts("set");
		if (!strcmp(what, "beyond"))
			((volatile char *)p)[100] = 1;
		free(p);
	}
	p = calloc(1, 1 << 28);
	memset(p, 1, 1 << 20);
	free(p);
	printf("done %d\n", raced > 2);
	return 0;
}
C
for kind in memory:undefined dataflow: thread:race address:beyond; do
	for form in "-fPIE -pie" "-no-pie"; do
		# Sanitizers whose runtime is not installed, or that build no such programs, say so in both places.
		clang -g -O0 $form -fsanitize=${kind%:*} -o p p.c 2> /dev/null || { echo "${kind%:*} $form: not here"; continue; }
		for what in none ${kind#*:}; do
			./p $what > out 2> err; echo "${kind%:*} $form $what: $?"
			grep done out; grep -oE "(ERROR|WARNING): [A-Za-z]+Sanitizer: [a-z -]+" err | sed 's/ (pid=.*//' | sort -u
		done
	done
done
