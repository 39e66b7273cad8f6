/* What calls and messages cost: for each row some samples, in ticks of the time stamp counter for one operation. `janua bench pingpong` reads them. */
#include "library.h"

enum { SAMPLES = 20, CALLS = 100, ROUNDS = 50, MAPS = 4, PONG = 1, PAGER = 2, MAPPER = 3, CHILD = 5, CLIENT = 6 };
enum { PAGES = 64, PAGE = 4096, LONG = 4096, WINDOW = 0x40000000 };
/* What the client asks the mapper for: flexpages of these sizes, to have all of it taken back, or the end. */
enum { TAKE_BACK = 1, END = 2, ONE = 12, ALL = 18 };

STACK(pong_stack, 4096);
STACK(pager_stack, 4096);
STACK(child_stack, 4096);
STACK(mapper_stack, 4096);
STACK(client_stack, 4096);
static char given[PAGES][PAGE] __attribute__((aligned(PAGES * PAGE)));
static char sent[LONG] __attribute__((aligned(PAGE))), taken[2][LONG] __attribute__((aligned(PAGE)));

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* 32-bit code without a library does not divide 64 bits; no sample is that long. */
static uint32_t each(uint64_t start, uint32_t count)
{
    return (uint32_t)(ticks() - start) / count;
}

static uint32_t samples[SAMPLES];

static void row(const char *name)
{
    char digits[16];
    print("row %s", name);
    for (unsigned at = 0; at < SAMPLES; at++) {
        char *digit = digits + sizeof digits;
        uint32_t number = samples[at];
        *--digit = 0;
        do
            *--digit = (char)('0' + number % 10);
        while (number /= 10);
        *--digit = ' ';
        print("%s", digit);
    }
    print("\n");
}

static void calls(void)
{
    for (unsigned at = 0; at < SAMPLES; at++) {
        uint64_t start = ticks();
        for (unsigned call = 0; call < CALLS; call++)
            l4_myself();
        samples[at] = each(start, CALLS);
    }
    row("id_nearest");
}

/* Replies to each message, a long one too. In another task its memory is that task's. */
static struct {
    uint32_t window, size, send, word[2];
    l4_string string;
} rooms[2] __attribute__((aligned(PAGE))), letter __attribute__((aligned(PAGE)));

static void echo(unsigned place)
{
    l4_message m = { L4_NIL, { 0, 0 } };
    uint32_t dope = 0, send = L4_NONE;
    for (;;) {
        rooms[place].size = L4_DOPE(2, 1);
        rooms[place].string = (l4_string){ 0, 0, LONG, (uint32_t)taken[place] };
        dope = l4_ipc(&m, send, (uint32_t)&rooms[place] | L4_OPEN, L4_NEVER);
        send = L4_ERROR(dope) ? L4_NONE : L4_SHORT;
    }
}

static void near(void) { echo(0); }
static void far(void) { echo(1); }

static int messages(const char *name, l4_id partner, uint32_t send)
{
    for (unsigned at = 0; at <= SAMPLES; at++) {
        uint64_t start = ticks();
        for (unsigned round = 0; round < ROUNDS; round++) {
            l4_message m = { partner, { round, at } };
            uint32_t dope = l4_ipc(&m, send, L4_SHORT, L4_NEVER);
            if (L4_ERROR(dope) || m.word[0] != round) {
                print("%s: dope %x\n", name, dope);
                return 1;
            }
        }
        /* The first brings the pages. */
        if (at)
            samples[at - 1] = each(start, 2 * ROUNDS);
    }
    row(name);
    return 0;
}

static void map(void)
{
    l4_message m;
    uint32_t dope = l4_wait(&m);
    while (!L4_ERROR(dope)) {
        uint32_t send = L4_SHORT;
        if (m.word[0] == TAKE_BACK) {
            l4_fpage_unmap(l4_fpage((uint32_t)given, ALL, 0), L4_FLUSH);
        } else if (m.word[0] == END) {
            m.partner = L4_ROOT;
        } else {
            m.word[1] = l4_fpage((uint32_t)given, m.word[0], L4_WRITE);
            m.word[0] = WINDOW;
            send = L4_MAP;
        }
        dope = l4_reply_and_wait(&m, send);
    }
}

/* Asks for pages, and touches them. */
static void client(void)
{
    l4_id mapper = l4_sibling(L4_ROOT, MAPPER);
    static const struct {
        const char *name;
        uint32_t size, touched;
    } rows[] = { { "map-1", ONE, 0 }, { "map-64", ALL, 0 }, { "map-touch-1", ONE, 1 }, { "map-touch-64", ALL, PAGES } };
    l4_message m;
    for (unsigned at = 0; at < sizeof rows / sizeof *rows; at++) {
        for (unsigned sample = 0; sample < SAMPLES; sample++) {
            uint32_t least = 0xffffffffu;
            for (unsigned turn = 0; turn < MAPS; turn++) {
                uint64_t start = ticks();
                m = (l4_message){ mapper, { rows[at].size, 0 } };
                l4_ipc(&m, L4_SHORT, l4_window(l4_fpage(0, L4_WHOLE_SPACE, 0)), L4_NEVER);
                for (uint32_t page = 0; page < rows[at].touched; page++)
                    ((volatile char *)WINDOW)[page * PAGE] = 1;
                uint32_t took = each(start, 1);
                if (took < least)
                    least = took;
                m = (l4_message){ mapper, { TAKE_BACK, 0 } };
                l4_call(&m);
            }
            samples[sample] = least;
        }
        row(rows[at].name);
    }
    m = (l4_message){ mapper, { END, 0 } };
    l4_call(&m);
}

int main(const l4_loader *loader, const l4_info *info)
{
    (void)loader, (void)info;
    l4_id me = l4_myself(), pager = l4_sibling(me, PAGER);
    calls();
    memset(given, 1, sizeof given);
    memset(sent, 1, sizeof sent);
    letter.send = letter.size = L4_DOPE(2, 1);
    letter.string = (l4_string){ LONG, (uint32_t)sent, 0, 0 };
    l4_thread(PAGER, give_pages, STACK_END(pager_stack), L4_SIGMA0);
    l4_thread(PONG, near, STACK_END(pong_stack), L4_SIGMA0);
    l4_id other = l4_task_new(l4_task(CHILD), 255, far, STACK_END(child_stack), pager);
    if (messages("ipc-intra", l4_sibling(me, PONG), L4_SHORT) || messages("ipc-inter", other, L4_SHORT) ||
        messages("long-intra", l4_sibling(me, PONG), (uint32_t)&letter) || messages("long-inter", other, (uint32_t)&letter))
        return 1;
    l4_thread(MAPPER, map, STACK_END(mapper_stack), L4_SIGMA0);
    l4_task_new(l4_task(CLIENT), 255, client, STACK_END(client_stack), pager);
    l4_message m;
    uint32_t dope = l4_wait(&m);
    return L4_ERROR(dope) || m.word[0] != END;
}
