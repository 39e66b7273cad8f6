/* Agents on proxy claims: a claim has one on each tile where it has cores. */
#include "octo_agent3.h"
#include "call.h"

enum { NAME_SIZE = 32, NO_TILE = 0xff };

/* For what has begun on a core that was given up to end, also on a host with far more to do. */
enum { GIVEN_UP_NANOSECONDS = 1000000000 };

/* What has been set in constraints. */
enum { SET_QUANTITY = 1, SET_PLACE = 2, SET_SHAREABLE = 4, SET_STICKY = 8, SET_CURVE = 16, SET_MALLEABLE = 32, SET_REINVADE = 64 };

struct octo_constraints {
    unsigned set;
    int least, most;
    /* Least of a kind of core that no tile has. */
    int least_other;
    enum { ANYWHERE, ONLY, NOT, BITMAP } place;
    tile_id_t tile;
    uint16_t bitmap;
    uint8_t shareable, sticky, malleable;
    int mean, sigma;
    resize_handler_t resize;
    resize_env_t env;
    reinvade_handler_t reinvade;
};

struct octo_agent {
    char name[NAME_SIZE];
    int claims;
};

struct part {
    proxy_claim_t proxy;
    int cores;
};

struct octo_agent_claim {
    agentclaim_t next;
    agent_t agent;
    constraints_t constraints;
    uint32_t ucid;
    claim_t initial;
    /* By tile. */
    struct part parts[];
};

static agentclaim_t claims;
static uint32_t last_ucid;

static int tiles(void)
{
    return (int)get_compute_tile_count();
}

static void name_agent(agent_t agent, const char *name)
{
    int at = 0;
    for (; name && name[at] && at < NAME_SIZE - 1; at++)
        agent->name[at] = name[at];
    agent->name[at] = 0;
}

agent_t agent_agent_create(void)
{
    agent_t agent = mem_allocate(MEM_TLM_LOCAL, sizeof *agent);
    if (agent)
        *agent = (struct octo_agent){.claims = 0};
    return agent;
}

void agent_agent_delete(agent_t agent, uint8_t force)
{
    if (agent->claims && !force)
        return;
    /* With its last claim an agent goes by itself. */
    if (!agent->claims) {
        mem_free(agent);
        return;
    }
    for (agentclaim_t claim = claims, next; claim; claim = next) {
        next = claim->next;
        if (claim->agent == agent)
            agent_claim_retreat(claim);
    }
}

static agentclaim_t new_claim(agent_t agent, constraints_t constraints)
{
    size_t count = (size_t)tiles();
    agentclaim_t claim = mem_allocate(MEM_TLM_LOCAL, sizeof *claim + count * sizeof claim->parts[0]);
    if (!claim)
        return NULL;
    *claim = (struct octo_agent_claim){.next = claims, .agent = agent, .constraints = constraints, .ucid = ++last_ucid};
    for (size_t tile = 0; tile < count; tile++)
        claim->parts[tile] = (struct part){NULL, 0};
    agent->claims++;
    claims = claim;
    return claim;
}

static void drop_claim(agentclaim_t claim)
{
    agentclaim_t *link = &claims;
    while (*link != claim)
        link = &(*link)->next;
    *link = claim->next;
    if (--claim->agent->claims == 0)
        mem_free(claim->agent);
    mem_free(claim);
}

static int total(agentclaim_t claim)
{
    int sum = 0;
    for (int tile = 0; tile < tiles(); tile++)
        sum += claim->parts[tile].cores;
    return sum;
}

static int allowed(constraints_t constraints, int tile)
{
    switch (constraints->place) {
    case ONLY:
        return tile == constraints->tile;
    case NOT:
        return tile != constraints->tile;
    case BITMAP:
        return tile < 16 && (constraints->bitmap >> tile & 1);
    default:
        return 1;
    }
}

