/* Values of i-lets' own: each sees its own, and they are destroyed at its end, however it ends. */
#include "octo.h"

enum { WORKERS = 6 };

static simple_signal begun, done;
static int key, other;
static int destroyed[WORKERS + 1];

static void destroy(void *value)
{
    __atomic_add_fetch((int *)value, 1, __ATOMIC_SEQ_CST);
}

static void work(void *number)
{
    int *own = &destroyed[(octo_word)number];
    if (fls_get(key) || fls_get(other) || fls_set(key, own) != 0 || fls_set(other, &begun) != 0)
        shutdown(2);
    /* Others begin on this core meanwhile. */
    simple_signal_signal(&begun);
    simple_signal pause;
    simple_signal_init(&pause, 1);
    simple_ilet wake;
    simple_ilet_init(&wake, (ilet_func)simple_signal_signal, &pause);
    infect_self_single(&wake);
    simple_signal_wait(&pause);
    if (fls_get(key) != own || fls_get(other) != &begun)
        shutdown(3);
    if ((octo_word)number % 2)
        simple_signal_signal_and_exit(&done);
    simple_ilet tell;
    simple_ilet_init(&tell, (ilet_func)simple_signal_signal, &done);
    infect_self_single(&tell);
}

void main_ilet(claim_t claim)
{
    (void)claim;
    key = fls_alloc(destroy);
    other = fls_alloc(NULL);
    if (key < 0 || other < 0 || key == other || fls_get(key) || fls_set(-1, NULL) != -1 || fls_set(100, NULL) != -1)
        shutdown(1);
    simple_ilet team[WORKERS];
    simple_signal_init(&begun, WORKERS);
    simple_signal_init(&done, WORKERS);
    for (octo_word i = 0; i < WORKERS; i++)
        simple_ilet_init(&team[i], work, (void *)i);
    infect_self(team, WORKERS);
    simple_signal_wait(&begun);
    simple_signal_wait(&done);
    for (int i = 0; i < WORKERS; i++)
        if (destroyed[i] != 1)
            shutdown(4);
    /* Without their key values are gone, and so they stay when another has its place. */
    fls_set(key, &destroyed[WORKERS]);
    if (fls_free(key) != 0 || fls_free(key) != -1 || fls_get(key) || fls_alloc(destroy) != key || fls_get(key))
        shutdown(5);
    int taken = 0;
    while (fls_alloc(NULL) >= 0)
        taken++;
    octo_printf("%d i-lets had their own, %d keys were left\n", WORKERS, taken);
    shutdown(0);
}
