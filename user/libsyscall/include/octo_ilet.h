/* I-lets: they run to their end on the core they begin on and give it up only where they wait for a signal or a future. */
#ifndef OCTO_ILET_H
#define OCTO_ILET_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

void simple_ilet_init(simple_ilet *ilet, ilet_func code, void *param);
void dual_ilet_init(simple_ilet *ilet, dual_ilet_func code, void *first, void *second);
/* With a class of application, a hint for a hardware dispatcher; this kernel keeps it and makes nothing of it. */
void simple_ilet_init_appclass(simple_ilet *ilet, ilet_func code, void *param, unsigned program_application_class);
void dual_ilet_init_appclass(simple_ilet *ilet, dual_ilet_func code, void *first, void *second, unsigned program_application_class);
/* Memory of the running i-let's own, undefined at its start, and its bytes. */
void *get_ilocal_data(void);
size_t get_ilocal_data_size(void);
/* The scheduling domain of an i-let that has not begun, and of the running one (16 bits). */
unsigned get_ilet_sched_dom(const simple_ilet *ilet);
void set_ilet_sched_dom(simple_ilet *ilet, unsigned domain);
unsigned get_cur_ilet_sched_dom(void);
void set_cur_ilet_sched_dom(unsigned domain);

#ifdef __cplusplus
}
#endif
#endif
