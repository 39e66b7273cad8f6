/* Claims on other tiles (the own one may be asked too). Asking is asynchronous; a future has the answer. */
#ifndef OCTO_PROXY_CLAIM_H
#define OCTO_PROXY_CLAIM_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

int proxy_invade(tile_id_t tile, invade_future *future, pe_quantity_t quantity);
/* Waits; NULL when the tile refused. Each future is forced once. */
proxy_claim_t invade_future_force(invade_future *future);
/* Grows or shrinks. */
int proxy_reinvade(proxy_claim_t claim, reinvade_future *future, pe_quantity_delta_t delta);
int reinvade_future_force(reinvade_future *future);
int proxy_reinvade_sync(proxy_claim_t claim, pe_quantity_delta_t delta);
/* Gives the whole claim back. */
int proxy_retreat(proxy_claim_t claim, retreat_future *future);
int retreat_future_force(retreat_future *future);
int proxy_retreat_sync(proxy_claim_t claim);
/* I-lets for the claim, copied. */
void proxy_infect(proxy_claim_t claim, simple_ilet *team, team_size_t size);
/* Copies memory of this tile to the claim's; then `here` begins on the caller's claim and `there` on the claim, each or both
 * NULL. -1 for a destination that names another tile. */
int proxy_push_dma(proxy_claim_t claim, const void *source, void *destination, buf_size_t size, simple_ilet *here,
                   simple_ilet *there);
/* The contrary direction. */
int proxy_claim_pull_dma(proxy_claim_t claim, void *destination, const void *source, buf_size_t size, simple_ilet *here,
                         simple_ilet *there);
/* The claim's tile, -1 for no claim. */
int proxy_get_tid(proxy_claim_t claim);
dispatch_claim_t proxy_get_dispatch_info(proxy_claim_t claim);

#ifdef __cplusplus
}
#endif
#endif
