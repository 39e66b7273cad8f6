/* The library's code begins here; it is a part of each program, in pages of its own. */
    .text
    .balign 4096
    .globl pal_code_begin
pal_code_begin:
    .section .note.GNU-stack, "", @progbits
