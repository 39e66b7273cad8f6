/* What calls under way take of the kernel's own memory: a program that takes too much of it is refused or ended, and no other. */
#include <poll.h>
#include <sys/eventfd.h>

enum { POLLED = 1000 };
static struct pollfd polled[POLLED];

static void *poll_all(void *nothing)
{
    poll(polled, POLLED, 2000);
    return nothing;
}

/* Runs `many` as a child; whatever becomes of it, this process lives, and so does the sandbox. */
static int outlive(void (*many)(void))
{
    int status;
    pid_t child = fork();
    MUST(child >= 0);
    if (!child) {
        many();
        _exit(0);
    }
    MUST(waitpid(child, &status, 0) == child);
    child = fork();
    MUST(child >= 0);
    if (!child)
        _exit(7);
    MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    puts("still here");
    return 0;
}

static void poll_in_threads(void)
{
    static pthread_t threads[2500];
    pthread_attr_t attributes;
    int event = eventfd(0, 0), made = 0;
    for (int at = 0; at < POLLED; at++)
        polled[at] = (struct pollfd){ .fd = event, .events = POLLIN };
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32 << 10);
    while (made < 2500 && !pthread_create(&threads[made], &attributes, poll_all, 0))
        made++;
    while (made > 0)
        pthread_join(threads[--made], 0);
}

/* One file waited for a thousand times by each of many threads. */
static int many_polls(void)
{
    return outlive(poll_in_threads);
}

static void long_descriptor_tables(void)
{
    struct rlimit most = { 1 << 20, 1 << 20 };
    int go[2];
    char byte;
    MUST(!setrlimit(RLIMIT_NOFILE, &most) && !pipe(go));
    for (int child = 0; child < 12; child++)
        if (!fork()) {
            close(go[1]);
            MUST(read(go[0], &byte, 1) == 0);
            dup2(0, (1 << 20) - 1);
            sleep(1);
            _exit(0);
        }
    close(go[0]);
    close(go[1]);
    while (wait(0) > 0)
        ;
}

/* Processes that each use the highest number a descriptor can have. */
static int long_tables(void)
{
    return outlive(long_descriptor_tables);
}
