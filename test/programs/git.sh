# git: init, add, commit, log, branch, merge, diff, clone of a local repository, gc.
# seconds: 120
set -e
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
git init -q -b main r; cd r
for i in $(seq 30); do mkdir -p d$((i % 5)); seq $i 200 > d$((i % 5))/f$i; done
git add .; git commit -q -m first; git log --format='%H %s'
echo change >> d1/f1; git diff --stat; git commit -qam second; git status --short; git rev-parse HEAD
git checkout -q -b side HEAD~1; echo other > new; git add new; git commit -qm side; git checkout -q main; git merge -q -m merged side; git log --oneline --graph | cat
git tag v1; git gc -q; git fsck 2>/dev/null; git count-objects -v | grep -E 'count|packs'
cd ..; git clone -q r c; cd c; git log --format=%s; git ls-files | wc -l; git grep -c 150 | wc -l; git blame -s new | cut -c1-8
echo conflict > d1/f1; git stash -q; git stash list; git stash pop -q; git checkout -q -- .; git archive HEAD | tar t | wc -l; git rm -q new; git commit -qm removed; git push -q origin HEAD:refs/heads/other; git -C ../r branch --list | cat; git worktree add -q ../w v1; ls ../w | wc -l; git bundle create -q b HEAD; git bundle verify -q b && echo bundle; git show HEAD:d2/f2 | head -n 2; git mv d3/f3 moved; git status --short; git describe --tags
