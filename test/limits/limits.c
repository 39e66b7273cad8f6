/* What uses a sandbox up, and what must not: run by the suite `limits` (xtask/src/suite/limits.rs) under limits that each part knows. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define MUST(what) ((what) ? (void)0 : (printf("%d: %s: %s\n", __LINE__, #what, strerror(errno)), exit(1)))

static char *map(size_t size, int flags)
{
    return mmap(0, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
}

#include "tables.h"
#include "calls.h"

/* Ends with the name of the error of the first allocation that fails. */
static int end_with(const char *what)
{
    printf("%s: %s\n", what, strerrorname_np(errno));
    return 3;
}

/* Memory, mapped and used bit by bit. */
static int private_memory(void)
{
    for (size_t all = 0; all < 1024 * MIB; all += 4 * MIB) {
        char *at = map(4 * MIB, MAP_PRIVATE);
        if (at == MAP_FAILED)
            return end_with("mmap");
        memset(at, 1, 4 * MIB);
    }
    return 0;
}

static int one_piece(void)
{
    return map(1024 * MIB, MAP_PRIVATE) == MAP_FAILED ? end_with("mmap") : 0;
}

/* Promised and then used. */
static int spare_memory(void)
{
    char *at = map(1024 * MIB, MAP_PRIVATE | MAP_NORESERVE);
    MUST(at != MAP_FAILED);
    memset(at, 1, 1024 * MIB);
    return 0;
}

/* Promised memory used beside timers that are due at every moment: a thread that looks at the limit has its turn. */
static int beside_timers(void)
{
    struct sigevent none = { .sigev_notify = SIGEV_NONE }, blocked = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
    struct itimerspec nano = { { 0, 1 }, { 0, 1 } };
    timer_t first, second;
    sigset_t set;
    sigfillset(&set);
    MUST(!sigprocmask(SIG_BLOCK, &set, 0));
    MUST(!timer_create(CLOCK_MONOTONIC, &none, &first) && !timer_settime(first, 0, &nano, 0));
    MUST(!timer_create(CLOCK_MONOTONIC, &blocked, &second) && !timer_settime(second, 0, &nano, 0));
    return spare_memory();
}

static int shared_memory(void)
{
    for (int count = 0; count < 256; count++) {
        if (map(4 * MIB, MAP_SHARED) == MAP_FAILED)
            return end_with("mmap");
    }
    return 0;
}

static int segments(void)
{
    for (int count = 0; count < 256; count++) {
        if (shmget(IPC_PRIVATE, 4 * MIB, 0600) < 0)
            return end_with("shmget");
    }
    return 0;
}

static char chunk[MIB];

/* Bytes of a file without a name. */
static int anonymous_file(void)
{
    int fd = memfd_create("bytes", 0);
    MUST(fd >= 0);
    for (int count = 0; count < 1024; count++) {
        if (write(fd, chunk, sizeof chunk) < 0)
            return end_with("write");
    }
    return 0;
}

