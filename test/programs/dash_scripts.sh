# dash: the constructs scripts use.
echo "arguments $# $0" | sed 's,/.*/,,'
f() { local v=inner; echo "f: $1 $v"; return 4; }
f one || echo "returned $?"
cat <<E1; cat <<-'E2'
here $((2 + 3)) `echo old` $(echo new)
E1
	literal $x `no`
	E2
(cd /; pwd; exit 5); echo "subshell $?"; x=1; (x=2); echo $x; { x=3; }; echo $x
echo a b c | while read p q; do echo "$p|$q"; done
IFS=:; set -- a:b:c; for i in $1; do echo "<$i>"; done; unset IFS
case abc in a*) echo glob;; *) echo none;; esac
trap 'echo "exit trap $?"' EXIT; trap 'echo usr1' USR1; kill -USR1 $$; trap '' USR2; kill -USR2 $$; trap - USR1
sleep 0.2 & p=$!; wait $p; echo "waited $?"
sh -c 'exit 9' & wait $!; echo "background $?"
sleep 100 & p=$!; kill $p; wait $p 2>/dev/null; echo "killed $?"
yes | head -n 100000 | wc -l
{ echo out; echo err >&2; } 2>&1 | sort
exec 3>file; echo to three >&3; exec 3>&-; cat file; exec 4<file; read line <&4; echo "$line"; exec 4<&-
echo no > /nonexistent/file || echo "redirect $?"
nosuchcommand 2>/dev/null; echo "not found $?"; ./file 2>/dev/null; echo "not executable $?"
set -- 3 1 2; echo "$@" "$#"; shift; echo "$*"
i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; echo $i
for i in 1 2 3 4 5 6 7 8 9 10; do (exit $i) & done; wait; echo all
n=0; for i in $(seq 200); do n=$((n + $(echo $i))); done; echo $n
echo *.none f*; umask 027; : > masked; ls -l masked | cut -c1-10
ulimit -n 64; ulimit -n; read -r z </dev/null || echo "eof $?"
printf '%s|%5d|%-5s|%x\n' str 42 ab 255; test -d / && [ ! -e /nope ] && echo tests
mkfifo p; (echo through > p &) ; cat p; getopts ab: o -b val && echo "$o $OPTARG"
eval 'echo ev$x'; command -v cat >/dev/null && echo found; echo "$(cat <<E
nested $(echo deep)
E
)"
kill -l 15; times >/dev/null; exit 7
# exit: 7
