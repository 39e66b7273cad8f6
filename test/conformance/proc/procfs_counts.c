/* What directories of /proc report of their number of links and size, /proc/cpuinfo's fields, and the peak of a process' size. */
#include "t.h"
#include <dirent.h>
static struct stat s;
static int links(const char *path)
{
	return stat(path, &s) ? -1 : (int)s.st_nlink;
}
/* Links that a directory has for those in it. */
static int counted(const char *path)
{
	int n = 2;
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_type == DT_DIR && strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return n;
}
static long kib(const char *name)
{
	char b[256];
	long n = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(b, sizeof b, f))
		if (!strncmp(b, name, strlen(name)) && b[strlen(name)] == ':')
			n = atol(b + strlen(name) + 1);
	if (f)
		fclose(f);
	return n;
}
static int field(const char *name, const char *format)
{
	char b[4096], c;
	int yes = 0;
	double number;
	FILE *f = fopen("/proc/cpuinfo", "r");
	while (f && fgets(b, sizeof b, f)) {
		char *colon = strchr(b, ':');
		if (colon && !strncmp(b, name, strlen(name)) && strchr("\t:", b[strlen(name)]))
			yes |= format ? sscanf(colon, format, &number, &c) >= 1 && number > 0 : 1;
	}
	if (f)
		fclose(f);
	return yes;
}
int main(void)
{
	pid_t child[8];
	T(links("/proc/self") == counted("/proc/self"));
	T(links("/proc/thread-self/") == counted("/proc/thread-self/"));
	T(links("/proc/self/net") == counted("/proc/self/net/"));
	N(links("/proc/sys"));
	N(links("/proc/sys/kernel"));
	N(links("/proc/self/ns"));
	N(links("/proc/self/fd"));
	N(links("/proc/self/task"));
	N(links("/proc/self/status"));
	for (int i = 0; i < 8; i++)
		if (!(child[i] = fork()))
			pause(), _exit(0);
	T(links("/proc") >= 2 + 9);
	for (int i = 0; i < 8; i++)
		kill(child[i], SIGKILL), waitpid(child[i], 0, 0);
	must(stat("/proc/self/fd", &s));
	long before = s.st_size;
	int a = dup(1), b = dup(1);
	must(stat("/proc/self/fd", &s));
	N(s.st_size - before);
	close(a), close(b);
	must(stat("/proc/self/fd", &s));
	N(s.st_size - before);
	T(before >= 3);
	must(stat("/proc/self/fdinfo", &s));
	N(s.st_size);
	T(field("cpu MHz", ": %lf%c"));
	T(field("cache size", ": %lf KB%c"));
	T(field("initial apicid", NULL));
	T(field("bugs", NULL));
	T(field("bogomips", ": %lf%c"));
	T(field("address sizes", ": %lf bits physical, %*d bits virtual%c"));
	T(field("power management", NULL));
	/* The peak is the peak. */
	long size = 64 << 20;
	char *p = mmap(0, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(p != MAP_FAILED);
	long with = kib("VmSize");
	T(kib("VmPeak") >= with);
	munmap(p, size);
	T(kib("VmSize") <= with - (size >> 10));
	T(kib("VmPeak") >= with);
	CHILD("a child", T(kib("VmPeak") < with));
	return t_done();
}
