/* What the wrappers are made of. */
#ifndef OCTO_CALL_H
#define OCTO_CALL_H

#include "numbers.h"
#include "octo.h"
#include "record.h"

#define WORD(x) ((octo_word)(x))
#define CALL0(n) octo_call(CALL_##n, 0, 0, 0, 0, 0, 0)
#define CALL1(n, a) octo_call(CALL_##n, WORD(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b) octo_call(CALL_##n, WORD(a), WORD(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c) octo_call(CALL_##n, WORD(a), WORD(b), WORD(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) octo_call(CALL_##n, WORD(a), WORD(b), WORD(c), WORD(d), 0, 0)
#define CALL5(n, a, b, c, d, e) octo_call(CALL_##n, WORD(a), WORD(b), WORD(c), WORD(d), WORD(e), 0)
#define CALL6(n, a, b, c, d, e, f) octo_call(CALL_##n, WORD(a), WORD(b), WORD(c), WORD(d), WORD(e), WORD(f))

/* Whether the library handles calls itself that need no privilege. */
#define ANSWERS (octo_record()->answers)

#endif