/* A file of holes, used through a mapping. */
static int mapped_holes(void)
{
    int fd = memfd_create("holes", 0);
    MUST(fd >= 0 && !ftruncate(fd, 1ul << 40));
    MUST(mmap(0, 8 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 1ul << 39) != MAP_FAILED);
    return mmap(0, 1024 * MIB, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? end_with("mmap") : 0;
}

/* Files of a directory. */
static int files(const char *dir)
{
    MUST(!chdir(dir));
    int fd = open("bytes", O_RDWR | O_CREAT, 0600);
    MUST(fd >= 0);
    for (int count = 0; count < 1024; count++) {
        if (write(fd, chunk, sizeof chunk) < 0)
            return end_with("write");
    }
    return 0;
}

static int small_files(const char *dir)
{
    MUST(!chdir(dir));
    for (int count = 0; count < 1000000; count++) {
        char name[32];
        snprintf(name, sizeof name, "%d", count);
        int fd = open(name, O_WRONLY | O_CREAT, 0600);
        if (fd < 0)
            return end_with("open");
        if (write(fd, chunk, 64 << 10) < 0)
            return end_with("write");
        close(fd);
    }
    return 0;
}

static void *wait_for_ever(void *)
{
    pause();
    return 0;
}

static int threads(void)
{
    for (int count = 0; count < 200; count++) {
        pthread_t thread;
        if ((errno = pthread_create(&thread, 0, wait_for_ever, 0)))
            return end_with("pthread_create");
    }
    return 0;
}

static int processes(void)
{
    for (int count = 0; count < 200; count++) {
        int pid = fork();
        if (pid < 0)
            return end_with("fork");
        if (pid == 0)
            _exit(!pause());
    }
    return 0;
}

/* Children that have ended, and that nobody has waited for. */
static int ended_children(void)
{
    for (int count = 0; count < 200; count++) {
        int pid = fork();
        if (pid < 0)
            return end_with("fork");
        if (pid == 0)
            _exit(0);
        siginfo_t info;
        MUST(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    }
    return 0;
}

/* What the kernel keeps for programs: bytes in sockets nobody reads. Errors are welcome too, as long as something ends it. */
static int heap(void)
{
    for (int count = 0; count < 100000; count++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0) {
            /* Descriptors are used up: somebody else goes on. */
            if (errno == EMFILE && fork() == 0) {
                for (int fd = 3; fd < 1024; fd++)
                    if (fd % 2)
                        close(fd);
                continue;
            }
            pause();
        }
        while (write(pair[0], chunk, 64 << 10) > 0)
            ;
    }
    return 0;
}

/* Attributes of one file, as many as it takes. */
static int attributes(const char *dir)
{
    char name[32], list[65536];
    MUST(!chdir(dir) && close(open("named", O_RDWR | O_CREAT, 0600)) == 0);
    for (int count = 0; count < 1000000; count++) {
        snprintf(name, sizeof name, "user.%d", count);
        if (setxattr("named", name, "", 0, 0) < 0)
            break;
    }
    MUST(errno == ENOSPC);
    MUST(listxattr("named", list, sizeof list) > 0 && listxattr("named", 0, 0) > 0);
    MUST(!removexattr("named", "user.0") && !setxattr("named", "user.x", "", 0, 0));
    MUST(!unlink("named"));
    puts("enough names");
    return 0;
}

/* What is typed is shown, and nobody looks. */
static int echo(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    MUST(master >= 0 && !grantpt(master) && !unlockpt(master));
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    struct termios settings;
    MUST(slave >= 0 && !tcgetattr(slave, &settings));
    settings.c_lflag |= NOFLSH;
    MUST(!tcsetattr(slave, TCSANOW, &settings));
    memset(chunk, settings.c_cc[VINTR], sizeof chunk);
    for (size_t all = 0; all < 48 * MIB;) {
        ssize_t taken = write(master, chunk, sizeof chunk);
        if (taken < 0)
            break;
        all += taken;
    }
    puts("all typed");
    return 0;
}

/* One record, as long as root may allow it to be. */
static int record(void)
{
    int pair[2], size = 1 << 30;
    MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    if (setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0) {
        MUST(errno == EPERM);
    } else {
        char *at = mmap(0, 600 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        MUST(at != MAP_FAILED);
        MUST(send(pair[0], at, 600 * MIB, 0) < 0 && errno == ENOBUFS);
        MUST(send(pair[0], at, MIB, 0) == MIB);
    }
    puts("not sent");
    return 0;
}

/* Instances of inotify, and their watches, of one user. */
static int watches(void)
{
    int fd[200], count = 0;
    while (count < 200 && (fd[count] = inotify_init1(IN_CLOEXEC)) >= 0)
        count++;
    MUST(count == 128 && errno == EMFILE);
    MUST(!close(fd[--count]) && (fd[count++] = inotify_init1(IN_CLOEXEC)) >= 0);
    int pid = fork(), status;
    MUST(pid >= 0);
    if (pid == 0) {
        MUST(inotify_init1(0) < 0 && errno == EMFILE);
        /* Another user has his own. */
        MUST(getuid() != 0 || (!setresuid(2001, 2001, 2001) && inotify_init1(0) >= 0));
        _exit(0);
    }
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    MUST(inotify_add_watch(fd[0], "/", IN_CREATE) == 1 && !inotify_rm_watch(fd[0], 1));
    puts("128 instances");
    return 0;
}

/* Queues of events that nobody reads: it is the one who watches who does without them, not the one who changes files. */
static int queues(const char *dir)
{
    char name[256], event[sizeof(struct inotify_event) + 256];
    int ready[2], fd[128], status, made = 0, told = 0;
    memset(name, 'n', sizeof name);
    MUST(!chdir(dir) && !mkdir("watched", 0777) && !pipe(ready));
    int pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        MUST(!chdir("watched") && read(ready[0], event, 1) == 1);
        for (int count = 0; count < 12000; count++) {
            sprintf(name + 190, "%d", count);
            MUST(!mkdir(name, 0700));
            MUST(!rmdir(name));
        }
        _exit(0);
    }
    for (int at = 0; at < 120; at++) {
        MUST((fd[at] = inotify_init1(IN_NONBLOCK)) >= 0);
        MUST(inotify_add_watch(fd[at], "watched", IN_CREATE | IN_DELETE) == 1);
    }
    MUST(write(ready[1], "", 1) == 1 && waitpid(pid, &status, 0) == pid);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int at = 0; at < 120; at++) {
        const struct inotify_event *last = 0;
        ssize_t len;
        while ((len = read(fd[at], event, sizeof event)) > 0)
            for (ssize_t from = 0; from < len; from += sizeof *last + last->len, made++)
                last = (void *)(event + from);
        MUST(last && last->mask == IN_Q_OVERFLOW && last->wd == -1);
        told++;
    }
    /* What has been read is no longer counted. */
    MUST(!mkdir("watched/again", 0700) && read(fd[119], event, sizeof event) > 0);
    MUST(((struct inotify_event *)event)->mask == (IN_CREATE | IN_ISDIR));
    MUST(!rmdir("watched/again") && !rmdir("watched"));
    printf("%d are reported, %s\n", told, made > 120 * 100 ? "most events are there" : "few events");
    return 0;
}

