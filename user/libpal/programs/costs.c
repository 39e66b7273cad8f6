/* What events cost: for each row that is asked for some samples, in ticks of the time stamp counter, whose rate it prints first. `janua bench events`
 * reads them; bench/probe/src/events.rs does the same by a bare futex.
 *
 *   costs [ROW COUNT]...
 *
 * delay-MICROSECONDS: how long it takes to make a thread that waits so long, and to wait for the event that it sets then. wake-EVENTS: how long it takes
 * from before an event is set until a thread runs that waits for so many. */
#include <pal.h>

enum { EVENTS = 64, SAMPLES = 4096 };
/* How long the one that sets an event gives the other to go to sleep, microseconds; and how long the rate is measured. */
enum { SETTLE = 1000, RATE = 100000 };

static PAL_HANDLE events[EVENTS], go;
static uint64_t samples[SAMPLES];
static PAL_NUM rounds, several;
static volatile uint64_t stamp;

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

static uint64_t rate(void)
{
    PAL_NUM before = DkSystemTimeQuery(), start, now;
    while ((start = DkSystemTimeQuery()) == before)
        ;
    uint64_t begun = ticks();
    do
        now = DkSystemTimeQuery();
    while (now - start < RATE);
    return (ticks() - begun) * 1000000 / (now - start);
}

static void set_later(void *delay)
{
    DkThreadDelayExecution((PAL_NUM)delay);
    DkEventSet(events[0]);
}

static bool delays(PAL_NUM delay, PAL_NUM count)
{
    for (PAL_NUM at = 0; at < count; at++) {
        uint64_t begun = ticks();
        PAL_HANDLE thread = DkThreadCreate((PAL_PTR)set_later, (PAL_PTR)delay, 0);
        if (!thread || DkObjectsWaitAny(1, events, NO_TIMEOUT) != events[0])
            return false;
        samples[at] = ticks() - begun;
        if (DkObjectsWaitAny(1, &thread, NO_TIMEOUT) != thread)
            return false;
        DkObjectClose(thread);
    }
    return true;
}

static void set_each(void *none)
{
    (void)none;
    for (PAL_NUM at = 0; at < rounds; at++) {
        DkObjectsWaitAny(1, &go, NO_TIMEOUT);
        DkThreadDelayExecution(SETTLE);
        stamp = ticks();
        DkEventSet(events[at % several]);
    }
}

static bool wakes(PAL_NUM waited_for, PAL_NUM count)
{
    if (waited_for == 0 || waited_for > EVENTS)
        return false;
    rounds = count, several = waited_for;
    PAL_HANDLE thread = DkThreadCreate((PAL_PTR)set_each, NULL, 0);
    if (!thread)
        return false;
    for (PAL_NUM at = 0; at < count; at++) {
        DkEventSet(go);
        PAL_HANDLE ready = DkObjectsWaitAny(several, events, NO_TIMEOUT);
        uint64_t now = ticks();
        if (ready != events[at % several])
            return false;
        samples[at] = now - stamp;
    }
    bool ended = DkObjectsWaitAny(1, &thread, NO_TIMEOUT) == thread;
    DkObjectClose(thread);
    return ended;
}

/* Whether a word begins so; what is behind that as a number. */
static bool named(const char *word, const char *begin, PAL_NUM *number)
{
    while (*begin)
        if (*word++ != *begin++)
            return false;
    *number = 0;
    for (; *word >= '0' && *word <= '9'; word++)
        *number = *number * 10 + (PAL_NUM)(*word - '0');
    return !*word;
}

static bool row(const char *name, const char *often)
{
    PAL_NUM count, number;
    if (!named(often, "", &count) || count == 0 || count > SAMPLES)
        return false;
    bool done = named(name, "delay-", &number) ? delays(number, count) : named(name, "wake-", &number) && wakes(number, count);
    if (!done)
        return false;
    pal_printf("row %s", name);
    for (PAL_NUM at = 0; at < count; at++)
        pal_printf(" %lu", samples[at]);
    pal_printf("\n");
    return true;
}

int main(int argc, char **argv, char **envp)
{
    (void)envp;
    go = DkSynchronizationEventCreate(false);
    for (int at = 0; at < EVENTS; at++)
        if (!(events[at] = DkSynchronizationEventCreate(false)))
            return 1;
    pal_printf("rate %lu\n", rate());
    for (int at = 1; at + 1 < argc; at += 2)
        if (!row(argv[at], argv[at + 1])) {
            pal_printf("cannot measure %s %s (error %lu)\n", argv[at], argv[at + 1], pal_errno());
            return 1;
        }
    return argc % 2 ? 0 : 1;
}
