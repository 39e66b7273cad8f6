/* Agents: they negotiate cores of all tiles by constraints; what they get is an agent claim, which spans tiles.
 *
 * Agents, agent claims and constraints belong to the tile they were made on, and are used by one i-let of it at a time. */
#ifndef OCTO_AGENT3_H
#define OCTO_AGENT3_H

#include <stdbool.h>

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octo_agent *agent_t;
typedef struct octo_agent_claim *agentclaim_t;
typedef struct octo_constraints *constraints_t;

/* Kinds of cores. These machines have RISC cores only. */
typedef enum { RISC = 0, iCore = 1, TCPA = 2, none = 3, ALL = 4 } res_type_t;

/* Gained and lost cores: arrays of `tile_count` times `res_per_tile` bytes, 1 for a core that comes or goes. Which of a tile's cores
 * go is the tile's affair; the first so many are marked. */
typedef const uint8_t *gain_t;
typedef const uint8_t *loss_t;
typedef void *resize_env_t;
typedef void (*resize_handler_t)(agentclaim_t claim, size_t tile_count, size_t res_per_tile, gain_t gain, loss_t loss,
                                 resize_env_t env);
typedef void (*reinvade_handler_t)(void);

agent_t agent_agent_create(void);
/* Retreats its claims if `force` is not 0; without it an agent that has claims stays. */
void agent_agent_delete(agent_t agent, uint8_t force);

/* The claim main_ilet began with, as an agent claim of a new agent; NULL for any other. */
agentclaim_t agent_claim_get_initial(claim_t claim);
agentclaim_t agent_claim_get_initial_with_name(claim_t claim, const char *agent_name);
/* A new claim with as many cores as the constraints want and there are; NULL where there are too few. Without an agent one is made
 * for it. The constraints are not copied: they live as long as the claim. */
agentclaim_t agent_claim_invade(agent_t agent, constraints_t constraints);
agentclaim_t agent_claim_invade_with_name(agent_t agent, constraints_t constraints, const char *agent_name);
agentclaim_t agent_claim_invade_parentclaim(agentclaim_t parent, constraints_t constraints);
/* With that set of constraints which promises most: cores, or the speedup that its curve has for them. */
agentclaim_t agent_claim_invade_or_constraints(agent_t agent, uint8_t count, constraints_t constraints[]);
/* Fits the claim to its constraints, or to new ones. Returns how many cores came and went; -1 where the constraints cannot be met,
 * and the claim is what it was. */
int agent_claim_reinvade(agentclaim_t claim);
int agent_claim_reinvade_constraints(agentclaim_t claim, constraints_t constraints);
/* Gives all cores back, but for the core of the caller in the initial claim. A claim that has i-lets queued on a tile keeps that and
 * stays; otherwise it is gone, and an agent's last claim takes the agent along. */
void agent_claim_retreat(agentclaim_t claim);

int agent_claim_get_pecount(agentclaim_t claim);
int agent_claim_get_pecount_type(agentclaim_t claim, res_type_t type);
int agent_claim_get_pecount_tile(agentclaim_t claim, tile_id_t tile);
int agent_claim_get_pecount_tile_type(agentclaim_t claim, tile_id_t tile, res_type_t type);
int agent_claim_get_tilecount(agentclaim_t claim);
/* The claim's tiles by place, from 0; 0xff behind the last. */
int agent_claim_get_tileid_iterative(agentclaim_t claim, int place);
/* A number that no other agent claim of the tile has. */
uint32_t agent_claim_get_ucid(agentclaim_t claim);
bool agent_claim_isempty(agentclaim_t claim);
agent_t agent_claim_get_agent(agentclaim_t claim);
constraints_t agent_claim_get_constr(agentclaim_t claim);
void agent_claim_print(agentclaim_t claim);
/* What i-lets for the claim's cores of a tile are sent to; NULL where it has none. */
proxy_claim_t agent_claim_get_proxyclaim_tile_type(agentclaim_t claim, int tile, res_type_t type);
/* At most 31 characters; getting returns the length, -1 where it does not fit. */
void set_agent_name(agentclaim_t claim, const char *agent_name);
int get_agent_name(agentclaim_t claim, char buffer[], size_t size);

/* One core at least, one at most, on any tile. */
constraints_t agent_constr_create(void);
void agent_constr_delete(constraints_t constraints);
/* Takes over what has been set in the others. */
void agent_constr_overwrite(constraints_t target, constraints_t others);
void agent_constr_set_quantity(constraints_t constraints, int least, int most, res_type_t type);
/* Only on this tile; on any but this one; on those whose bit is set. The last one set counts. */
void agent_constr_set_tile(constraints_t constraints, tile_id_t tile);
void agent_constr_set_notontile(constraints_t constraints, tile_id_t tile);
void agent_constr_set_tile_bitmap(constraints_t constraints, uint16_t bitmap);
/* 0: whole tiles only. */
void agent_constr_set_tile_shareable(constraints_t constraints, uint8_t shareable);
/* 0: a reinvade may give up all cores of a tile that is allowed. */
void agent_constr_set_stickyclaim(constraints_t constraints, uint8_t sticky);
/* Downey's model of speedup: mean parallelism, and its variance times 100. */
void agent_constr_set_downey_speedup_curve(constraints_t constraints, int a, int sigma);
int agent_get_downey_sigma(constraints_t constraints);
/* Not 0: where an invade on this tile finds too few cores, the claim gives up what it has above its least. The handler is called
 * before, and sees to it that no i-let is queued there. */
void agent_constr_set_malleable(constraints_t constraints, uint8_t malleable, resize_handler_t handler, resize_env_t env);
/* Called after every reinvade. */
void agent_constr_set_reinvade_handler(constraints_t constraints, reinvade_handler_t handler);
reinvade_handler_t agent_constr_get_reinvade_handler(constraints_t constraints);

#ifdef __cplusplus
}
#endif
#endif