/* Names of one file in one directory, until the kernel has no memory for more; everything goes on. */
static int names(const char *dir)
{
    char name[32];
    int count = 0;
    MUST(!chdir(dir) && !mkdir("full", 0700) && !chdir("full") && close(open("0", O_RDWR | O_CREAT, 0600)) == 0);
    do
        snprintf(name, sizeof name, "%d", ++count);
    while (!link("0", name));
    MUST(errno == ENOMEM || errno == ENOSPC);
    MUST(!access("1", F_OK) && access(name, F_OK) < 0 && errno == ENOENT);
    for (int at = 1; at < 10000; at++) {
        snprintf(name, sizeof name, "%d", at);
        MUST(!unlink(name));
    }
    MUST(!link("0", "again") && !unlink("again") && !unlink("0") && !rename("10000", "other"));
    puts(count > 100000 ? "many names" : "few names");
    return 0;
}

/* Small files and bytes in sockets, made and gone again: the memory they had is there for others. */
static int returned(const char *dir)
{
    char name[32];
    int pair[200][2];
    MUST(!chdir(dir));
    for (int round = 0; round < 2; round++) {
        for (int count = 0; count < 24000; count++) {
            snprintf(name, sizeof name, "small%d", count);
            int fd = open(name, O_RDWR | O_CREAT, 0600);
            MUST(fd >= 0 && write(fd, chunk, 4096) == 4096 && !close(fd));
        }
        for (int count = 0; count < 200; count++) {
            MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair[count]));
            MUST(send(pair[count][0], chunk, 150 << 10, 0) == 150 << 10);
        }
        for (int count = 0; count < 24000; count++) {
            snprintf(name, sizeof name, "small%d", count);
            MUST(!unlink(name));
        }
        for (int count = 0; count < 200; count++)
            MUST(!close(pair[count][0]) && !close(pair[count][1]));
        /* The kernel gives it back soon, not at once. */
        sleep(2);
        char *at = map(160 * MIB, MAP_PRIVATE);
        MUST(at != MAP_FAILED);
        memset(at, 1, 160 * MIB);
        MUST(!munmap(at, 160 * MIB));
    }
    puts("all given back");
    return 0;
}

/* A core file of far more memory than is used; and of memory that would have to be looked at, until a SIGKILL. */
static int core(const char *dir)
{
    MUST(!chdir(dir));
    for (int touched = 0; touched < 2; touched++) {
        int pid = fork(), status;
        MUST(pid >= 0);
        if (pid == 0) {
            struct rlimit most = { RLIM_INFINITY, RLIM_INFINITY };
            MUST(!setrlimit(RLIMIT_CORE, &most));
            size_t size = 256 * 1024 * MIB;
            char *at = map(size, MAP_PRIVATE | MAP_NORESERVE);
            MUST(at != MAP_FAILED);
            if (touched)
                at[size / 2] = 1;
            abort();
        }
        if (touched) {
            while (access("core", F_OK))
                usleep(1000);
            MUST(!kill(pid, SIGKILL));
        }
        MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        MUST(!!WCOREDUMP(status) != touched && !unlink("core"));
    }
    puts("over soon");
    return 0;
}

