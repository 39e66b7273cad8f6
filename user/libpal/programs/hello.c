/* Says hello, and what the library knows of where it runs. */
#include <pal.h>

int main(int argc, char **argv, char **envp)
{
    (void)envp;
    pal_printf("Hello from %s\n", argc > 0 ? argv[0] : "nobody");
    for (int i = 1; i < argc; i++)
        pal_printf("argument %d: %s\n", i, argv[i]);
    pal_printf("pages of %lu bytes, allocated by %lu\n", pal_control.pagesize, pal_control.alloc_align);
    pal_printf("%s, and %s\n", pal_control.manifest_handle ? "with a manifest" : "without a manifest",
           pal_control.parent_process ? "with a parent" : "the first");
    return 0;
}
