/* The shortest application. */
#include "octo.h"

void main_ilet(claim_t claim)
{
    (void)claim;
    octo_printf("hello from core %u of %u on tile %u of %u\n", get_cpu_id(), get_tile_core_count(), get_tile_id(),
                get_compute_tile_count());
    shutdown(0);
}
