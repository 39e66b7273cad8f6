//! What the host grants of its files, and what other users of it may have planted.

use super::{Sandbox, clean, text};
use crate::build;
use crate::suite::{attacks, compare};
use crate::workspace;

/// A shell script that has `run` (the beginning of a `janua run`), `$J`, the command, and `other`, which runs a command as another user than root.
/// It prints the same lines that it would if there were something to be seen, with `as_root` 0, where the caller is not root.
fn script(s: &Sandbox, wrap: &str, body: &str) -> Vec<String> {
    let run = s.line(&[], &[]).join("' '");
    let run = run.trim_end_matches("' '--");
    let head = format!(
        "J='{}'; run() {{ '{run}' \"$@\"; }}; root() {{ [ \"$(id -u)\" = 0 ]; }}\n\
         other() {{ setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"; }}\n{body}",
        build::janua().display()
    );
    vec!["/bin/sh".into(), "-c".into(), wrap.into(), "sh".into(), head]
}

/// Runs a script in a mount name space of its own, as root there.
const MOUNTS: &str =
    "for how in -m -rm; do unshare $how true 2>/dev/null || continue; exec unshare $how sh -c \"$1\"; done; exit 90";
const PLAIN: &str = "eval \"$1\"";

fn said(s: &Sandbox, wrap: &str, body: &str) -> Result<String, String> {
    let outcome = clean(s.start(script(s, wrap, body))?.wait()?)?;
    if outcome.code == 0 { Ok(text(&outcome)) } else { Err(format!("exit code {}\n{}", outcome.code, text(&outcome))) }
}

/// Where the host is mounted to run nothing, nothing runs inside: what is there, what is made there, below the overlay and below a writable bind.
pub fn no_exec(s: &Sandbox) -> Result<(), String> {
    let body = r#"
mkdir nx && mount -t tmpfs -o noexec none nx && cp /bin/echo nx/echo && cp /bin/true . && mkdir -p nx/d || exit 91
printf '#!/bin/sh\necho ran\n' >nx/script; chmod 755 nx/script
cat >try.py <<'END'
import ctypes, errno, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def name(failed):
    return errno.errorcode[ctypes.get_errno()] if failed else 'done'
for file in sys.argv[1:]:
    fd = os.open(file, os.O_RDONLY)
    at = libc.mmap(None, 4096, 5, 2, fd, 0)
    print(file, 'mmap', name(at == ctypes.c_void_p(-1).value))
    at = libc.mmap(None, 4096, 1, 2, fd, 0)
    print(file, 'mprotect', name(libc.mprotect(at, 4096, 5)))
    print(file, 'statvfs', bool(os.statvfs(file).f_flag & os.ST_NOEXEC))
END
cat >try.sh <<'END'
cp /bin/echo nx/new; cp /bin/echo nx/d/new
for file in nx/echo nx/script nx/new nx/d/new true; do
    test -x $file; echo $file access $?
    ./$file ran 2>/dev/null; echo $file exec $?
done
sh nx/script
/lib64/ld-linux-x86-64.so.2 nx/echo ran >/dev/null 2>&1; echo loader $?
/usr/bin/python3 try.py nx/echo nx/new true
rm -r nx/new nx/d/new
END
{ sh try.sh; grep -c ' [^ ]*/nx [^ ]* [^ ]*noexec' /proc/mounts; } >native
run -- sh try.sh >overlay; cmp overlay native >&2 || { diff overlay native; ok=no; }
{ run --bind .::rw -- sh try.sh; run --bind nx::rw -- grep -c ' [^ ]*/nx [^ ]* [^ ]*noexec' /proc/mounts; } >bind
"#;
    // Only a bind of its own is a mount inside.
    let body = body.replace("run -- sh try.sh >overlay", "{ run -- sh try.sh; echo 1; } >overlay")
        + "cmp bind native >&2 || { diff bind native; ok=no; }\n\
           grep -q 'nx/echo exec 126' native && grep -q 'true exec 0' native && grep -q 'nx/echo mmap EPERM' native || ok=what\n\
           umount nx; echo ${ok-same}\n";
    match said(s, MOUNTS, &body)?.as_str() {
        "same\n" => Ok(()),
        other => Err(other.to_owned()),
    }
}

/// Of a file that an ordinary user may not open, `ls` asks for attributes as on the host, and says nothing.
pub fn unreadable(s: &Sandbox) -> Result<(), String> {
    let body = r#"
export XDG_RUNTIME_DIR=/nonexistent
cat >try.py <<'END'
import errno, os
for path in ['/etc/shadow', 'link']:
    for name in ['security.selinux', 'security.none', 'user.none']:
        try: print(path, name, len(os.getxattr(path, name, follow_symlinks=False)))
        except OSError as error: print(path, name, errno.errorcode[error.errno])
END
chmod 755 .; chmod 644 try.py; ln -s try.py link
if root; then as=other; else as=; fi
try='ls -l /etc/shadow 2>&1; /usr/bin/python3 try.py'
$as sh -c "$try" >native
"#;
    let line = s.line(&[], &["sh", "-c"]).iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let body = format!("{body}$as {line} \"$try\" >inside\ncmp native inside >&2 && echo same || cat native inside\n");
    match said(s, PLAIN, &body)?.as_str() {
        "same\n" => Ok(()),
        other => Err(other.to_owned()),
    }
}

