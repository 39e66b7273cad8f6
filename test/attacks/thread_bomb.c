/* As many threads as there are to be had, each in a call, all ended at once. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static void *wait_for_ever(void *arg)
{
	pause();
	return 0;
}

static int attack(void)
{
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	pthread_t id;
	int n = 0;
	while (n < part(3000) && pthread_create(&id, &attributes, wait_for_ever, 0) == 0)
		n++;
	return n > 10 ? REFUSED : 0;
}
