/* What gdb debugs in the tests of `janua run --gdb`: a call, a thread, a signal, a child and, with an argument, another program. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int watched;
double half = 0.5;

int add(int a, int b)
{
    return a + b;
}

void child_work(void)
{
    printf("child adds %d\n", add(3, 4));
    fflush(stdout);
}

static void *in_thread(void *number)
{
    watched = add(watched, *(int *)number);
    return NULL;
}

static void handler(int number)
{
    printf("signal %d\n", number);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int five = 5;
    pthread_t thread;
    signal(SIGUSR1, handler);
    printf("first %d, parent %d\n", add(1, 2), getppid());
    fflush(stdout);
    if (argc > 1 && argv[1][0] == 's')
        for (;;)
            pause();
    pthread_create(&thread, NULL, in_thread, &five);
    pthread_join(thread, NULL);
    raise(SIGUSR1);
    pid_t child = fork();
    if (child == 0) {
        child_work();
        _exit(7);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d exited %d\n", child, WEXITSTATUS(status));
    fflush(stdout);
    if (argc > 1)
        execl("/bin/echo", "echo", "another program", NULL);
    return 42;
}
