# coreutils, findutils, grep, sed, awk, tar, gzip: files and text.
# seconds: 120
# shell: /bin/bash
set -u
mkdir -p src/a/b src/c; for i in 1 2 3 4 5 6 7 8 9; do echo "file $i" > src/a/f$i; head -c ${i}000 /dev/zero | tr '\0' $i > src/c/g$i; done
ln src/a/f1 src/a/hard; ln -s ../a/f2 src/c/soft; chmod 600 src/a/f3; mkfifo src/pipe; touch -d '2020-02-02 02:02:02' src/a/f4
ls -1 src src/a; ls -l src/a | awk '/^-/ { print $1, $2, $5, $9 }'; ls -li src/a/f1 src/a/hard | awk '{ print $1 }' | uniq | wc -l
stat -c '%n %s %A %F' src/a/f3 src/c/soft src/pipe; date -u -d @0 '+%F %T'; stat -c %y src/a/f4; du -a --apparent-size -b src/c/g9
find src -type f -name 'g*' -size +4k | sort; find src -newer src/a/f4 -type l; find src -perm 600; find src -type f -exec md5sum {} + | sort | tail -n 2
find src -name 'f*' -print0 | xargs -0 -n 4 echo | wc -l; seq 50 | xargs -P 4 -n 5 sh -c 'echo $#' | sort | uniq -c | tr -s ' '
grep -rn 'file [37]' src/a | sort; grep -c . src/a/f1; grep -q nothing src/a/f1; echo "grep $?"; printf 'a1\nb22\n' | grep -oE '[0-9]+'
sed -n '2,3p;$=' <<E
one
two
three
E
sed -i 's/file/FILE/' src/a/f5; cat src/a/f5; sed -e '/x/d' -e 'y/abc/ABC/' <<< 'aXbc' 2>/dev/null || echo aXbc | sed 'y/abc/ABC/'
awk 'BEGIN { for (i = 0; i < 5; i++) s += i * i; printf "%d %.3f %s\n", s, atan2(1, 1) * 4, toupper("awk") }'; seq 10 | awk '{ a[$1 % 3] += $1 } END { print a[0], a[1], a[2] }'
echo 'x y z' | awk '{ print $2 | "cat" }'; awk 'BEGIN { "echo from a command" | getline v; print v; system("exit 3") }'
tar czf t.tgz src; tar tzf t.tgz | sort | wc -l; mkdir out; tar xzf t.tgz -C out; diff -r out/src/a src/a && echo equal; tar cf - src | gzip -9 | gunzip | tar tf - | wc -l
stat -c '%a %s' out/src/a/f3; stat -c %y out/src/a/f4; readlink out/src/c/soft; test -p out/src/pipe && echo fifo
head -c 300000 /dev/zero | tr '\0' 'x' > big; gzip -k big; gunzip -c big.gz | cmp - big && echo round trip; bzip2 -c big 2>/dev/null | head -c 3; echo; xz -c big 2>/dev/null | head -c 6 | od -An -c | tr -s ' '
seq 300000 | awk '{ print ($1 * 7919) % 1000003, $1 }' > unsorted; sort -n unsorted | head -n 3; sort -k2,2nr unsorted | tail -n 2; sort -S 1M -u unsorted | md5sum; sort --parallel=2 unsorted | sort -c && echo sorted
cut -d' ' -f1 unsorted | sort -n | uniq | wc -l; paste -d, <(echo 1) <(echo 2) 2>/dev/null || echo 1,2; join <<E - src/a/f1
file 1
E
split -n 3 big part; cat parta? | cmp - big && echo split; wc unsorted; cksum big; sha1sum big; base64 < src/a/f1 | base64 -d; tac src/a/f1; nl src/a/f1; rev src/a/f1; fold -w 3 src/a/f1; expand src/a/f1 | od -c | head -n 1
dd if=big of=copy bs=4096 skip=1 count=3 conv=notrunc 2>&1 | head -n 2; truncate -s 10000 copy; stat -c %s copy; cp --preserve=all -r src src2; mv -n src2 src3; install -m 750 big inst; stat -c %a inst; comm -12 src/a/f1 src/a/hard
cp --reflink=auto --sparse=always big sparse; cmp sparse big && echo same; rm -r src3; rmdir src 2>/dev/null || echo not empty; rmdir $(mktemp -d XXXXXX); realpath --relative-to=. src/a/../c; basename -s .gz big.gz
env -i X=1 env; printenv HOME | wc -l; nproc | grep -c .; id -un | grep -c .; uname -s; tty; echo "tty $?"; pwd | grep -c /; timeout 1 sleep 0.05; echo $?; nice -n 3 nice; nohup echo hup 2>/dev/null; stdbuf -oL echo buf; seq -s+ 5; factor 360; shuf -i 1-5 | sort; tsort <<E
a b
b c
E
yes abc | head -c 100000 | md5sum; tail -f big --pid=1 -n 0 -s 0.05 & p=$!; sleep 0.2; kill $p; wait $p 2>/dev/null; echo "tail $?"; test -s big -a -r big && echo ok; sync; df . | wc -l; ls /nonexistent; echo "ls $?"; rm -rf src out; ls
