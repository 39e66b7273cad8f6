# A shared library whose text is changed by the dynamic linker (text relocations), opened by dlopen; and functions of the
# library called back through a closure that ctypes makes.
cat > lib.c <<'END'
static int counter;
int *where = &counter;
int add(int n) { counter += n; return counter; }
int apply(int (*f)(int), int n) { return f(n) + add(1); }
END
cat > main.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	void *h = dlopen("./lib.so", RTLD_NOW);
	if (!h) {
		puts(dlerror());
		return 1;
	}
	int (*add)(int) = dlsym(h, "add");
	printf("%d %d\n", add(3), add(4));
	return dlclose(h);
}
END
gcc -O1 -mcmodel=large -fno-pic -fno-plt -shared -Wl,-z,notext -o lib.so lib.c 2>/dev/null || echo no library
readelf -d lib.so | grep -c TEXTREL
gcc -o main main.c -ldl && ./main
python3 - <<'END'
import ctypes
lib = ctypes.CDLL("./lib.so")
make = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
twice = make(lambda n: 2 * n)
print([lib.apply(twice, n) for n in range(5)])
END
