/* octo_call(number, a, b, c, d, e, f): the way into the kernel on x86-64. rdi number, rsi a, rdx b, rcx c, r8 d, r9 e, [rsp+8] f.
 * Which entry is in the core's record at %fs:0 (record.h); the kernel returns in rax. Callee-saved registers are kept, vector
 * registers are not: another i-let may run in between. */

        .intel_syntax noprefix

        .set ENTRY, 40
        .set WORDS, 48          /* signal: host process, host thread, signal; jump: address */
        .set FUNCTIONS, 80

        .set GETPID, 39
        .set GETTID, 186
        .set TGKILL, 234

        /* The registers of `syscall`: rax number, rdi rsi rdx r10 r8 r9 arguments. */
        .macro  ARRANGE
        mov     rax, rdi
        mov     rdi, rsi
        mov     rsi, rdx
        mov     rdx, rcx
        mov     r10, r8
        mov     r8, r9
        mov     r9, [rsp + 8]
        .endm

        .text
        .globl  octo_call
        .type   octo_call, @function
octo_call:
        mov     rax, fs:[ENTRY]
        cmp     eax, 1
        je      .Lsignal
        cmp     eax, 2
        je      .Ljump
        cmp     eax, 4
        je      .Lsignal_asking
        cmp     eax, 3
        je      .Linterrupt
        ARRANGE
        syscall
        ret

        /* `int 0x30`, as OctoPOS has it on this machine. */
.Linterrupt:
        ARRANGE
        int     0x30
        ret

        /* A jump to the kernel, which comes back to the address in rcx. Without a dispatcher the function's address stands for
         * the number. */
.Ljump:
        mov     rax, fs:[FUNCTIONS]
        test    rax, rax
        jz      1f
        mov     rdi, [rax + rdi * 8]
1:      ARRANGE
        lea     rcx, 2f[rip]
        jmp     fs:[WORDS]
2:      ret

        /* A signal to oneself, with number, a, b, c in rbx, rbp, r12, r13 and d, e, f where `syscall` has them: the host leaves those
         * alone. Done by the time the host call returns. */
        .macro  SIGNAL_WORDS
        push    rbx
        push    rbp
        push    r12
        push    r13
        mov     rbx, rdi
        mov     rbp, rsi
        mov     r12, rdx
        mov     r13, rcx
        mov     r10, r8
        mov     r8, r9
        mov     r9, [rsp + 40]
        .endm

.Lsignal:
        SIGNAL_WORDS
        mov     rdi, fs:[WORDS]
        mov     rsi, fs:[WORDS + 8]
.Lsend:
        mov     rdx, fs:[WORDS + 16]
        mov     eax, TGKILL
        syscall
        pop     r13
        pop     r12
        pop     rbp
        pop     rbx
        ret

        /* The same, with the host asked for thread and process each time. */
.Lsignal_asking:
        SIGNAL_WORDS
        mov     eax, GETTID
        syscall
        mov     rsi, rax
        mov     eax, GETPID
        syscall
        mov     rdi, rax
        jmp     .Lsend
        .size   octo_call, . - octo_call

        .section .note.GNU-stack, "", @progbits
