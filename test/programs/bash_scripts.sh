# bash: arrays, process substitution, coproc, job control, traps, here-strings, pipefail.
# shell: /bin/bash
a=(one two "three four"); a+=(five); echo "${#a[@]} ${a[2]} ${a[@]:1:2}"; declare -A m=([x]=1 [y]=2); echo "${m[y]}"
diff <(seq 3) <(seq 4) ; echo "diff $?"; read -r v <<< "here string"; echo "$v"
set -o pipefail; false | true; echo "pipefail $?"; true | false | true; echo "${PIPESTATUS[*]}"; set +o pipefail
coproc C { while read -r l; do echo "<$l>"; done; }; echo hi >&"${C[1]}"; read -r l <&"${C[0]}"; echo "$l"; exec {C[1]}>&-; wait
trap 'echo "int"' INT; kill -INT $$; trap 'echo "child gone"' CHLD; (exit 2) ; sleep 0.01; trap - CHLD
for i in 3 1 2; do (sleep 0.$((i * 2)); echo $i) & done; wait; echo all
bash -c 'sleep 10 & jobs -r; kill %1; wait %1; echo "job $?"'
bash -c 'set -m; sleep 0.3 & kill -STOP %1; sleep 0.1; jobs; kill -CONT %1; wait %1; echo "wait $?"; sleep 0.1 | cat & wait; jobs; (exit 7) & wait $!; echo "exit $?"' 2>&1
wait -n 2>/dev/null; (exit 6) & wait $!; echo "wait $?"
printf -v z '%03d' 7; echo $z; [[ abc =~ ^a(b)c$ ]] && echo "${BASH_REMATCH[1]}"; echo {a..e} {1..3}{x,y}; echo $((2**40)) $(( 17 % 5 ))
shopt -s extglob nullglob
touch a.txt b.txt c.log; echo *.txt !(*.txt); s=hello; echo "${s^^} ${s//l/L} ${s:1:3}"
echo done | { read -r x; echo "$x"; }; mapfile -t lines < <(printf '1\n2\n3\n'); echo "${#lines[@]}"
exec 9<>/dev/null; echo x >&9; exec 9>&-; f() { echo "${FUNCNAME[0]} $*"; }; export -f f; bash -c 'f exported'
{ bash -c 'ulimit -c 0; kill -SEGV $$'; echo "segv $?"; bash -c 'ulimit -c 0; kill -ABRT $$'; echo "abrt $?"; ( kill -9 $BASHPID ); echo "kill $?"; } 2>/dev/null
timeout 0.2 sleep 10; echo "timeout $?"; { timeout -s KILL 0.2 sleep 10; echo "timeout -s KILL $?"; } 2>/dev/null
i=0; for ((k = 0; k < 300; k++)); do i=$((i + $(/bin/echo 1))); done; echo $i
seq 1 100000 | tee >(wc -l > n1) | tail -n 1; sleep 0.3; cat n1
echo "$BASH_SUBSHELL $(echo $BASH_SUBSHELL)"; select=1; let select+=4; echo $select; cat < <(echo substitution)
read -t 0.1 -r nothing < <(sleep 0.5); echo "read -t $(( $? > 128 ))"; bash -n -c 'if' 2>/dev/null; echo "syntax $?"
