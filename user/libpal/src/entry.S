/* How a program begins, how a thread does, and how the registers of an event are taken back. */
	.text
	.globl	_start
_start:
	xor	%ebp, %ebp
	mov	%rsp, %rdi
	and	$-16, %rsp
	call	pal_entry
	hlt

/* long pal_clone(void *stack, unsigned *handle, unsigned *alive): the new thread finds its pal_thread on its stack. */
	.globl	pal_clone
pal_clone:
	mov	$3, %eax
	syscall
	test	%rax, %rax
	jz	1f
	ret
1:	pop	%rdi
	xor	%ebp, %ebp
	call	pal_thread_begin
	hlt

/* void pal_return(void *context): the kernel's frame begins a word below the context. */
	.globl	pal_return
pal_return:
	mov	%rdi, %rsp
	.globl	pal_restore
pal_restore:
	mov	$35, %eax
	syscall
	hlt
	.section .note.GNU-stack, "", @progbits