/* Asks a tile for cores: all or none. */
static int grow(agentclaim_t claim, int tile, int cores)
{
    struct part *part = &claim->parts[tile];
    if (claim->initial && tile == get_tile_id()) {
        if (invade_simple(claim->initial, (pe_quantity_t)cores) != 0)
            return 0;
    } else if (part->proxy) {
        if (proxy_reinvade_sync(part->proxy, cores) != 0)
            return 0;
    } else {
        invade_future future;
        if (proxy_invade((tile_id_t)tile, &future, (pe_quantity_t)cores) != 0 || !(part->proxy = invade_future_force(&future)))
            return 0;
    }
    part->cores += cores;
    return 1;
}

/* Gives cores of a tile back; 0 when the tile refuses, which it does while i-lets are queued. */
static int shrink(agentclaim_t claim, int tile, int cores)
{
    struct part *part = &claim->parts[tile];
    int done;
    if (claim->initial && tile == get_tile_id())
        done = retreat(claim->initial, (pe_quantity_t)cores) == 0;
    else if (cores == part->cores)
        done = proxy_retreat_sync(part->proxy) == 0;
    else
        done = proxy_reinvade_sync(part->proxy, -cores) == 0;
    if (!done)
        return 0;
    part->cores -= cores;
    if (part->cores == 0)
        part->proxy = NULL;
    return 1;
}

/* As many cores as are free and wanted, tile by tile, the own one last: it has most to do already. Returns how many came. */
static int gather(agentclaim_t claim, constraints_t constraints, int wanted)
{
    int here = get_tile_id(), whole = (int)get_tile_core_count(), come = 0;
    for (int step = 1; step <= tiles() && come < wanted; step++) {
        int tile = (here + step) % tiles();
        if (!allowed(constraints, tile))
            continue;
        if (!constraints->shareable) {
            if (!claim->parts[tile].cores && wanted - come >= whole && grow(claim, tile, whole))
                come += whole;
            continue;
        }
        int room = whole - claim->parts[tile].cores;
        for (int cores = wanted - come < room ? wanted - come : room; cores > 0; cores--)
            if (grow(claim, tile, cores)) {
                come += cores;
                break;
            }
    }
    return come;
}

static void tell(agentclaim_t claim, int tile, int cores)
{
    size_t each = get_tile_core_count(), bytes = (size_t)tiles() * each;
    uint8_t *marks = mem_allocate(MEM_TLM_LOCAL, 2 * bytes);
    if (!marks)
        return;
    for (size_t at = 0; at < 2 * bytes; at++)
        marks[at] = at >= bytes + (size_t)tile * each && at < bytes + (size_t)tile * each + (size_t)cores;
    claim->constraints->resize(claim, (size_t)tiles(), each, marks, marks + bytes, claim->constraints->env);
    mem_free(marks);
}

/* Has malleable claims of others give up cores on allowed tiles. Returns how many they gave. */
static int make_room(agentclaim_t claim, constraints_t constraints, int wanted)
{
    int given = 0;
    for (agentclaim_t other = claims; other && wanted > 0; other = other->next) {
        constraints_t its = other->constraints;
        if (other == claim || !its || !its->malleable || !its->resize || !its->shareable)
            continue;
        for (int tile = 0; tile < tiles() && wanted > 0; tile++) {
            int spare = total(other) - its->least, cores = other->parts[tile].cores;
            cores = cores < spare ? cores : spare;
            cores = cores < wanted ? cores : wanted;
            if (cores <= 0 || !allowed(constraints, tile))
                continue;
            tell(other, tile, cores);
            if (shrink(other, tile, cores)) {
                wanted -= cores;
                given += cores;
            }
        }
    }
    return given;
}

/* Takes cores that others gave up. Such a core is free when what had begun on it has ended, which is soon: the claim that was asked to give
   it up has been asked, and has agreed. */
static void take(agentclaim_t claim, constraints_t constraints, int given)
{
    uint64_t until = octo_clock_nanoseconds() + GIVEN_UP_NANOSECONDS;
    do
        given -= gather(claim, constraints, given);
    while (given > 0 && octo_clock_nanoseconds() < until);
}

static int on_allowed(agentclaim_t claim, constraints_t constraints)
{
    int sum = 0;
    for (int tile = 0; tile < tiles(); tile++)
        sum += allowed(constraints, tile) ? claim->parts[tile].cores : 0;
    return sum;
}

