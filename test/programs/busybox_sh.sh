# busybox: its shell and applets, in one static program.
exec busybox sh -c '
set -e
b=busybox
echo "arith $((6 * 7)) $((1 << 10))"
x=abc; echo "${x#a} ${x%c} ${#x} ${y:-default}"
for i in 1 2 3; do $b echo "line $i"; done | $b sort -r | $b head -n 2
$b seq 1 1000 | $b awk "{ s += \$1 } END { print s }"
$b printf "%s\n" pear apple fig | $b sort | $b tr a-z A-Z
$b mkdir -p d/e/f; $b touch d/a d/e/b d/e/f/c; $b find d | $b sort
$b cp -r d copy; $b mv copy/a copy/z; $b ls -R copy
$b ln -s a d/link; $b readlink d/link; $b test -L d/link && echo is a link
$b tar cf t.tar d; $b tar tf t.tar | $b sort; $b gzip t.tar; $b gunzip -c t.tar.gz | $b tar xf - -O d/a | $b wc -c
$b dd if=/dev/zero of=zeros bs=1024 count=100 2>/dev/null; $b wc -c < zeros; $b md5sum zeros; $b sha256sum zeros
$b echo hello | $b sed "s/l/L/g"; $b echo "a:b:c" | $b cut -d: -f2
$b printf "one\ntwo\nthree\n" > words; $b grep -n t words; $b grep -c o words; $b tac words 2>/dev/null || true
$b diff words /dev/null > /dev/null || echo "differ $?"
$b chmod 741 words; $b stat -c "%a %s %F" words
$b cat words | $b xargs -n 1 $b echo item
$b od -c words | $b head -n 2; $b expr 3 + 4; $b basename /a/b/c.txt .txt; $b dirname /a/b/c
$b env -i A=1 $b env; $b id -u; $b true && ! $b false && echo logic
(exit 3) || echo "status $?"
$b sh -c "kill -TERM \$\$" || echo "killed $?"
$b yes | $b head -n 3; $b sleep 0.05; $b usleep 1000
$b ps | $b sed -n 1p | $b grep -c PID
$b cmp words words && echo same; $b uniq -c <<END | $b tr -s " "
a
a
b
END
$b vi --help 2>&1 | $b head -n 1 | $b cut -c1-7
$b rm -rf d copy; $b ls'
