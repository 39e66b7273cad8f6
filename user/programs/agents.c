/* Agents on whatever machine there is: claims over all tiles, work on their cores, reinvades, and what they refuse. */
#include "octo.h"

static simple_signal done;
static int resized, lost, reinvaded;

#define CHECK(what)                                                                                                                  \
    do {                                                                                                                             \
        if (!(what)) {                                                                                                               \
            octo_printf("line %d: %s\n", __LINE__, #what);                                                                           \
            shutdown(1);                                                                                                             \
        }                                                                                                                            \
    } while (0)

static void answer(void *unused)
{
    (void)unused;
    simple_signal_signal(&done);
}

static void work(void *unused)
{
    (void)unused;
    simple_ilet reply;
    simple_ilet_init(&reply, answer, NULL);
    dispatch_claim_send_reply(&reply);
}

/* One i-let for each core of the claim. */
static void use(agentclaim_t claim)
{
    simple_signal_init(&done, (uint32_t)agent_claim_get_pecount(claim));
    int seen = 0;
    for (int place = 0; place < agent_claim_get_tilecount(claim); place++) {
        int tile = agent_claim_get_tileid_iterative(claim, place);
        proxy_claim_t proxy = agent_claim_get_proxyclaim_tile_type(claim, tile, RISC);
        CHECK(proxy && proxy_get_tid(proxy) == tile);
        for (int core = 0; core < agent_claim_get_pecount_tile_type(claim, (tile_id_t)tile, RISC); core++, seen++) {
            simple_ilet ilet;
            simple_ilet_init(&ilet, work, NULL);
            proxy_infect(proxy, &ilet, 1);
        }
    }
    CHECK(seen == agent_claim_get_pecount(claim));
    CHECK(agent_claim_get_tileid_iterative(claim, agent_claim_get_tilecount(claim)) == 0xff);
    simple_signal_wait(&done);
}

/* An i-let reports before it ends, and a core that was given back is free when what had begun on it has ended: until so many are. */
static void settle(int cores)
{
    if (cores == 0)
        return;
    constraints_t exactly = agent_constr_create();
    agent_constr_set_quantity(exactly, cores, cores, RISC);
    agentclaim_t claim;
    while (!(claim = agent_claim_invade(NULL, exactly)))
        ;
    agent_claim_retreat(claim);
    agent_constr_delete(exactly);
}

static void on_resize(agentclaim_t claim, size_t tile_count, size_t res_per_tile, gain_t gain, loss_t loss, resize_env_t env)
{
    CHECK(env == &resized && claim && tile_count == get_compute_tile_count());
    resized++;
    for (size_t at = 0; at < tile_count * res_per_tile; at++) {
        CHECK(!gain[at]);
        lost += loss[at];
    }
}

static void on_reinvade(void)
{
    reinvaded++;
}

void main_ilet(claim_t claim)
{
    int cores = (int)get_tile_core_count(), tiles = (int)get_compute_tile_count(), free = cores * tiles - 1;
    agentclaim_t initial = agent_claim_get_initial_with_name(claim, "first");
    char name[8];
    CHECK(initial && agent_claim_get_initial(claim) == initial && agent_claim_get_pecount(initial) == 1);
    CHECK(get_agent_name(initial, name, sizeof name) == 5 && name[4] == 't' && get_agent_name(initial, name, 5) == -1);
    agent_claim_print(initial);

    constraints_t wants = agent_constr_create();
    agent_constr_set_quantity(wants, free + 1, free + 1, RISC);
    CHECK(!agent_claim_invade(NULL, wants));
    agent_constr_set_quantity(wants, 0, 1, RISC);
    agent_constr_set_quantity(wants, 1, 1, TCPA);
    CHECK(!agent_claim_invade(NULL, wants));
    agent_constr_set_quantity(wants, 0, 0, TCPA);
    if (free > 0) {
        /* Everything, then less, then everything again. */
        agent_constr_set_quantity(wants, 1, 1000, RISC);
        agent_constr_set_reinvade_handler(wants, on_reinvade);
        agentclaim_t all = agent_claim_invade(NULL, wants);
        CHECK(all && agent_claim_get_pecount(all) == free && agent_claim_get_ucid(all) != agent_claim_get_ucid(initial));
        CHECK(agent_claim_get_agent(all) != agent_claim_get_agent(initial) && agent_claim_get_constr(all) == wants);
        use(all);
        CHECK(agent_claim_reinvade(all) == 0 && reinvaded == 1);
        /* A sticky claim keeps a core of each tile. */
        int kept = agent_claim_get_tilecount(all);
        agent_constr_set_quantity(wants, 1, 1, RISC);
        CHECK(agent_claim_reinvade(all) == free - kept && agent_claim_get_pecount(all) == kept);
        agent_constr_set_stickyclaim(wants, 0);
        CHECK(agent_claim_reinvade(all) == kept - 1 && agent_claim_get_pecount(all) == 1 && !agent_claim_isempty(all));
        use(all);
        /* What cannot be met changes nothing. */
        agent_constr_set_quantity(wants, free + 1, 1000, RISC);
        CHECK(agent_claim_reinvade(all) == -1 && agent_claim_get_pecount(all) == 1);
        agent_constr_set_quantity(wants, 1, 1000, RISC);
        settle(free - 1);
        CHECK(agent_claim_reinvade(all) == free - 1);
        use(all);
        /* Its own agent's second claim finds nothing, until the first is malleable. */
        constraints_t one = agent_constr_create();
        CHECK(!agent_claim_invade_parentclaim(all, one));
        if (free > 1) {
            agent_constr_set_malleable(wants, 1, on_resize, &resized);
            agentclaim_t second = agent_claim_invade_parentclaim(all, one);
            CHECK(second && resized == 1 && lost == 1 && agent_claim_get_pecount(all) == free - 1);
            CHECK(agent_claim_get_agent(second) == agent_claim_get_agent(all));
            use(second);
            agent_claim_retreat(second);
            agent_constr_set_malleable(wants, 0, NULL, NULL);
        }
        agent_claim_retreat(all);
        settle(free);
        /* The better of two. */
        constraints_t most = agent_constr_create();
        agent_constr_set_quantity(most, 1, free, RISC);
        constraints_t either[] = {one, most};
        agentclaim_t best = agent_claim_invade_or_constraints(NULL, 2, either);
        CHECK(best && agent_claim_get_pecount(best) == free);
        agent_agent_delete(agent_claim_get_agent(best), 0);
        CHECK(agent_claim_get_pecount(best) == free);
        agent_agent_delete(agent_claim_get_agent(best), 1);
        /* One core is as good as many for what does not scale, and comes first. */
        agent_constr_set_downey_speedup_curve(most, 1, 0);
        best = agent_claim_invade_or_constraints(NULL, 2, either);
        CHECK(best && agent_claim_get_pecount(best) == 1);
        agent_claim_retreat(best);
        agent_constr_delete(most);
        agent_constr_delete(one);
    }
    if (tiles > 1) {
        constraints_t other = agent_constr_create(), place = agent_constr_create();
        agent_constr_set_tile(place, 1);
        agent_constr_set_quantity(other, 1, 1000, RISC);
        agent_constr_overwrite(other, place);
        agentclaim_t there = agent_claim_invade(NULL, other);
        CHECK(there && agent_claim_get_pecount(there) == cores && agent_claim_get_pecount_tile(there, 1) == cores);
        use(there);
        settle(free - cores);
        agent_constr_set_notontile(other, 1);
        int moved = agent_claim_reinvade(there);
        CHECK(moved == (free - cores > 0 ? cores + free - cores : -1));
        CHECK(agent_claim_get_pecount_tile(there, 1) == (moved < 0 ? cores : 0));
        agent_claim_retreat(there);
        settle(free);
        /* Whole tiles: never the one this i-let has a core of. */
        agent_constr_set_tile_bitmap(other, 0xffff);
        agent_constr_set_tile_shareable(other, 0);
        there = agent_claim_invade(NULL, other);
        CHECK(there && agent_claim_get_pecount(there) == cores * (tiles - 1) && agent_claim_get_pecount_tile(there, 0) == 0);
        use(there);
        agent_claim_retreat(there);
        settle(free);
    }
    if (cores > 1) {
        /* The initial claim takes cores of its own tile too. */
        agent_constr_set_quantity(wants, cores, cores, RISC);
        agent_constr_set_tile(wants, get_tile_id());
        CHECK(agent_claim_reinvade_constraints(initial, wants) == cores - 1 && claim_get_size() == (pe_quantity_t)cores);
    }
    agent_claim_retreat(initial);
    CHECK(claim_get_size() == 1);
    octo_printf("agents invaded, reinvaded, retreated\n");
    shutdown(0);
}