/* Fits the claim to the constraints: what is wanted first, then what is too much. Returns the changes, or -1 with none made. */
static int fit(agentclaim_t claim, constraints_t constraints)
{
    if (constraints->least_other > 0 || constraints->least > constraints->most)
        return -1;
    int before[tiles()], changes = 0;
    for (int tile = 0; tile < tiles(); tile++)
        before[tile] = claim->parts[tile].cores;
    gather(claim, constraints, constraints->most - on_allowed(claim, constraints));
    int lacking = constraints->least - on_allowed(claim, constraints);
    if (lacking > 0) {
        int given = make_room(claim, constraints, lacking);
        if (given > 0)
            take(claim, constraints, given);
    }
    int have = on_allowed(claim, constraints);
    if (have < constraints->least) {
        for (int tile = 0; tile < tiles(); tile++)
            if (claim->parts[tile].cores > before[tile])
                shrink(claim, tile, claim->parts[tile].cores - before[tile]);
        return -1;
    }
    for (int tile = 0; tile < tiles(); tile++) {
        int cores = claim->parts[tile].cores, keep = claim->initial && tile == get_tile_id();
        if (!allowed(constraints, tile)) {
            if (cores > keep)
                shrink(claim, tile, cores - keep);
            continue;
        }
        if (have <= constraints->most || !cores)
            continue;
        int surplus = have - constraints->most;
        if (constraints->sticky && !keep)
            keep = 1;
        int less = cores - keep < surplus ? cores - keep : surplus;
        if (!constraints->shareable)
            less = surplus >= cores ? cores : 0;
        if (less > 0 && shrink(claim, tile, less))
            have -= less;
    }
    for (int tile = 0; tile < tiles(); tile++) {
        int by = claim->parts[tile].cores - before[tile];
        changes += by < 0 ? -by : by;
    }
    return changes;
}

agentclaim_t agent_claim_get_initial_with_name(claim_t octoclaim, const char *agent_name)
{
    for (agentclaim_t claim = claims; claim; claim = claim->next)
        if (claim->initial == octoclaim)
            return claim;
    agent_t agent = octoclaim == get_claim() ? agent_agent_create() : NULL;
    agentclaim_t claim = agent ? new_claim(agent, NULL) : NULL;
    if (!claim) {
        mem_free(agent);
        return NULL;
    }
    name_agent(agent, agent_name);
    claim->initial = octoclaim;
    claim->parts[get_tile_id()] = (struct part){(proxy_claim_t)get_own_dispatch_claim().word, (int)claim_get_size()};
    return claim;
}

agentclaim_t agent_claim_get_initial(claim_t octoclaim)
{
    return agent_claim_get_initial_with_name(octoclaim, "");
}

agentclaim_t agent_claim_invade_with_name(agent_t parent, constraints_t constraints, const char *agent_name)
{
    agent_t agent = parent ? parent : agent_agent_create();
    if (!agent)
        return NULL;
    if (!parent)
        name_agent(agent, agent_name);
    agentclaim_t claim = new_claim(agent, constraints);
    if (!claim) {
        if (agent->claims == 0)
            mem_free(agent);
        return NULL;
    }
    if (fit(claim, constraints) < 0) {
        drop_claim(claim);
        return NULL;
    }
    return claim;
}

agentclaim_t agent_claim_invade(agent_t agent, constraints_t constraints)
{
    return agent_claim_invade_with_name(agent, constraints, "");
}

agentclaim_t agent_claim_invade_parentclaim(agentclaim_t parent, constraints_t constraints)
{
    return agent_claim_invade(parent ? parent->agent : NULL, constraints);
}

