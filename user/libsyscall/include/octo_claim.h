/* Claims: cores of the calling tile, held exclusively. 0 is success and -1 failure unless stated otherwise. */
#ifndef OCTO_CLAIM_H
#define OCTO_CLAIM_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A new claim without cores. */
claim_t claim_construct(void);
/* Adds that many cores of this tile, all or none. */
int invade_simple(claim_t claim, pe_quantity_t quantity);
/* Gives cores back, never the one the caller runs on; refused while i-lets are queued. A core on which an i-let has begun is free
 * when that has ended. */
int retreat(claim_t claim, pe_quantity_t quantity);
/* Queues `size` i-lets, which are copied; refused by a claim without cores. In which order they begin is not defined. */
int infect(claim_t claim, simple_ilet *team, team_size_t size);
/* One i-let for the calling i-let's claim. */
int infect_simple(simple_ilet *ilet);
/* The calling i-let's claim, and its cores. */
claim_t get_claim(void);
pe_quantity_t claim_get_size(void);
/* One pointer of the application's for each claim. */
void claim_set_local_data(void *data);
void *claim_get_local_data(void);

#ifdef __cplusplus
}
#endif
#endif