/* Shares 40 of 64 MiB with children that use none of their own. */
static int shared_by_fork(void)
{
    char *at = map(40 * MIB, MAP_PRIVATE);
    MUST(at != MAP_FAILED);
    memset(at, 1, 40 * MIB);
    int ready[2], go[2];
    MUST(!pipe(ready) && !pipe(go));
    for (int count = 0; count < 4; count++) {
        int pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            char byte = at[0];
            close(go[1]);
            MUST(write(ready[1], &byte, 1) == 1);
            /* A little of its own. */
            char *own = map(MIB, MAP_PRIVATE);
            MUST(own != MAP_FAILED);
            memset(own, 1, MIB);
            _exit(read(go[0], &byte, 1) != 0);
        }
    }
    char bytes[4];
    for (int count = 0; count < 4; count++)
        MUST(read(ready[0], bytes, 1) == 1);
    close(go[0]);
    close(go[1]);
    int status, ended = 0;
    while (wait(&status) > 0)
        ended += status == 0;
    printf("%d children\n", ended);
    return 0;
}

static void *end_at_once(void *nothing)
{
    return nothing;
}

static void cycle(void)
{
    /* Mapped, split, moved, grown, cut, given away in parts, replaced. */
    char *at = map(4 * MIB, MAP_PRIVATE);
    MUST(at != MAP_FAILED);
    MUST(!mprotect(at + MIB, MIB, PROT_READ));
    MUST(!mprotect(at + MIB, MIB, PROT_READ | PROT_WRITE));
    memset(at, 1, 4 * MIB);
    at = mremap(at, 4 * MIB, 8 * MIB, MREMAP_MAYMOVE);
    MUST(at != MAP_FAILED);
    MUST(mremap(at, 8 * MIB, 2 * MIB, 0) == at);
    MUST(mmap(at, MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    MUST(!mprotect(at, MIB, PROT_READ | PROT_WRITE));
    char *there = map(2 * MIB, MAP_PRIVATE);
    MUST(mremap(at, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there);
    MUST(!munmap(there + MIB / 2, MIB));
    MUST(!munmap(there, 2 * MIB));
    void *old = sbrk(MIB);
    MUST(old != (void *)-1 && sbrk(-(long)MIB) != (void *)-1);
    /* Shared with a child that outlives the parent's mapping. */
    char *shared = map(4 * MIB, MAP_SHARED);
    MUST(shared != MAP_FAILED);
    int pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        memset(shared, 1, 4 * MIB);
        MUST(!munmap(shared + MIB, MIB));
        MUST(map(MIB, MAP_PRIVATE) != MAP_FAILED);
        execl("/proc/self/exe", "limits", "nothing", (char *)0);
        _exit(1);
    }
    MUST(!munmap(shared, 4 * MIB));
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    /* Files: grown, with holes, mapped, cut, punched, deleted while open. */
    int fd = open("cycle", O_RDWR | O_CREAT, 0600);
    MUST(fd >= 0);
    MUST(pwrite(fd, chunk, 4096, 0) == 4096);
    MUST(pwrite(fd, chunk, sizeof chunk, 3 * MIB) == (long)MIB);
    MUST(pwrite(fd, chunk, sizeof chunk, 3 * MIB) == (long)MIB);
    MUST(!ftruncate(fd, 100 * MIB) && !ftruncate(fd, 3 * MIB + MIB / 2));
    at = mmap(0, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(at != MAP_FAILED);
    memset(at, 1, 2 * MIB);
    MUST(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * MIB));
    MUST(!posix_fallocate(fd, 0, 2 * MIB));
    MUST(!munmap(at, 2 * MIB) && !unlink("cycle") && !close(fd));
    fd = memfd_create("cycle", 0);
    MUST(fd >= 0 && write(fd, chunk, sizeof chunk) == (long)MIB);
    MUST(!ftruncate(fd, 50 * MIB) && !ftruncate(fd, 1000));
    at = mmap(0, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(at != MAP_FAILED && !ftruncate(fd, 4 * MIB) && !munmap(at, 4 * MIB) && !close(fd));
    int segment = shmget(IPC_PRIVATE, 4 * MIB, 0600);
    MUST(segment >= 0);
    at = shmat(segment, 0, 0);
    MUST(at != (void *)-1 && !shmctl(segment, IPC_RMID, 0) && !shmdt(at));
    pthread_t thread;
    MUST(!pthread_create(&thread, 0, end_at_once, 0));
    MUST(!pthread_join(thread, 0));
}

/* Whatever is taken is given back: 64 MiB are enough for any number of rounds. */
static int cycles(const char *dir)
{
    MUST(!chdir(dir));
    for (int round = 0; round < 40; round++)
        cycle();
    puts("all rounds");
    return 0;
}

/* Memory that costs a descriptor of the host: a file without a name, mapped. */
static int mapped_file(void)
{
    int fd = memfd_create("taken", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, 4096) < 0 || mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* Takes all it gets, reports how much and waits for its end. */
static int hoard(int uid, int *count)
{
    int tell[2];
    MUST(!pipe(tell));
    int pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        MUST(!uid || !setresuid(uid, uid, uid));
        int taken = 0;
        while (mapped_file() >= 0)
            taken++;
        if (errno != ENFILE) {
            printf("%d: %s\n", uid, strerrorname_np(errno));
            taken = -1;
        }
        MUST(write(tell[1], &taken, sizeof taken) == sizeof taken);
        _exit(pause());
    }
    MUST(read(tell[0], count, sizeof *count) == sizeof *count);
    close(tell[0]);
    close(tell[1]);
    MUST(*count > 0);
    return pid;
}

static void end(int pid)
{
    MUST(!kill(pid, SIGKILL) && waitpid(pid, 0, 0) == pid);
}

/* What an ordinary program does, in a process of its own: opens, maps, runs another program. */
static void live(int uid)
{
    int pid = fork(), status;
    MUST(pid >= 0);
    if (pid == 0) {
        MUST(!uid || !setresuid(uid, uid, uid));
        static const char *const names[] = { "/etc/passwd", "/bin/sh", "/", "/usr/bin", "/proc/self/maps", "/dev/null" };
        for (int count = 0; count < 60; count++)
            MUST(open(names[count % 6], O_RDONLY) >= 0);
        for (int count = 0; count < 10; count++)
            MUST(mapped_file() >= 0);
        MUST(system("/bin/true") == 0);
        execl("/proc/self/exe", "limits", "nothing", (char *)0);
        _exit(1);
    }
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

/* The host gives the sandbox 1024 descriptors. */
static int descriptors(void)
{
    int root = getuid() == 0, count, again;
    int first = hoard(root ? 2001 : 0, &count);
    if (root) {
        /* Three users take all they get, and a fourth lives on. */
        int second = hoard(2002, &again), third = hoard(2003, &again);
        live(3000);
        live(0);
        end(second);
        end(third);
    }
    /* Nobody gets all of them, nor much less than half. */
    MUST(count > 300 && count < 600);
    end(first);
    live(root ? 2001 : 0);
    int last = hoard(root ? 2001 : 0, &again);
    MUST(again > count - 50);
    end(last);
    puts("others live");
    return 0;
}

static void pass(int to, int fd)
{
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec iov = { &byte, 1 };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    MUST(sendmsg(to, &message, 0) == 1);
}

/* Whichever process closes it, what was taken is there again: more rounds than there are descriptors. */
static int given_back(const char *dir)
{
    MUST(!chdir(dir));
    for (int round = 0; round < 150; round++) {
        int pair[2], status, ends = round % 2;
        MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
        int pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            for (int count = 0; count < 8; count++) {
                int fd = mapped_file();
                MUST(fd >= 0 && dup(fd) >= 0);
                pass(pair[0], fd);
                if (count % 2)
                    close(fd);
            }
            int file = open("taken", O_RDWR | O_CREAT | O_TRUNC, 0600);
            MUST(file >= 0 && write(file, chunk, sizeof chunk) == (long)MIB && !unlink("taken"));
            /* A child has all of it too, and takes more. */
            pid = fork();
            MUST(pid >= 0);
            if (pid == 0) {
                MUST(mapped_file() >= 0);
                _exit(0);
            }
            MUST(waitpid(pid, &status, 0) == pid && status == 0);
            if (ends)
                raise(SIGKILL);
            execl("/proc/self/exe", "limits", "nothing", (char *)0);
            _exit(1);
        }
        MUST(waitpid(pid, &status, 0) == pid && status == (ends ? SIGKILL : 0));
        /* Of those under way half are taken out and closed here; the others go with the socket. */
        for (int count = 0; count < 4; count++) {
            char byte, control[CMSG_SPACE(sizeof(int))];
            struct iovec iov = { &byte, 1 };
            struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
            int fd;
            MUST(recvmsg(pair[1], &message, 0) == 1 && CMSG_FIRSTHDR(&message));
            memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
            MUST(!close(fd));
        }
        MUST(!close(pair[0]) && !close(pair[1]));
    }
    puts("all rounds");
    return 0;
}

/* Objects that are memory cost a descriptor of the host at most while they are mapped, and segments not even then. */
static int many_objects(void)
{
    enum { SEGMENTS = 4096, FILES = 1000, OWNERS = 4 };
    static int *at[SEGMENTS], segment[SEGMENTS];
    for (int count = 0; count < SEGMENTS; count++) {
        segment[count] = shmget(IPC_PRIVATE, 4096 + count % 3 * 4096, 0600);
        MUST(segment[count] >= 0);
        at[count] = shmat(segment[count], 0, 0);
        MUST(at[count] != (void *)-1);
        *at[count] = count;
        if (count % 2)
            MUST(!shmdt(at[count]));
    }
    int ready[2], go[2];
    char byte = 0, bytes[OWNERS];
    MUST(!pipe(ready) && !pipe(go));
    for (int owner = 0; owner < OWNERS; owner++) {
        int pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            close(go[1]);
            for (int count = 0; count < FILES; count++) {
                int fd = memfd_create("small", 0);
                MUST(fd >= 0 && write(fd, &count, sizeof count) == sizeof count);
            }
            MUST(write(ready[1], &byte, 1) == 1);
            _exit(read(go[0], &byte, 1) != 0);
        }
    }
    for (int owner = 0; owner < OWNERS; owner++)
        MUST(read(ready[0], bytes + owner, 1) == 1);
    MUST(mapped_file() >= 0);
    close(go[0]);
    close(go[1]);
    int status;
    for (int owner = 0; owner < OWNERS; owner++)
        MUST(wait(&status) > 0 && status == 0);
    for (int count = 0; count < SEGMENTS; count++) {
        int *seen = shmat(segment[count], 0, SHM_RDONLY);
        MUST(seen != (void *)-1 && *seen == count && !shmctl(segment[count], IPC_RMID, 0) && !shmdt(seen));
    }
    puts("all there");
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, 0, _IOLBF, 0);
    const char *what = argc > 1 ? argv[1] : "";
    const char *dir = argc > 2 ? argv[2] : ".";
    static const struct {
        const char *name;
        int (*run)(void);
    } parts[] = {
        { "private", private_memory }, { "piece", one_piece }, { "spare", spare_memory }, { "shared", shared_memory },
        { "timers", beside_timers }, { "tables", page_tables },
        { "tables_of_mappings", tables_of_mappings }, { "tables_kept", tables_kept },
        { "segments", segments }, { "memfd", anonymous_file }, { "holes", mapped_holes }, { "threads", threads },
        { "processes", processes }, { "ended", ended_children }, { "heap", heap }, { "fork", shared_by_fork }, { "descriptors", descriptors },
        { "many_objects", many_objects }, { "echo", echo }, { "record", record }, { "watches", watches },
        { "many_polls", many_polls }, { "long_tables", long_tables },
    };
    for (unsigned at = 0; at < sizeof parts / sizeof *parts; at++)
        if (!strcmp(what, parts[at].name))
            return parts[at].run();
    if (!strcmp(what, "files"))
        return files(dir);
    if (!strcmp(what, "small"))
        return small_files(dir);
    if (!strcmp(what, "attributes"))
        return attributes(dir);
    if (!strcmp(what, "core"))
        return core(dir);
    if (!strcmp(what, "queues"))
        return queues(dir);
    if (!strcmp(what, "names"))
        return names(dir);
    if (!strcmp(what, "returned"))
        return returned(dir);
    if (!strcmp(what, "given_back"))
        return given_back(dir);
    if (!strcmp(what, "cycles"))
        return cycles(dir);
    /* For scripts where no tool does that: a line of the shell as an ordinary user. */
    if (!strcmp(what, "as_user")) {
        MUST(!setgid(1000) && !setuid(1000));
        execl("/bin/sh", "sh", "-c", dir, (char *)0);
    }
    return strcmp(what, "nothing") != 0;
}
