# Programs of sanitizers, which lay claim to fixed parts of the address space (docs/layout.md): what they find, leaks at the end among
# it, and what is clean.
# seconds: 120
cat > p.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counted, raced;
static void *count(void *racing)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		counted++;
		pthread_mutex_unlock(&lock);
	}
	if (racing)
		raced++;
	return malloc(100);
}
int main(int argc, char **argv)
{
	pthread_t t[2];
	void *p;
	char *what = argc > 1 ? argv[1] : "";
	for (int i = 0; i < 2; i++)
		pthread_create(t + i, 0, count, strcmp(what, "race") ? 0 : what);
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], &p);
		if (!strcmp(what, "beyond"))
			((volatile char *)p)[100] = 1;
		if (strcmp(what, "leak"))
			free(p);
		if (!strcmp(what, "freed"))
			((volatile char *)p)[1] = 1;
	}
	p = malloc(1 << 28);
	memset(p, 1, 1 << 20);
	free(p);
	printf("counted %d\n", counted);
	return 0;
}
C
said() { grep -oE "ERROR: [A-Za-z]+Sanitizer: [a-z-]+|WARNING: [A-Za-z]+Sanitizer: [a-z -]+" | sort | uniq; }
for kind in address leak thread; do
	for form in "" "-no-pie"; do
		gcc -g $form -fsanitize=$kind -o p p.c && ./p 2>&1; echo "$kind $form: $?"
		whats="beyond freed race leak"
		[ $kind = leak ] && whats=leak
		[ $kind = thread ] && whats="beyond freed race"
		for what in $whats; do
			./p $what > out 2>&1; code=$?
			said < out; grep -o "SUMMARY: .*leaked.*" out; echo "$what: $code"
		done
	done
done
