#include "call.h"

claim_t claim_construct(void)
{
    return (claim_t)CALL0(CLAIM_CONSTRUCT);
}

int invade_simple(claim_t claim, pe_quantity_t quantity)
{
    return (int)CALL2(INVADE_SIMPLE, claim, quantity);
}

int retreat(claim_t claim, pe_quantity_t quantity)
{
    return (int)CALL2(RETREAT, claim, quantity);
}

int infect(claim_t claim, simple_ilet *team, team_size_t size)
{
    return (int)CALL3(INFECT, claim, team, size);
}

int infect_simple(simple_ilet *ilet)
{
    return (int)CALL1(INFECT_SIMPLE, ilet);
}

claim_t get_claim(void)
{
    return (claim_t)CALL0(GET_CLAIM);
}

pe_quantity_t claim_get_size(void)
{
    return (pe_quantity_t)CALL0(CLAIM_GET_SIZE);
}

void claim_set_local_data(void *data)
{
    CALL1(CLAIM_SET_LOCAL_DATA, data);
}

void *claim_get_local_data(void)
{
    return (void *)CALL0(CLAIM_GET_LOCAL_DATA);
}
