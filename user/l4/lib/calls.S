/* The calls: registers from a structure (l4_registers), the interrupt, and back. */
.macro call name, vector
    .globl \name
    .type \name, @function
\name:
    push %ebp
    push %ebx
    push %esi
    push %edi
    mov 20(%esp), %edi
    push %edi
    mov 0(%edi), %eax
    mov 4(%edi), %ecx
    mov 8(%edi), %edx
    mov 12(%edi), %ebx
    mov 16(%edi), %ebp
    mov 20(%edi), %esi
    mov 24(%edi), %edi
    int $\vector
    push %edi
    mov 4(%esp), %edi
    mov %eax, 0(%edi)
    mov %ecx, 4(%edi)
    mov %edx, 8(%edi)
    mov %ebx, 12(%edi)
    mov %ebp, 16(%edi)
    mov %esi, 20(%edi)
    pop %eax
    mov %eax, 24(%edi)
    pop %edi
    pop %edi
    pop %esi
    pop %ebx
    pop %ebp
    ret
    .size \name, . - \name
.endm

    .text
    call l4_raw_ipc, 0x30
    call l4_raw_id_nearest, 0x31
    call l4_raw_fpage_unmap, 0x32
    call l4_raw_thread_switch, 0x33
    call l4_raw_thread_schedule, 0x34
    call l4_raw_lthread_ex_regs, 0x35
    call l4_raw_task_new, 0x36

    .section .note.GNU-stack, "", @progbits
