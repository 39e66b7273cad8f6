/* Dispatch claims: the ability to answer. They are values and may be handed to others. */
#ifndef OCTO_DISPATCH_CLAIM_H
#define OCTO_DISPATCH_CLAIM_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the claim that infected the running i-let (its word is 0 when none did), and of the running i-let itself. */
dispatch_claim_t get_parent_dispatch_claim(void);
dispatch_claim_t get_own_dispatch_claim(void);
int dispatch_claim_infect(dispatch_claim_t claim, simple_ilet *team, team_size_t size);
int dispatch_claim_infect_single(dispatch_claim_t claim, simple_ilet *ilet);
/* I-lets for the own claim. */
int infect_self(simple_ilet *team, team_size_t size);
int infect_self_single(simple_ilet *ilet);
/* One i-let for the parent's claim. */
int dispatch_claim_send_reply(simple_ilet *reply);
/* As proxy_push_dma and proxy_claim_pull_dma. */
int dispatch_claim_push_dma(dispatch_claim_t claim, const void *source, void *destination, buf_size_t size, simple_ilet *here,
                            simple_ilet *there);
int dispatch_claim_pull_dma(dispatch_claim_t claim, void *destination, const void *source, buf_size_t size, simple_ilet *here,
                            simple_ilet *there);
int dispatch_claim_get_tid(dispatch_claim_t claim);

#ifdef __cplusplus
}
#endif
#endif