/* Downey's speedup of so many cores; without a curve they are what counts. */
static double promise(constraints_t constraints, int cores)
{
    double n = cores, a = constraints->mean, sigma = constraints->sigma / 100.0;
    if (!(constraints->set & SET_CURVE) || cores <= 0 || a < 1)
        return n;
    if (sigma >= 1)
        return n >= a + a * sigma - sigma ? a : n * a * (sigma + 1) / (sigma * (n + a - 1) + a);
    if (n <= a)
        return a * n / (a + sigma / 2 * (n - 1));
    return n >= 2 * a - 1 ? a : a * n / (sigma * (a - 0.5) + n * (1 - sigma / 2));
}

agentclaim_t agent_claim_invade_or_constraints(agent_t parent, uint8_t count, constraints_t constraints[])
{
    agent_t agent = parent ? parent : agent_agent_create();
    if (!agent)
        return NULL;
    /* The agent outlives the attempts. */
    agent->claims++;
    double best_promise = -1;
    int best = -1;
    for (int which = 0; which < count; which++) {
        agentclaim_t claim = agent_claim_invade(agent, constraints[which]);
        if (!claim)
            continue;
        double has = promise(constraints[which], total(claim));
        if (has > best_promise) {
            best_promise = has;
            best = which;
        }
        agent_claim_retreat(claim);
    }
    agentclaim_t claim = best >= 0 ? agent_claim_invade(agent, constraints[best]) : NULL;
    if (--agent->claims == 0)
        mem_free(agent);
    return claim;
}

int agent_claim_reinvade_constraints(agentclaim_t claim, constraints_t constraints)
{
    if (!constraints)
        return -1;
    int changes = fit(claim, constraints);
    if (changes >= 0) {
        claim->constraints = constraints;
        if (constraints->reinvade)
            constraints->reinvade();
    }
    return changes;
}

int agent_claim_reinvade(agentclaim_t claim)
{
    return agent_claim_reinvade_constraints(claim, claim->constraints);
}

void agent_claim_retreat(agentclaim_t claim)
{
    int kept = 0;
    for (int tile = 0; tile < tiles(); tile++) {
        int cores = claim->parts[tile].cores - (claim->initial && tile == get_tile_id());
        if (cores > 0 && !shrink(claim, tile, cores))
            kept = 1;
    }
    if (!kept)
        drop_claim(claim);
}

int agent_claim_get_pecount(agentclaim_t claim)
{
    return total(claim);
}

int agent_claim_get_pecount_type(agentclaim_t claim, res_type_t type)
{
    return type == RISC || type == ALL ? total(claim) : 0;
}

int agent_claim_get_pecount_tile(agentclaim_t claim, tile_id_t tile)
{
    return tile < tiles() ? claim->parts[tile].cores : 0;
}

int agent_claim_get_pecount_tile_type(agentclaim_t claim, tile_id_t tile, res_type_t type)
{
    return type == RISC || type == ALL ? agent_claim_get_pecount_tile(claim, tile) : 0;
}

int agent_claim_get_tilecount(agentclaim_t claim)
{
    int count = 0;
    for (int tile = 0; tile < tiles(); tile++)
        count += claim->parts[tile].cores > 0;
    return count;
}

int agent_claim_get_tileid_iterative(agentclaim_t claim, int place)
{
    for (int tile = 0; tile < tiles(); tile++)
        if (claim->parts[tile].cores > 0 && place-- == 0)
            return tile;
    return NO_TILE;
}

uint32_t agent_claim_get_ucid(agentclaim_t claim)
{
    return claim->ucid;
}

bool agent_claim_isempty(agentclaim_t claim)
{
    return total(claim) == 0;
}

agent_t agent_claim_get_agent(agentclaim_t claim)
{
    return claim->agent;
}

constraints_t agent_claim_get_constr(agentclaim_t claim)
{
    return claim->constraints;
}

void agent_claim_print(agentclaim_t claim)
{
    octo_printf("claim %u of agent '%s': %d cores\n", claim->ucid, claim->agent->name, total(claim));
    for (int tile = 0; tile < tiles(); tile++)
        if (claim->parts[tile].cores)
            octo_printf("  tile %d: %d\n", tile, claim->parts[tile].cores);
}

