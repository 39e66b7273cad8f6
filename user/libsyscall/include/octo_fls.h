/* Values of an i-let's own, by key: each i-let has one for each key, NULL at first. */
#ifndef OCTO_FLS_H
#define OCTO_FLS_H

#include "octo_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*fls_destructor)(void *value);

/* A key of the calling tile; -1 when all are taken. The destructor, if there is one, is called at an i-let's end for its value if
 * that is not NULL, on the i-let that ends; it may wait. */
int fls_alloc(fls_destructor destructor);
/* Gives a key back: the values of all i-lets are gone, without their destructor. -1 for what is no key. */
int fls_free(int key);
int fls_set(int key, void *value);
void *fls_get(int key);

#ifdef __cplusplus
}
#endif
#endif
