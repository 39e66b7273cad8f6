/* Another tile: invades it through a proxy claim, infects it, and has the answer sent back as an i-let. */
#include "octo.h"

static simple_signal answered;
static octo_word answer;

static void reply(void *value, void *place)
{
    *(octo_word *)place = (octo_word)value;
    simple_signal_signal(&answered);
}

/* On the other tile: the pointer is the origin's and only travels. */
static void question(void *number, void *place)
{
    simple_ilet back;
    octo_word value = (octo_word)number * 2 + get_tile_id();
    dual_ilet_init(&back, reply, (void *)value, place);
    if (dispatch_claim_send_reply(&back) != 0)
        shutdown(10);
}

static void many(void *first, void *second)
{
    (void)first, (void)second;
    if (dispatch_claim_get_tid(get_parent_dispatch_claim()) != 0)
        shutdown(11);
    simple_ilet back;
    simple_ilet_init(&back, (ilet_func)simple_signal_signal, &answered);
    dispatch_claim_infect_single(get_parent_dispatch_claim(), &back);
}

void main_ilet(claim_t claim)
{
    (void)claim;
    if (get_parent_dispatch_claim().word != 0)
        shutdown(9);
    uint32_t tiles = get_compute_tile_count();
    for (tile_id_t tile = 0; tile < tiles; tile++) {
        invade_future future;
        uint32_t cores = get_tile_core_count();
        if (tile == 0 && cores == 1)
            continue;
        if (proxy_invade(tile, &future, 1) != 0)
            shutdown(1);
        proxy_claim_t proxy = invade_future_force(&future);
        if (!proxy || proxy_get_tid(proxy) != tile)
            shutdown(2);
        simple_ilet ask;
        simple_signal_init(&answered, 1);
        dual_ilet_init(&ask, question, (void *)21, &answer);
        proxy_infect(proxy, &ask, 1);
        simple_signal_wait(&answered);
        if (answer != 42u + tile)
            shutdown(3);
        /* All of the tile's cores but none too many. */
        uint32_t free = tile == 0 ? cores - 2 : cores - 1;
        if (proxy_reinvade_sync(proxy, (pe_quantity_delta_t)free) != 0 || proxy_reinvade_sync(proxy, 1) == 0)
            shutdown(4);
        simple_ilet team[64];
        for (int i = 0; i < 64; i++)
            dual_ilet_init(&team[i], many, 0, 0);
        simple_signal_init(&answered, 64);
        proxy_infect(proxy, team, 64);
        simple_signal_wait(&answered);
        if (proxy_reinvade_sync(proxy, -(pe_quantity_delta_t)free) != 0)
            shutdown(5);
        if (proxy_retreat_sync(proxy) != 0)
            shutdown(6);
        octo_printf("tile %u answered %lu\n", tile, (unsigned long)answer);
    }
    invade_future future;
    if (proxy_invade((tile_id_t)tiles, &future, 1) != -1)
        shutdown(7);
    if (tiles > 1 && (proxy_invade(1, &future, 1000) != 0 || invade_future_force(&future) != NULL))
        shutdown(8);
    shutdown(0);
}
