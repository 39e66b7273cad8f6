/* The whole invasive interface. An application defines main_ilet, which begins on core 0 of tile 0 with a claim of that core. Its
 * return ends that i-let; the application ends with shutdown(). */
#ifndef OCTO_H
#define OCTO_H

#include "octo_agent3.h"
#include "octo_claim.h"
#include "octo_dispatch_claim.h"
#include "octo_dma.h"
#include "octo_fls.h"
#include "octo_ilet.h"
#include "octo_memory.h"
#include "octo_misc.h"
#include "octo_proxy_claim.h"
#include "octo_signal.h"
#include "octo_tile.h"

#ifdef __cplusplus
extern "C"
#endif
void main_ilet(claim_t claim);

#endif
