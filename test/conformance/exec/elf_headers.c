/* Broken ELF headers: each single fault gives the errno or signal it has natively, and the caller lives. */
#include "t.h"
#include <elf.h>
static unsigned char img[1 << 16];
static size_t len;
static Elf64_Ehdr *h = (void *)img;
static Elf64_Phdr *p;
/* xor edi,edi; mov eax,231; syscall */
static const unsigned char code[] = {0x31, 0xff, 0xb8, 0xe7, 0, 0, 0, 0x0f, 5};
static void fresh(void)
{
	memset(img, 0, sizeof img);
	memcpy(h->e_ident, "\177ELF\2\1\1", 7);
	h->e_type = ET_EXEC, h->e_machine = EM_X86_64, h->e_version = 1, h->e_entry = 0x400200, h->e_phoff = 64;
	h->e_ehsize = 64, h->e_phentsize = 56, h->e_phnum = 1;
	p = (void *)(img + 64);
	p[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x400000, .p_filesz = 0x300, .p_memsz = 0x300, .p_align = 0x1000};
	memcpy(img + 0x200, code, sizeof code);
	len = 0x300;
}
static void go(const char *what)
{
	unlink("e");
	int f = must(open("e", O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0755));
	must(write(f, img, len));
	close(f);
	CHILD(what, {
		char *a[] = {"e", 0};
		execve("e", a, a + 1);
		say("%s: %s\n", what, t_errno(errno));
		_exit(50);
	});
	fresh();
}
int main(void)
{
	fresh();
	go("whole");
	len = 0, go("no bytes");
	len = 3, go("3 bytes");
	len = 63, go("63 bytes");
	h->e_ident[0] = 0, go("magic");
	h->e_ident[EI_CLASS] = ELFCLASS32, go("class of 32 bits");
	h->e_ident[EI_CLASS] = 0, go("no class");
	h->e_ident[EI_DATA] = ELFDATA2MSB, go("other byte order");
	h->e_ident[EI_VERSION] = 0, h->e_version = 7, go("other versions");
	h->e_ident[EI_CLASS] = ELFCLASS32, h->e_machine = EM_ARM, go("32-bit arm");
	h->e_machine = EM_AARCH64, go("aarch64");
	h->e_machine = 0, go("no machine");
	h->e_type = ET_REL, go("ET_REL");
	h->e_type = ET_CORE, go("ET_CORE");
	h->e_type = 77, go("type 77");
	h->e_phnum = 0, go("no program headers");
	h->e_phnum = 65535, go("65535 program headers");
	h->e_phentsize = 32, go("phentsize");
	h->e_phoff = 1 << 30, go("phoff beyond the end");
	h->e_phoff = -8ul, go("phoff negative");
	p[0].p_type = PT_NULL, go("nothing to load");
	p[0].p_filesz = 0x400, go("filesz above memsz");
	p[0].p_memsz = 1ul << 60, go("memsz huge");
	p[0].p_vaddr = 0xffffffff80000000, go("vaddr in the kernel");
	p[0].p_vaddr = 1ul << 47, go("vaddr at the top");
	p[0].p_offset = 0x123, go("offset not congruent");
	h->e_entry = 0, go("entry 0");
	h->e_entry = 0xffffffff81000000, go("entry in the kernel");
	h->e_entry = 0x500000, go("entry unmapped");
	p[0].p_flags = PF_R, go("text not executable");
	p[0].p_offset = 1 << 20, go("segment beyond the file");
	h->e_phnum = 2, p[1] = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x280, .p_filesz = 6, .p_memsz = 6}, memcpy(img + 0x280, "/none", 6), go("interpreter missing");
	h->e_phnum = 2, p[1] = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x280, .p_filesz = 5, .p_memsz = 5}, memcpy(img + 0x280, "/none", 6), go("interpreter not ended");
	h->e_phnum = 2, p[1] = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x280, .p_filesz = 0, .p_memsz = 0}, go("interpreter empty");
	h->e_phnum = 2, p[1] = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x280, .p_filesz = 100000, .p_memsz = 1}, go("interpreter too long");
	h->e_phnum = 2, p[1] = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x280, .p_filesz = 12, .p_memsz = 12}, memcpy(img + 0x280, "/etc/passwd", 12), go("interpreter is text");
	h->e_phnum = 2, p[1] = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x280, .p_filesz = 5, .p_memsz = 5}, memcpy(img + 0x280, "/etc", 5), go("interpreter is a directory");
	return t_done();
}
