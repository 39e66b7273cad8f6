// Several cores: threads that race, processes that fork at once, memory that goes while another core uses it, waking across
// cores, loops that share cores, and what programs learn of the cores. Prints the same with any number of them.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
// futex(2); the C library may come without the kernel's headers.
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129

static int cores;

static void say(const char *what, int good)
{
	printf("%s: %s\n", what, good ? "yes" : "no");
	fflush(stdout);
}

static void nap(long milliseconds)
{
	struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
	while (nanosleep(&time, &time) != 0)
		;
}

static int move_to(int core)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	return sched_setaffinity(0, sizeof set, &set);
}

static void move_anywhere(void)
{
	cpu_set_t set;
	memset(&set, 0xff, sizeof set);
	sched_setaffinity(0, sizeof set, &set);
}

static int told(void)
{
	char line[8192];
	int listed = 0;
	cpu_set_t set;
	FILE *file = fopen("/proc/cpuinfo", "r");
	while (file && fgets(line, sizeof line, file))
		listed += strncmp(line, "processor\t", 10) == 0;
	fclose(file);
	cores = sysconf(_SC_NPROCESSORS_ONLN);
	sched_getaffinity(0, sizeof set, &set);
	return cores == atoi(getenv("CORES")) && listed == cores && CPU_COUNT(&set) == cores;
}

static int runs_where_told(void)
{
	int good = move_to(cores) == -1;
	for (int round = 0; round < 20; round++)
		for (int core = 0; core < cores; core++) {
			good &= move_to(core) == 0 && sched_getcpu() == core;
			for (volatile int i = 0; i < 1000; i++)
				;
			good &= sched_getcpu() == core;
		}
	move_anywhere();
	return good;
}

static int clock_goes_on(void)
{
	struct timespec last = {0, 0}, now;
	int good = 1;
	for (int round = 0; round < 200; round++) {
		move_to(round % cores);
		clock_gettime(CLOCK_MONOTONIC, &now);
		good &= now.tv_sec > last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec >= last.tv_nsec);
		last = now;
	}
	move_anywhere();
	return good;
}

static void *moves_with_registers(void *arg)
{
	long wrong = 0;
	for (int round = 0; round < 200; round++) {
		double put = (long)arg * 1000 + round, got;
		long number = SYS_sched_setaffinity;
		unsigned long mask = 1ul << (round + (long)arg) % cores;
		asm volatile("movapd %2, %%xmm9\n syscall\n movapd %%xmm9, %1"
			     : "+a"(number), "=x"(got) : "x"(put), "D"(0), "S"(8), "d"(&mask) : "rcx", "r11", "memory", "xmm9");
		wrong += got != put || number != 0;
	}
	return (void *)wrong;
}

static int registers_move(void)
{
	pthread_t threads[4];
	long wrong = 0;
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, moves_with_registers, (void *)i);
	for (int i = 0; i < 4; i++) {
		void *result;
		pthread_join(threads[i], &result);
		wrong += (long)result;
	}
	return wrong == 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int counted;
static long summed;

static void *races(void *arg)
{
	for (int round = 0; round < 300; round++) {
		char *page = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int i = 0; i < 4; i++)
			page[i * PAGE] = (char)((long)arg + i);
		for (int i = 0; i < 4; i++)
			if (page[i * PAGE] != (char)((long)arg + i))
				abort();
		munmap(page, 4 * PAGE);
		atomic_fetch_add(&counted, 1);
		pthread_mutex_lock(&lock);
		summed++;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static int races_well(void)
{
	pthread_t threads[8];
	for (long i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, races, (void *)i);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return counted == 2400 && summed == 2400;
}

static void *forks(void *arg)
{
	long wrong = 0;
	for (int round = 0; round < 15; round++) {
		pid_t child = fork();
		if (child == 0)
			_exit((int)((long)arg * 16 + round));
		int status = 0;
		wrong += child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
			 WEXITSTATUS(status) != (long)arg * 16 + round;
	}
	return (void *)wrong;
}

static int forks_at_once(void)
{
	pthread_t threads[4];
	long wrong = 0;
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, forks, (void *)i);
	for (int i = 0; i < 4; i++) {
		void *result;
		pthread_join(threads[i], &result);
		wrong += (long)result;
	}
	// And many children at a time.
	for (int i = 0; i < 40; i++)
		if (fork() == 0) {
			nap(i % 7);
			_exit(0);
		}
	int ended = 0, status;
	while (wait(&status) > 0)
		ended += status == 0;
	return wrong == 0 && ended == 40;
}

static volatile long *victim;
static atomic_int touching, hit;
static __thread sigjmp_buf back;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if (info->si_addr != (void *)victim)
		_exit(99);
	siglongjmp(back, 1);
}

