# gcc and make: compile, link, run, in parallel.
# seconds: 180
set -e
mkdir p; cd p
for i in 1 2 3 4 5 6; do printf 'int f%d(int x) { return x * %d; }\n' $i $i > f$i.c; done
cat > main.c <<E
#include <math.h>
#include <pthread.h>
#include <stdio.h>
$(for i in 1 2 3 4 5 6; do echo "int f$i(int);"; done)
static void *th(void *a) { *(double *)a = sqrt(2); return 0; }
int main(int argc, char **argv) { double d = 0; pthread_t t; pthread_create(&t, 0, th, &d); pthread_join(t, 0); printf("%d %.6f %d\n", f1(1) + f2(1) + f3(1) + f4(1) + f5(1) + f6(1), d, argc); return argc; }
E
printf 'OBJ = main.o f1.o f2.o f3.o f4.o f5.o f6.o\nprog: $(OBJ)\n\t@gcc -o $@ $(OBJ) -lm -pthread\n%%.o: %%.c\n\t@gcc -O1 -c -o $@ $<\nclean:\n\t@rm -f prog $(OBJ)\nfail:\n\t@exit 3\n' > Makefile
make -j2 --no-print-directory; ls *.o | wc -l; ./prog a b || echo "code $?"
make -j2 --no-print-directory; touch f3.c; make -n | grep -c gcc; make fail 2>/dev/null || echo "make $?"; make clean; ls
gcc -O2 -static -o s main.c f?.c -lm -pthread; ./s || echo "static $?"
printf 'int main(void) { return undefined_thing; }\n' > bad.c; gcc -c bad.c 2>&1 | grep -c "undeclared"; gcc -S -o - f1.c | grep -c imul || true
printf '#include <iostream>\n#include <stdexcept>\n#include <vector>\nint main() { std::vector<int> v{3, 1, 2}; try { v.at(9); } catch (std::out_of_range &) { std::cout << "caught " << v.size() << std::endl; } }\n' > x.cc; g++ -o x x.cc && ./x
gcc -shared -fPIC -o libf.so f1.c f2.c; printf '#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { void *h = dlopen("./libf.so", RTLD_NOW); int (*f)(int) = (int (*)(int))dlsym(h, "f2"); printf("dl %%d\\n", f(21)); return 0; }\n' > dl.c; gcc -o dl dl.c; ./dl; ar rcs libf.a f1.o 2>/dev/null || { gcc -c f1.c; ar rcs libf.a f1.o; }; ar t libf.a; strip s; ./s || echo "stripped $?"; nm libf.so | grep -c ' T f'
