/* Cores are held: i-lets that make no call spin on every core of every tile until all of their tile are there, and go on spinning
 * until a message from tile 0 has come. On cores that took turns, or that no message reached, this would not end. */
#include "octo.h"

/* Each tile has its own. */
static volatile uint32_t arrived, released;
static simple_signal over, pushed;

static void notice(void *signal)
{
    simple_signal_signal(signal);
}

static void spin(void *cores, void *answer)
{
    __atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
    while (arrived < (uint32_t)(octo_word)cores || !released)
        ;
    if (answer) {
        simple_ilet back;
        simple_ilet_init(&back, notice, answer);
        dispatch_claim_send_reply(&back);
    } else {
        simple_signal_signal_and_exit(&over);
    }
}

void main_ilet(claim_t own)
{
    (void)own;
    uint32_t tiles = get_compute_tile_count(), cores = get_tile_core_count();
    proxy_claim_t others[64];
    simple_ilet team[64];
    simple_signal_init(&over, cores * tiles - 1);
    for (tile_id_t tile = 1; tile < tiles; tile++) {
        invade_future future;
        if (proxy_invade(tile, &future, cores) != 0 || !(others[tile] = invade_future_force(&future)))
            shutdown(1);
        for (uint32_t core = 0; core < cores; core++)
            dual_ilet_init(&team[core], spin, (void *)(octo_word)cores, &over);
        proxy_infect(others[tile], team, cores);
    }
    claim_t claim = claim_construct();
    for (uint32_t core = 0; core + 1 < cores; core++)
        dual_ilet_init(&team[core], spin, (void *)(octo_word)(cores - 1), NULL);
    if (cores > 1 && (invade_simple(claim, cores - 1) != 0 || infect(claim, team, cores - 1) != 0))
        shutdown(2);
    while (arrived < cores - 1)
        ;
    /* Every other tile's cores are busy, or about to be. */
    simple_ilet here;
    uint32_t one = 1;
    simple_ilet_init(&here, notice, &pushed);
    for (tile_id_t tile = 1; tile < tiles; tile++) {
        simple_signal_init(&pushed, 1);
        if (proxy_push_dma(others[tile], &one, (void *)&released, sizeof one, &here, NULL) != 0)
            shutdown(3);
        simple_signal_wait(&pushed);
    }
    released = 1;
    simple_signal_wait(&over);
    octo_printf("%u cores of %u tiles spun at once\n", cores * tiles, tiles);
    shutdown(0);
}