static void *touches(void *arg)
{
	(void)arg;
	if (sigsetjmp(back, 1) == 0) {
		for (;;) {
			(*victim)++;
			touching = 1;
		}
	}
	hit++;
	return NULL;
}

// What `take` does to a page that another thread writes must have happened when it returns.
static int taken_under_use(int (*take)(void *page))
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &action, NULL);
	int good = 1;
	hit = 0;
	for (int round = 0; round < 30; round++) {
		pthread_t thread;
		victim = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		touching = 0;
		pthread_create(&thread, NULL, touches, NULL);
		while (!touching)
			sched_yield();
		good &= take((void *)victim);
		pthread_join(thread, NULL);
		good &= hit == round + 1;
		munmap((void *)victim, PAGE);
	}
	signal(SIGSEGV, SIG_DFL);
	return good;
}

static int unmap(void *page)
{
	return munmap(page, PAGE) == 0;
}

static int make_read_only(void *page)
{
	if (mprotect(page, PAGE, PROT_READ) != 0)
		return 0;
	long before = *victim;
	for (volatile int i = 0; i < 2000; i++)
		;
	return *victim == before;
}

static atomic_int stop;

static void *counts(void *arg)
{
	volatile long *counter = arg;
	while (!stop)
		(*counter)++;
	return NULL;
}

static int copies_stand_still(void)
{
	pthread_t thread;
	volatile long *counter = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int good = 1;
	stop = 0;
	pthread_create(&thread, NULL, counts, (void *)counter);
	while (*counter == 0)
		sched_yield();
	for (int round = 0; round < 20; round++) {
		pid_t child = fork();
		if (child == 0) {
			long before = *counter;
			for (volatile int i = 0; i < 20000; i++)
				;
			_exit(*counter != before);
		}
		int status;
		waitpid(child, &status, 0);
		good &= status == 0;
	}
	stop = 1;
	pthread_join(thread, NULL);
	return good;
}

static atomic_int ball;

static void *plays(void *arg)
{
	int mine = (int)(long)arg;
	for (int turn = 0; turn < 1000; turn++) {
		while (ball != mine)
			syscall(SYS_futex, &ball, FUTEX_WAIT_PRIVATE, !mine, NULL, NULL, 0);
		ball = !mine;
		syscall(SYS_futex, &ball, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static int ping_pong(void)
{
	pthread_t threads[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, plays, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return ball == 0;
}

static atomic_int seen_on, mover;

static void *tells_where(void *arg)
{
	(void)arg;
	mover = syscall(SYS_gettid);
	while (!stop)
		seen_on = sched_getcpu();
	return NULL;
}

// A thread is moved by another one, while it runs and while all cores are busy.
static int moved_by_others(void)
{
	pthread_t thread, busy[16];
	long counters[16] = {0};
	stop = 0;
	for (int i = 0; i < cores; i++)
		pthread_create(&busy[i], NULL, counts, &counters[i]);
	pthread_create(&thread, NULL, tells_where, NULL);
	while (mover == 0)
		sched_yield();
	for (int round = 0; round < 2 * cores; round++) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(round % cores, &set);
		if (sched_setaffinity(mover, sizeof set, &set) != 0)
			return 0;
		while (seen_on != round % cores)
			nap(1);
	}
	stop = 1;
	pthread_join(thread, NULL);
	for (int i = 0; i < cores; i++)
		pthread_join(busy[i], NULL);
	return 1;
}

static atomic_long turns[16];

static void *loops(void *arg)
{
	while (!stop)
		turns[(long)arg]++;
	return NULL;
}

static int loops_share(void)
{
	int count = 2 * cores + 1, good = 1;
	pthread_t threads[16];
	stop = 0;
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, loops, (void *)i);
	// Every loop goes on, although none of them lets others run.
	for (int i = 0; i < count; i++)
		for (long seen = turns[i]; turns[i] <= seen;)
			nap(1);
	stop = 1;
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		good &= turns[i] > 0;
	}
	return good;
}

static int loop_is_killed(void)
{
	int good = 1;
	for (int round = 0; round < 10; round++) {
		pid_t child = fork();
		if (child == 0)
			for (;;)
				;
		nap(round);
		kill(child, SIGKILL);
		int status;
		waitpid(child, &status, 0);
		good &= WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	return good;
}

int main(void)
{
	say("cores as told", told());
	say("runs where it is asked to", runs_where_told());
	say("the clock goes on", clock_goes_on());
	say("registers move along", registers_move());
	say("threads race well", races_well());
	say("forks at once", forks_at_once());
	say("unmapped under use", taken_under_use(unmap));
	say("protected under use", taken_under_use(make_read_only));
	say("copies stand still", copies_stand_still());
	say("ping-pong", ping_pong());
	say("moved by others", moved_by_others());
	say("loops share", loops_share());
	say("a loop is killed", loop_is_killed());
	return 0;
}