proxy_claim_t agent_claim_get_proxyclaim_tile_type(agentclaim_t claim, int tile, res_type_t type)
{
    int known = tile >= 0 && tile < tiles() && (type == RISC || type == ALL);
    return known && claim->parts[tile].cores ? claim->parts[tile].proxy : NULL;
}

void set_agent_name(agentclaim_t claim, const char *agent_name)
{
    name_agent(claim->agent, agent_name);
}

int get_agent_name(agentclaim_t claim, char buffer[], size_t size)
{
    const char *name = claim->agent->name;
    size_t length = 0;
    while (name[length])
        length++;
    if (length >= size)
        return -1;
    for (size_t at = 0; at <= length; at++)
        buffer[at] = name[at];
    return (int)length;
}

constraints_t agent_constr_create(void)
{
    constraints_t made = mem_allocate(MEM_TLM_LOCAL, sizeof *made);
    if (made)
        *made = (struct octo_constraints){.least = 1, .most = 1, .shareable = 1, .sticky = 1};
    return made;
}

void agent_constr_delete(constraints_t constraints)
{
    mem_free(constraints);
}

void agent_constr_overwrite(constraints_t target, constraints_t others)
{
    if (others->set & SET_QUANTITY) {
        target->least = others->least;
        target->most = others->most;
        target->least_other = others->least_other;
    }
    if (others->set & SET_PLACE) {
        target->place = others->place;
        target->tile = others->tile;
        target->bitmap = others->bitmap;
    }
    if (others->set & SET_SHAREABLE)
        target->shareable = others->shareable;
    if (others->set & SET_STICKY)
        target->sticky = others->sticky;
    if (others->set & SET_CURVE) {
        target->mean = others->mean;
        target->sigma = others->sigma;
    }
    if (others->set & SET_MALLEABLE) {
        target->malleable = others->malleable;
        target->resize = others->resize;
        target->env = others->env;
    }
    if (others->set & SET_REINVADE)
        target->reinvade = others->reinvade;
    target->set |= others->set;
}

void agent_constr_set_quantity(constraints_t constraints, int least, int most, res_type_t type)
{
    constraints->set |= SET_QUANTITY;
    if (type == RISC || type == ALL) {
        constraints->least = least;
        constraints->most = most;
    } else if (type != none) {
        constraints->least_other = least;
    }
}

void agent_constr_set_tile(constraints_t constraints, tile_id_t tile)
{
    constraints->set |= SET_PLACE;
    constraints->place = ONLY;
    constraints->tile = tile;
}

void agent_constr_set_notontile(constraints_t constraints, tile_id_t tile)
{
    constraints->set |= SET_PLACE;
    constraints->place = NOT;
    constraints->tile = tile;
}

void agent_constr_set_tile_bitmap(constraints_t constraints, uint16_t bitmap)
{
    constraints->set |= SET_PLACE;
    constraints->place = BITMAP;
    constraints->bitmap = bitmap;
}

void agent_constr_set_tile_shareable(constraints_t constraints, uint8_t shareable)
{
    constraints->set |= SET_SHAREABLE;
    constraints->shareable = shareable;
}

void agent_constr_set_stickyclaim(constraints_t constraints, uint8_t sticky)
{
    constraints->set |= SET_STICKY;
    constraints->sticky = sticky;
}

void agent_constr_set_downey_speedup_curve(constraints_t constraints, int a, int sigma)
{
    constraints->set |= SET_CURVE;
    constraints->mean = a;
    constraints->sigma = sigma;
}

int agent_get_downey_sigma(constraints_t constraints)
{
    return constraints->sigma;
}

void agent_constr_set_malleable(constraints_t constraints, uint8_t malleable, resize_handler_t handler, resize_env_t env)
{
    constraints->set |= SET_MALLEABLE;
    constraints->malleable = malleable;
    constraints->resize = handler;
    constraints->env = env;
}

void agent_constr_set_reinvade_handler(constraints_t constraints, reinvade_handler_t handler)
{
    constraints->set |= SET_REINVADE;
    constraints->reinvade = handler;
}

reinvade_handler_t agent_constr_get_reinvade_handler(constraints_t constraints)
{
    return constraints->reinvade;
}
