/* Thread areas: set_thread_area, the segment registers, what threads and forks inherit. */
/* only: i386 i386-static */
#include "t.h"
#include <asm/ldt.h>

static unsigned load_gs(unsigned selector, unsigned offset)
{
	unsigned old, value;
	asm volatile("mov %%gs, %0\n mov %2, %%gs\n mov %%gs:(%3), %1\n mov %0, %%gs" : "=&r"(old), "=&r"(value) : "r"(selector), "r"(offset));
	return value;
}

static unsigned load_fs(unsigned offset)
{
	unsigned value;
	asm volatile("mov %%fs:(%1), %0" : "=r"(value) : "r"(offset));
	return value;
}

static unsigned words[2] = { 0x1111, 0x2222 };
static unsigned others[2] = { 0x3333, 0x4444 };
static __thread int own = 7;

static void *thread(void *arg)
{
	own += (int)(intptr_t)arg;
	return (void *)(intptr_t)own;
}

static void handler(int s)
{
	unsigned fs;
	asm volatile("mov %%fs, %0" : "=r"(fs));
	N(fs != 0);
}

int main(void)
{
	unsigned gs;
	asm volatile("mov %%gs, %0" : "=r"(gs));
	T((gs & 7) == 3 && gs >> 3 == 12);
	struct user_desc d = { .entry_number = -1, .base_addr = (unsigned)words, .limit = 0xfffff, .seg_32bit = 1, .limit_in_pages = 1, .useable = 1 };
	R(syscall(SYS_set_thread_area, &d));
	N(d.entry_number);
	unsigned selector = d.entry_number << 3 | 3;
	N(load_gs(selector, 0)), N(load_gs(selector, 4));
	asm volatile("mov %0, %%fs" :: "r"(selector));
	N(load_fs(4));

	struct user_desc g = { .entry_number = d.entry_number };
	R(syscall(SYS_get_thread_area, &g));
	T(g.base_addr == (unsigned)words && g.limit == 0xfffff && g.seg_32bit && g.limit_in_pages && g.useable && !g.seg_not_present);

	/* A change is seen by a register that is loaded already. */
	d.base_addr = (unsigned)others;
	R(syscall(SYS_set_thread_area, &d));
	N(load_fs(0));

	/* Over a signal, in a child, and in its child's own change. */
	signal(SIGUSR1, handler);
	R(raise(SIGUSR1));
	N(load_fs(4));
	pid_t child = fork();
	if (!child) {
		N(load_fs(4));
		d.base_addr = (unsigned)words;
		R(syscall(SYS_set_thread_area, &d));
		N(load_fs(4));
		_exit(0);
	}
	waitpid(child, 0, 0);
	N(load_fs(4));

	/* What is refused. */
	struct user_desc bad = d;
	bad.entry_number = 5;
	R(syscall(SYS_set_thread_area, &bad));
	bad = d, bad.contents = 2;
	R(syscall(SYS_set_thread_area, &bad));
	bad = d, bad.seg_32bit = 0;
	R(syscall(SYS_set_thread_area, &bad));
	bad = d, bad.seg_not_present = 1, bad.read_exec_only = 0;
	R(syscall(SYS_set_thread_area, &bad));
	R(syscall(SYS_set_thread_area, 8));
	R(syscall(SYS_get_thread_area, &(struct user_desc){ .entry_number = 3 }));

	/* Given back; an empty descriptor. */
	asm volatile("mov %0, %%fs" :: "r"(0));
	struct user_desc empty = { .entry_number = d.entry_number, .read_exec_only = 1, .seg_not_present = 1 };
	R(syscall(SYS_set_thread_area, &empty));
	g.entry_number = d.entry_number;
	R(syscall(SYS_get_thread_area, &g));
	T(g.base_addr == 0 && g.limit == 0 && g.seg_not_present);
	struct user_desc second = { .entry_number = -1, .base_addr = (unsigned)words, .limit = 7, .seg_32bit = 1 };
	R(syscall(SYS_set_thread_area, &second));
	T(second.entry_number == d.entry_number);

	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		must(-pthread_create(&t[i], 0, thread, (void *)(intptr_t)i));
	for (int i = 0; i < 3; i++) {
		void *r;
		pthread_join(t[i], &r);
		N((int)(intptr_t)r);
	}
	N(own);
	return t_failed;
}
