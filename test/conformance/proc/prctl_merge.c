/* PR_SET_MEMORY_MERGE. */
/* linux: 6.4 */
#include "t.h"
#include <sys/prctl.h>
#define P(a, b, c, d, e) R(prctl(a, (long)(b), (long)(c), (long)(d), (long)(e)))
enum { SET = 67, GET = 68 };
int main(int argc, char **argv)
{
	(void)argc;
	P(GET, 0, 0, 0, 0);
	P(SET, 1, 1, 0, 0), P(SET, 1, 0, 0, 1), P(GET, 1, 0, 0, 0), P(GET, 0, 0, 0, 1);
	P(GET, 0, 0, 0, 0);
	P(SET, 1, 0, 0, 0);
	P(GET, 0, 0, 0, 0);
	CHILD("child", P(GET, 0, 0, 0, 0); P(SET, 0, 0, 0, 0); P(GET, 0, 0, 0, 0));
	P(GET, 0, 0, 0, 0);
	P(SET, 0, 0, 0, 0);
	P(GET, 0, 0, 0, 0);
	(void)argv;
	return t_done();
}
