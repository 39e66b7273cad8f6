/* munmap of the kernel's range, alone and with everything round it. Linux returns 0 for a range without mappings, and so may
 * this kernel, as long as nothing of its own goes. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static int attack(void)
{
	munmap((void *)KERNEL, 4096);
	munmap((void *)KERNEL, KERNEL_END - KERNEL);
	munmap((void *)(KERNEL - (1ul << 32)), KERNEL_END - KERNEL + (2ul << 32));
	/* Still here, and still served. */
	return getppid() > 0 ? REFUSED : 0;
}
