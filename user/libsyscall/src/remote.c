#include "call.h"

int proxy_invade(tile_id_t tile, invade_future *future, pe_quantity_t quantity)
{
    return (int)CALL3(PROXY_INVADE, tile, future, quantity);
}

proxy_claim_t invade_future_force(invade_future *future)
{
    return (proxy_claim_t)CALL1(INVADE_FUTURE_FORCE, future);
}

int proxy_reinvade(proxy_claim_t claim, reinvade_future *future, pe_quantity_delta_t delta)
{
    return (int)CALL3(PROXY_REINVADE, claim, future, delta);
}

int reinvade_future_force(reinvade_future *future)
{
    return (int)CALL1(REINVADE_FUTURE_FORCE, future);
}

int proxy_reinvade_sync(proxy_claim_t claim, pe_quantity_delta_t delta)
{
    reinvade_future future;
    return proxy_reinvade(claim, &future, delta) ? -1 : reinvade_future_force(&future);
}

int proxy_retreat(proxy_claim_t claim, retreat_future *future)
{
    return (int)CALL2(PROXY_RETREAT, claim, future);
}

int retreat_future_force(retreat_future *future)
{
    return (int)CALL1(RETREAT_FUTURE_FORCE, future);
}

int proxy_retreat_sync(proxy_claim_t claim)
{
    retreat_future future;
    return proxy_retreat(claim, &future) ? -1 : retreat_future_force(&future);
}

void proxy_infect(proxy_claim_t claim, simple_ilet *team, team_size_t size)
{
    CALL3(PROXY_INFECT, claim, team, size);
}

int proxy_push_dma(proxy_claim_t claim, const void *source, void *destination, buf_size_t size, simple_ilet *here,
                   simple_ilet *there)
{
    return (int)CALL6(PROXY_PUSH_DMA, claim, source, destination, size, here, there);
}

int proxy_claim_pull_dma(proxy_claim_t claim, void *destination, const void *source, buf_size_t size, simple_ilet *here,
                         simple_ilet *there)
{
    return (int)CALL6(PROXY_CLAIM_PULL_DMA, claim, destination, source, size, here, there);
}

int proxy_get_tid(proxy_claim_t claim)
{
    return (int)CALL1(PROXY_GET_TID, claim);
}

dispatch_claim_t proxy_get_dispatch_info(proxy_claim_t claim)
{
    return (dispatch_claim_t){CALL1(PROXY_GET_DISPATCH_INFO, claim)};
}

dispatch_claim_t get_parent_dispatch_claim(void)
{
    return (dispatch_claim_t){CALL0(GET_PARENT_DISPATCH_CLAIM)};
}

dispatch_claim_t get_own_dispatch_claim(void)
{
    return (dispatch_claim_t){CALL0(GET_OWN_DISPATCH_CLAIM)};
}

int dispatch_claim_infect(dispatch_claim_t claim, simple_ilet *team, team_size_t size)
{
    return (int)CALL3(DISPATCH_CLAIM_INFECT, claim.word, team, size);
}

int dispatch_claim_infect_single(dispatch_claim_t claim, simple_ilet *ilet)
{
    return dispatch_claim_infect(claim, ilet, 1);
}

int infect_self(simple_ilet *team, team_size_t size)
{
    return (int)CALL2(INFECT_SELF, team, size);
}

int infect_self_single(simple_ilet *ilet)
{
    return infect_self(ilet, 1);
}

int dispatch_claim_send_reply(simple_ilet *reply)
{
    return (int)CALL1(DISPATCH_CLAIM_SEND_REPLY, reply);
}

int dispatch_claim_push_dma(dispatch_claim_t claim, const void *source, void *destination, buf_size_t size, simple_ilet *here,
                            simple_ilet *there)
{
    return (int)CALL6(DISPATCH_CLAIM_PUSH_DMA, claim.word, source, destination, size, here, there);
}

int dispatch_claim_pull_dma(dispatch_claim_t claim, void *destination, const void *source, buf_size_t size, simple_ilet *here,
                            simple_ilet *there)
{
    return (int)CALL6(DISPATCH_CLAIM_PULL_DMA, claim.word, destination, source, size, here, there);
}

int dispatch_claim_get_tid(dispatch_claim_t claim)
{
    return (int)CALL1(DISPATCH_CLAIM_GET_TID, claim.word);
}
