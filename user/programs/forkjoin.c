/* Fork and join on one tile: invades the cores that are free, sums a range in parts, one i-let each, and waits for all of them. */
#include "octo.h"

enum { PARTS = 16, NUMBERS = 1600000 };

struct part {
    uint64_t from, to, sum;
    simple_signal *done;
};

static void work(void *argument)
{
    struct part *part = argument;
    /* Memory of the i-let's own: what another leaves there must not matter. */
    uint64_t *sum = get_ilocal_data();
    *sum = 0;
    for (uint64_t n = part->from; n < part->to; n++)
        *sum += n;
    part->sum = *sum;
    simple_signal_signal_and_exit(part->done);
}

void main_ilet(claim_t own)
{
    (void)own;
    static struct part parts[PARTS];
    simple_ilet team[PARTS];
    simple_signal done;
    claim_t claim = claim_construct();
    pe_quantity_t cores = get_tile_core_count() - 1;
    /* On a machine of one core the i-lets run on the own claim while this one waits. */
    if (cores == 0)
        claim = get_claim();
    else if (invade_simple(claim, cores) != 0) {
        octo_printf("no %u cores are free\n", cores);
        shutdown(1);
    }
    if (invade_simple(claim, 1) == 0) {
        octo_printf("more cores than there are\n");
        shutdown(1);
    }
    simple_signal_init(&done, PARTS);
    for (int i = 0; i < PARTS; i++) {
        parts[i] = (struct part){(uint64_t)NUMBERS / PARTS * i, (uint64_t)NUMBERS / PARTS * (i + 1), 0, &done};
        simple_ilet_init(&team[i], work, &parts[i]);
    }
    if (infect(claim, team, PARTS) != 0)
        shutdown(2);
    simple_signal_wait(&done);
    if (cores && retreat(claim, cores) != 0)
        shutdown(3);
    if (cores && infect(claim, team, 1) != -1)
        shutdown(4);
    uint64_t sum = 0;
    for (int i = 0; i < PARTS; i++)
        sum += parts[i].sum;
    octo_printf("%u cores, sum %llu\n", cores, (unsigned long long)sum);
    shutdown(sum == (uint64_t)NUMBERS * (NUMBERS - 1) / 2 ? 0 : 5);
}
