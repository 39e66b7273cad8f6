/* Tiles and cores. Addresses are local to a tile; a global one names the tile too. */
#ifndef OCTO_TILE_H
#define OCTO_TILE_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

uint32_t get_cpu_id(void);
tile_id_t get_tile_id(void);
uint32_t get_tile_core_count(void);
/* All tiles, and those that compute. */
uint32_t get_tile_count(void);
uint32_t get_compute_tile_count(void);
/* Writes at most `most` numbers; returns how many. */
uint32_t get_compute_tile_ids(tile_id_t *ids, uint32_t most);
tile_id_t get_io_tile_id(void);
/* The tile of an address; -1 for none. */
int get_tile_id_from_ptr(const void *address);
void *get_global_address(void *address);
void *get_global_address_for_tile(void *address, tile_id_t tile);
void *get_local_address(void *address);

#ifdef __cplusplus
}
#endif
#endif