/// Extended attributes are the host's: of a name just looked at and of one that has been replaced, of a link itself, of a directory that is in use,
/// of a file without a name.
pub fn attributes(s: &Sandbox) -> Result<(), String> {
    let body = r#"
cat >try.py <<'END'
import errno, os
def ask(path, name, follow=False):
    try: print(path, name, os.getxattr(path, name, follow_symlinks=follow))
    except OSError as error: print(path, name, errno.errorcode[error.errno])
names = ['user.colour', 'security.mark', 'user.none', 'bogus', 'user.' + 'x' * 251]
for path in ['file', 'link', 'dir', '.', 'dir/..', 'none', 'file/x']:
    # What a name that is too long gets where there is no file depends on the host's version.
    for name in names[:-1] if path in ('none', 'file/x') else names:
        ask(path, name); ask(path, name, True)
held = os.open('other', os.O_PATH)
os.lstat('other'); ask('other', 'user.colour')
os.rename('file', 'other'); os.lstat('other'); ask('other', 'user.colour')
ask('/proc/self/fd/%d' % held, 'user.colour', True)
os.mkdir('dir/new'); os.chdir('dir'); ask('.', 'user.colour'); ask('new', 'user.colour')
os.setxattr('new', 'user.colour', b'of a new one'); ask('new', 'user.colour')
END
mkdir dir; echo >file; echo >other; ln -s file link
mark() { /usr/bin/python3 -c 'import os, sys; os.setxattr(sys.argv[1], sys.argv[2], sys.argv[3].encode(), follow_symlinks=False)' "$@" 2>/dev/null; }
mark file user.colour blue || { echo same; exit; }; mark other user.colour red; mark dir user.colour green; mark dir security.mark d; mark link security.mark l
mkdir a b c; for to in a b c; do cp -a file other link dir try.py $to/; done
(cd a; /usr/bin/python3 try.py) >native 2>&1
(cd b; run --bind .::rw -- /usr/bin/python3 try.py) >bind 2>&1
(cd c; run -- /usr/bin/python3 try.py) >overlay 2>&1
cmp native bind >&2 && cmp native overlay >&2 && echo same || { diff native bind; diff native overlay; }
"#;
    match said(s, PLAIN, body)?.as_str() {
        "same\n" => Ok(()),
        other => Err(other.to_owned()),
    }
}

/// What there is room for in files in memory is what `--disk` leaves, wherever somebody asks.
pub fn room(s: &Sandbox) -> Result<(), String> {
    let body = r#"
cat >ask.sh <<'END'
at_most() { set -- $1 $(stat -f -c '%S %a' $2); echo $(($2 * $3 <= $1 && $3 > 0)); }
for place in / /tmp /dev/shm; do at_most 16777216 $place; done
set -- $(stat -f -c '%S %b' /dev/shm); echo $(($1 * $2 <= 16777216))
head -c 6000000 /dev/zero >/dev/shm/x; head -c 6000000 /dev/zero >/tmp/y
set -- $(stat -f -c '%S %a' /); echo $(($1 * $2 < 5000000))
rm /dev/shm/x; set -- $(stat -f -c '%S %a' /); echo $(($1 * $2 > 10000000))
END
run --disk 16M -- sh ask.sh
"#;
    match said(s, PLAIN, body)?.as_str() {
        "1\n1\n1\n1\n1\n1\n" => Ok(()),
        other => Err(other.to_owned()),
    }
}

/// Root that has been given another user's XDG_RUNTIME_DIR follows no link that this one planted, and hands nothing to who listens there.
pub fn planted(s: &Sandbox) -> Result<(), String> {
    let body = r#"
if ! root; then echo fine; exit; fi
chmod 755 .; mkdir rt; chown 65534 rt; other mkdir -m 700 rt/janua
echo mine >victim; chmod 600 victim
name=planted$$
for kind in end.new end log log.1; do other ln -s "$PWD/victim" rt/janua/.$name.$kind; done
export XDG_RUNTIME_DIR="$PWD/rt"
run --name $name --detach -- true >/dev/null; $J wait $name 2>/dev/null; $J logs $name >/dev/null 2>&1
cat victim
cat >listen.py <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1]); s.listen(); s.settimeout(5)
open(sys.argv[2], 'w')
try: s.accept(); print('reached')
except OSError: print('nobody came')
END
chmod 666 listen.py; mkdir -m 777 said
other /usr/bin/python3 listen.py rt/janua/$name said/ready >said/$$ & listener=$!
for i in $(seq 100); do test -e said/ready && break; sleep 0.1; done
$J exec $name -- true 2>/dev/null; echo exec $?; $J kill $name 2>/dev/null; echo kill $?
wait $listener; cat said/$$
# Root is found by root, at its own place.
run --name $name --detach -- sleep 100 >/dev/null; $J list -q | grep -c $name; $J kill $name
# One's own directory may be reached by a link, and is never one itself.
mkdir own; mkdir own/real; ln -s real own/janua; export XDG_RUNTIME_DIR="$PWD/own"
chmod 700 own/real; $J list 2>/dev/null; echo link $?
rm -f /run/janua/.$name.* /tmp/janua-0/.$name.*
"#;
    let said = said(s, PLAIN, body)?;
    let want = "mine\nexec 125\nkill 125\nnobody came\n1\nlink 125\n";
    if said == want || said == "fine\n" { Ok(()) } else { Err(format!("it says {said:?}, not {want:?}")) }
}

/// A user changes the owner of a link of his own in a writable bind while its name is exchanged with that of root's file: that one stays root's.
pub fn link_owner(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/link_owner");
    attacks::build(&workspace::root().join("test/sandbox/link_owner.c"), &program, &[])?;
    let body = format!(
        r#"
if ! root; then echo "root's"; exit; fi
chmod 755 .; mkdir own
run --bind "$PWD/own:/own:rw" -- {} /own
"#,
        program.display()
    );
    match said(s, PLAIN, &body)?.as_str() {
        "root's\n" => Ok(()),
        other => Err(other.to_owned()),
    }
}
