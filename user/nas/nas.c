/* Ranks and messages on the invasive interface.
 *
 * A message goes when its receiver has announced where to: `ready` notifies the sender, `arrived` the receiver. Both are
 * i-lets: an i-let of two words carries the announcement to the sender's tile, and the notice of arrival is the i-let a push
 * DMA starts behind its last byte. Within a tile memory is shared, so both are plain signals and the message a copy. */
#include "nas.h"

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);

/* What the two ranks of a direction know; on the receiver's tile and on the sender's, which may be one. */
struct channel {
    simple_signal ready, arrived;
    void *to;
};

/* The same places on every tile, since all load the same program. */
static struct channel channels[RANKS_MOST][RANKS_MOST]; /* by receiver, sender */
static struct rank ranks[RANKS_MOST];
static struct {
    dispatch_claim_t claims[64];
    uint32_t tiles, cores;
    char class;
} machine;
static simple_signal done;
static volatile uint32_t begun;
static volatile int verified;

static int tile_of(int rank)
{
    return rank / (int)machine.cores;
}

static void notice(void *signal)
{
    simple_signal_signal(signal);
}

static void announce(void *channel, void *to)
{
    ((struct channel *)channel)->to = to;
    simple_signal_signal(&((struct channel *)channel)->ready);
}

void nas_post(struct rank *me, int from, void *buffer)
{
    struct channel *channel = &channels[me->index][from];
    simple_signal_init(&channel->arrived, 1);
    if (tile_of(from) == get_tile_id()) {
        announce(channel, buffer);
        return;
    }
    simple_ilet ilet;
    dual_ilet_init(&ilet, announce, channel, buffer);
    dispatch_claim_infect_single(machine.claims[tile_of(from)], &ilet);
}

void nas_send(struct rank *me, int to, const void *buffer, size_t bytes)
{
    struct channel *channel = &channels[to][me->index];
    simple_signal_wait(&channel->ready);
    /* The receiver announces the next message only when it has this one. */
    simple_signal_init(&channel->ready, 1);
    if (tile_of(to) == get_tile_id()) {
        memcpy(channel->to, buffer, bytes);
        simple_signal_signal(&channel->arrived);
        return;
    }
    simple_ilet here, there;
    simple_signal_init(&me->sent, 1);
    simple_ilet_init(&here, notice, &me->sent);
    simple_ilet_init(&there, notice, &channel->arrived);
    if (dispatch_claim_push_dma(machine.claims[tile_of(to)], buffer, channel->to, (buf_size_t)bytes, &here, &there) != 0) {
        octo_printf("rank %d cannot send to rank %d\n", me->index, to);
        shutdown(3);
    }
    simple_signal_wait(&me->sent);
}

void nas_wait(struct rank *me, int from)
{
    simple_signal_wait(&channels[me->index][from].arrived);
}

void nas_exchange(struct rank *me, int with, const void *out, size_t out_bytes, void *in)
{
    nas_post(me, with, in);
    nas_send(me, with, out, out_bytes);
    nas_wait(me, with);
}

/* Sums by pairs, at twice the distance each time: both of a pair add in the same order. */
static void sum(struct rank *me, void *values, size_t bytes, void (*add)(void *low, const void *high, int count), int count)
{
    if (me->count == 1)
        return;
    char *other = nas_allocate(bytes), *first = nas_allocate(bytes);
    for (int distance = 1; distance < me->count; distance *= 2) {
        int with = me->index ^ distance;
        nas_exchange(me, with, values, bytes, other);
        if (me->index < with) {
            add(values, other, count);
        } else {
            memcpy(first, other, bytes);
            add(first, values, count);
            memcpy(values, first, bytes);
        }
    }
    mem_free(other);
    mem_free(first);
}

static void add_doubles(void *low, const void *high, int count)
{
    for (int i = 0; i < count; i++)
        ((double *)low)[i] += ((const double *)high)[i];
}

static void add_ints(void *low, const void *high, int count)
{
    for (int i = 0; i < count; i++)
        ((int32_t *)low)[i] += ((const int32_t *)high)[i];
}

void nas_sum(struct rank *me, double *values, int count)
{
    sum(me, values, (size_t)count * sizeof *values, add_doubles, count);
}

void nas_sum_ints(struct rank *me, int32_t *values, int count)
{
    sum(me, values, (size_t)count * sizeof *values, add_ints, count);
}

void nas_barrier(struct rank *me)
{
    int32_t nothing = 0;
    nas_sum_ints(me, &nothing, 1);
}

void nas_gather(struct rank *me, void *all, size_t part)
{
    /* The ranks whose index differs in the lower bits only have each other's parts; then the next bit. */
    for (int distance = 1; distance < me->count; distance *= 2) {
        int with = me->index ^ distance;
        size_t mine = (size_t)(me->index & -distance) * part, theirs = (size_t)(with & -distance) * part;
        nas_exchange(me, with, (char *)all + mine, (size_t)distance * part, (char *)all + theirs);
    }
}

