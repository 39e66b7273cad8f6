/* The first instructions of the first tasks: ebx is the loader's structure, ecx the kernel info page. */
    .text
    .globl l4_start
l4_start:
    lea first_stack_end, %esp
    xor %ebp, %ebp
    push %ecx
    push %ebx
    call main
    push %eax
    call l4_end

    .bss
    .balign 4096
first_stack:
    .skip 16384
first_stack_end:

    .section .note.GNU-stack, "", @progbits
