#include "call.h"

uint32_t get_cpu_id(void)
{
    return (uint32_t)(ANSWERS ? octo_record()->cpu : CALL0(GET_CPU_ID));
}

tile_id_t get_tile_id(void)
{
    return (tile_id_t)(ANSWERS ? octo_record()->tile : CALL0(GET_TILE_ID));
}

uint32_t get_tile_core_count(void)
{
    return (uint32_t)(ANSWERS ? octo_record()->tile_cores : CALL0(GET_TILE_CORE_COUNT));
}

uint32_t get_tile_count(void)
{
    return (uint32_t)(ANSWERS ? octo_record()->tiles : CALL0(GET_TILE_COUNT));
}

uint32_t get_compute_tile_count(void)
{
    return (uint32_t)(ANSWERS ? octo_record()->tiles : CALL0(GET_COMPUTE_TILE_COUNT));
}

uint32_t get_compute_tile_ids(tile_id_t *ids, uint32_t most)
{
    return (uint32_t)CALL2(GET_COMPUTE_TILE_IDS, ids, most);
}

tile_id_t get_io_tile_id(void)
{
    return (tile_id_t)CALL0(GET_IO_TILE_ID);
}

int get_tile_id_from_ptr(const void *address)
{
    return (int)CALL1(GET_TILE_ID_FROM_PTR, address);
}

void *get_global_address(void *address)
{
    return (void *)CALL1(GET_GLOBAL_ADDRESS, address);
}

void *get_global_address_for_tile(void *address, tile_id_t tile)
{
    return (void *)CALL2(GET_GLOBAL_ADDRESS_FOR_TILE, address, tile);
}

void *get_local_address(void *address)
{
    return (void *)CALL1(GET_LOCAL_ADDRESS, address);
}