void nas_all_to_all(struct rank *me, const void *out, void *in, size_t part)
{
    memcpy((char *)in + (size_t)me->index * part, (const char *)out + (size_t)me->index * part, part);
    for (int step = 1; step < me->count; step++) {
        int with = me->index ^ step;
        nas_exchange(me, with, (const char *)out + (size_t)with * part, part, (char *)in + (size_t)with * part);
    }
}

void *nas_allocate(size_t bytes)
{
    void *memory = mem_allocate_aligned(MEM_TLM_LOCAL, bytes, 64);
    if (!memory) {
        octo_printf("no memory for %lu bytes\n", (unsigned long)bytes);
        shutdown(4);
    }
    return memory;
}

double nas_seconds(void)
{
    return (double)octo_clock_nanoseconds() / 1e9;
}

void nas_report(struct rank *me, char class, double seconds, double operations, int right)
{
    if (me->index)
        return;
    octo_printf("%s class %c: %d ranks on %u tiles, %.3f s, %.2f Mop/s\n", nas_kernel.name, class, me->count, machine.tiles,
                seconds, seconds > 0 ? operations / seconds : 0.0);
    octo_printf("%s class %c: verification %s\n", nas_kernel.name, class, right ? "successful" : "failed");
}

/* A rank's i-let. Each takes a core of its own: none goes on before all of its tile have begun. */
static void run(void *index, void *unused)
{
    (void)unused;
    struct rank *me = &ranks[(octo_word)index];
    me->index = (int)(octo_word)index;
    me->count = (int)(machine.tiles * machine.cores);
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    while (begun < machine.cores)
        ;
    int right = nas_kernel.run(me, machine.class);
    if (me->index == 0)
        verified = right;
    simple_ilet end;
    simple_ilet_init(&end, notice, &done);
    if (get_tile_id() == 0)
        simple_signal_signal(&done);
    else
        dispatch_claim_infect_single(machine.claims[0], &end);
}

/* Prepares the calling tile, once it knows the machine. */
static void prepare(void *unused)
{
    (void)unused;
    for (int to = 0; to < RANKS_MOST; to++)
        for (int from = 0; from < RANKS_MOST; from++)
            simple_signal_init(&channels[to][from].ready, 1);
    if (get_tile_id() != 0) {
        simple_ilet back;
        simple_ilet_init(&back, notice, &done);
        dispatch_claim_send_reply(&back);
    }
}

static void refuse(const char *why)
{
    octo_printf("%s: %s\n", nas_kernel.name, why);
    shutdown(2);
}

void main_ilet(claim_t claim)
{
    const char *class = octo_argument(1) ? octo_argument(1) : "S";
    int known = 0;
    for (const char *c = nas_kernel.classes; *c; c++)
        known |= class[0] == *c && class[1] == 0;
    if (!known)
        refuse("an argument names the class: S or W");
    machine.class = class[0];
    machine.tiles = get_compute_tile_count();
    machine.cores = get_tile_core_count();
    uint32_t count = machine.tiles * machine.cores;
    if ((count & (count - 1)) || count > RANKS_MOST || machine.tiles > 64)
        refuse("tiles times cores must be a power of two, at most 32");
    if (machine.cores > 1 && invade_simple(claim, machine.cores - 1) != 0)
        refuse("the tile's cores are not free");
    machine.claims[0] = get_own_dispatch_claim();
    proxy_claim_t proxies[64];
    for (uint32_t tile = 1; tile < machine.tiles; tile++) {
        invade_future future;
        if (proxy_invade((tile_id_t)tile, &future, machine.cores) != 0 || !(proxies[tile] = invade_future_force(&future)))
            refuse("another tile's cores are not free");
        machine.claims[tile] = proxy_get_dispatch_info(proxies[tile]);
    }
    prepare(NULL);
    for (uint32_t tile = 1; tile < machine.tiles; tile++) {
        simple_ilet there;
        simple_ilet_init(&there, prepare, NULL);
        simple_signal_init(&done, 1);
        if (proxy_push_dma(proxies[tile], &machine, &machine, sizeof machine, NULL, &there) != 0)
            refuse("another tile cannot be reached");
        simple_signal_wait(&done);
    }
    simple_signal_init(&done, count);
    simple_ilet team[RANKS_MOST];
    for (uint32_t rank = 0; rank < count; rank++)
        dual_ilet_init(&team[rank], run, (void *)(octo_word)rank, NULL);
    for (uint32_t tile = 1; tile < machine.tiles; tile++)
        proxy_infect(proxies[tile], &team[tile * machine.cores], machine.cores);
    infect_self(team, machine.cores);
    simple_signal_wait(&done);
    for (uint32_t tile = 1; tile < machine.tiles; tile++)
        proxy_retreat_sync(proxies[tile]);
    shutdown(verified ? 0 : 1);
}
