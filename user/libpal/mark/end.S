/* The library's code ends here. */
    .text
    .balign 4096
    .globl pal_code_end
pal_code_end:
    .section .note.GNU-stack, "", @progbits
