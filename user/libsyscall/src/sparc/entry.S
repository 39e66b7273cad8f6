/* octo_call(number, a, b, c, d, e, f): the way into the kernel on SPARC v8. %o0 number, %o1 to %o5 a to e, [%sp + 92] f: the places
 * of a C function's arguments are those of the call, so there is nothing to arrange. Which entry is in the core's record at %g7
 * (record.h); the kernel returns in %o0. As behind any call, %g1, %y, the condition codes and the floating-point registers
 * are not kept. */

        .set    ENTRY, 20
        .set    WORDS, 24       /* jump: address */
        .set    FUNCTIONS, 40
        .set    JUMP, 2
        /* The core's page, which only an application without protection may read: first argument of the kernel's functions. */
        .set    THREAD, -4096 + 4

        .text
        .globl  octo_call
        .type   octo_call, @function
octo_call:
        ld      [%g7 + ENTRY], %g1
        cmp     %g1, JUMP
        be      .Ljump
        nop
.Ltrap:
        ta      0x10
        retl
        nop

        /* Without protection: by the function's address, or by the dispatcher. */
.Ljump:
        ld      [%g7 + FUNCTIONS], %g1
        tst     %g1
        be      .Ldispatch
        sll     %o0, 2, %o0
        ld      [%g1 + %o0], %g1
        tst     %g1
        /* A call that may wait has no such function. */
        be      .Ltrap
        srl     %o0, 2, %o0
        jmp     %g1
        ld      [%g0 + THREAD], %o0
.Ldispatch:
        ld      [%g7 + WORDS], %g1
        jmp     %g1
        srl     %o0, 2, %o0
        .size   octo_call, . - octo_call

        .section .note.GNU-stack, "", @progbits
