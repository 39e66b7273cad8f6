//! File trees as archives.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use janua_elf::{Form, Header, PT_INTERP};
use janua_personality_outside::archive::{self, EMPTY, Entry};

/// Takes a file tree that is an archive already.
pub fn take(file: &Path, archive: &mut Vec<u8>) -> Result<(), String> {
    let bytes = fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    check(&bytes).map_err(|why| format!("--ramfs {}: {why}", file.display()))?;
    archive.extend(bytes);
    Ok(())
}

/// Looks at every entry of an archive.
fn check(bytes: &[u8]) -> Result<(), String> {
    const COMPRESSED: [(&[u8], &str); 4] =
        [(b"\x1f\x8b", "zcat"), (b"\xfd7zXZ", "xzcat"), (b"\x28\xb5\x2f\xfd", "zstdcat"), (b"BZh", "bzcat")];
    const REMEDY: &str = "give a directory, or an archive as `find . | cpio -o -H newc` makes it";
    if let Some((_, tool)) = COMPRESSED.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(format!("a compressed archive\n       unpack it first: {tool} FILE > FILE.cpio"));
    }
    let mut at = 0;
    loop {
        match archive::next(bytes, &mut at) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(_) if at == 0 => return Err(format!("not a cpio archive\n       {REMEDY}")),
            Err(_) => {
                return Err(format!("broken or cut off: no whole entry at byte {at} of {}\n       {REMEDY}", bytes.len()));
            }
        }
    }
}

/// Packs what is below `dir`.
pub fn pack(dir: &Path, archive: &mut Vec<u8>) -> Result<(), String> {
    add(dir, Path::new(""), archive)?;
    archive::finish(archive);
    Ok(())
}

fn add(root: &Path, inside: &Path, archive: &mut Vec<u8>) -> Result<(), String> {
    let place = root.join(inside);
    let described = |error: std::io::Error| format!("cannot read {}: {error}", place.display());
    let mut names: Vec<PathBuf> = fs::read_dir(&place)
        .map_err(described)?
        .map(|entry| entry.map(|entry| inside.join(entry.file_name())))
        .collect::<Result<_, _>>()
        .map_err(described)?;
    names.sort();
    for name in names {
        let place = root.join(&name);
        let described = |error: std::io::Error| format!("cannot read {}: {error}", place.display());
        let meta = fs::symlink_metadata(&place).map_err(described)?;
        let kind = meta.file_type();
        let data = if kind.is_symlink() {
            fs::read_link(&place).map_err(described)?.into_os_string().as_bytes().to_vec()
        } else if kind.is_file() {
            fs::read(&place).map_err(described)?
        } else {
            Vec::new()
        };
        if u32::try_from(data.len()).is_err() {
            return Err(format!("{} is too large for an initial file tree (4 GiB)", place.display()));
        }
        if kind.is_socket() {
            // A socket without its owner is of no use to anybody.
            continue;
        }
        archive::push(archive, &entry(&name, &meta, &data));
        if kind.is_dir() {
            add(root, &name, archive)?;
        }
    }
    Ok(())
}

fn entry<'a>(name: &'a Path, meta: &Metadata, data: &'a [u8]) -> Entry<'a> {
    let is_device = meta.file_type().is_char_device() || meta.file_type().is_block_device();
    let rdev = if is_device { meta.rdev() } else { 0 };
    Entry {
        name: name.as_os_str().as_bytes(),
        mode: meta.mode(),
        uid: meta.uid(),
        gid: meta.gid(),
        mtime: u32::try_from(meta.mtime()).unwrap_or(0),
        device: (rustix::fs::major(rdev), rustix::fs::minor(rdev)),
        data,
        ..EMPTY
    }
}

/// Packs the directories that every tree has, and nothing else.
pub fn pack_empty(archive: &mut Vec<u8>) {
    push_directories(archive, &["dev", "proc", "root", "tmp"]);
    archive::finish(archive);
}

fn push_directories(archive: &mut Vec<u8>, names: &[&str]) {
    for name in names {
        archive::push(archive, &Entry { name: name.as_bytes(), mode: 0o40755, links: 2, ..EMPTY });
    }
}

/// Packs what there is without a directory given: this machine's busybox with all its names in /bin, and its libraries if it has any.
pub fn pack_default(archive: &mut Vec<u8>) -> Result<(), String> {
    const REMEDY: &str = "give a file tree (--ramfs DIR), or install busybox: apt-get install busybox-static";
    let (path, busybox) = ["/bin/busybox", "/usr/bin/busybox"]
        .iter()
        .find_map(|path| fs::read(path).ok().map(|bytes| (path, bytes)))
        .ok_or_else(|| format!("there is no busybox here to make a file tree of\n       {REMEDY}"))?;
    let libraries = libraries(Path::new(path), &busybox).map_err(|why| format!("{why}\n       {REMEDY}"))?;
    let list = Command::new(path).arg("--list").output().map_err(|error| format!("{path} --list: {error}"))?;
    push_directories(archive, &["bin", "dev", "etc", "proc", "root", "tmp", "usr", "usr/bin"]);
    archive::push(archive, &Entry { name: b"etc/passwd", mode: 0o100_644, data: b"root:x:0:0:root:/root:/bin/sh\n", ..EMPTY });
    archive::push(archive, &Entry { name: b"etc/group", mode: 0o100_644, data: b"root:x:0:\n", ..EMPTY });
    let hosts = b"127.0.0.1 localhost\n::1 localhost\n";
    archive::push(archive, &Entry { name: b"etc/hosts", mode: 0o100_644, data: hosts, ..EMPTY });
    archive::push(archive, &Entry { name: b"bin/busybox", mode: 0o100_755, data: &busybox, ..EMPTY });
    push_files(archive, &libraries);
    for name in list.stdout.split(|byte| *byte == b'\n').filter(|name| !name.is_empty() && *name != b"busybox") {
        let name = [b"bin/", name].concat();
        archive::push(archive, &Entry { name: &name, mode: 0o120_777, data: b"busybox", ..EMPTY });
    }
    archive::finish(archive);
    Ok(())
}

/// The interpreter of a dynamically linked ELF program, an absolute path.
fn interpreter(file: &[u8]) -> Option<&Path> {
    let header = Header::read(file, Form::X86_64).filter(Header::claims_form)?;
    let segment = header.segments(file)?.find(|segment| segment.kind == PT_INTERP)?;
    let name = segment.data(file)?.split(|byte| *byte == 0).next()?;
    Some(Path::new(OsStr::from_bytes(name)))
}

/// What a program loads, each by the name it is loaded by: its interpreter lists it (`ld.so --list`). Nothing if it is static.
fn libraries(program: &Path, elf: &[u8]) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let Some(interpreter) = interpreter(elf) else { return Ok(Vec::new()) };
    let described = |error: std::io::Error| format!("{} has libraries that cannot be listed: {error}", program.display());
    let list = Command::new(interpreter).arg("--list").arg(program).output().map_err(described)?.stdout;
    let list = String::from_utf8_lossy(&list);
    let mut names: Vec<&Path> = list.split_ascii_whitespace().filter(|word| word.starts_with('/')).map(Path::new).collect();
    names.push(interpreter);
    names.sort();
    names.dedup();
    let read = |name: &Path| {
        fs::read(name).map(|data| (name.to_owned(), data)).map_err(|error| format!("{}: {error}", name.display()))
    };
    names.into_iter().map(read).collect()
}

/// Packs files at their own absolute names, and the directories on the way that a tree of busybox alone has not.
fn push_files(archive: &mut Vec<u8>, files: &[(PathBuf, Vec<u8>)]) {
    let made = ["bin", "usr", "usr/bin"].map(PathBuf::from);
    let mut dirs: Vec<&Path> = files.iter().flat_map(|(name, _)| name.ancestors().skip(1)).collect();
    dirs.sort();
    dirs.dedup();
    let inside = |path: &Path| path.strip_prefix("/").unwrap_or(path).to_owned();
    for dir in dirs.into_iter().map(inside).filter(|dir| !dir.as_os_str().is_empty() && !made.contains(dir)) {
        archive::push(archive, &Entry { name: dir.as_os_str().as_bytes(), mode: 0o40755, links: 2, ..EMPTY });
    }
    for (name, data) in files {
        archive::push(archive, &Entry { name: inside(name).as_os_str().as_bytes(), mode: 0o100_755, data, ..EMPTY });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_looked_at() {
        let mut bytes = Vec::new();
        archive::push(&mut bytes, &Entry { name: b"a", mode: 0o100_644, data: b"12345", ..EMPTY });
        archive::finish(&mut bytes);
        assert_eq!(check(&bytes), Ok(()));
        assert!(check(&bytes[..115]).unwrap_err().contains("not a cpio archive"));
        assert!(check(&bytes[..bytes.len() - 20]).unwrap_err().contains("no whole entry at byte 120 of"));
        assert!(check(b"\x1f\x8b\x08").unwrap_err().contains("zcat"));
        assert!(check(b"hello").unwrap_err().contains("not a cpio archive"));
    }

    #[test]
    fn a_dynamic_program_comes_with_what_it_loads() {
        // This test is dynamically linked.
        let own = std::env::current_exe().unwrap();
        let files = libraries(&own, &fs::read(&own).unwrap()).unwrap();
        let has = |part: &str| files.iter().any(|(name, _)| name.to_string_lossy().contains(part));
        assert!(has("/ld-linux") && has("/libc.so"));
        let mut bytes = Vec::new();
        push_files(&mut bytes, &files);
        archive::finish(&mut bytes);
        let (mut at, mut seen) = (0, Vec::new());
        while let Some(entry) = archive::next(&bytes, &mut at).unwrap() {
            let name = PathBuf::from(OsStr::from_bytes(entry.name));
            let parent = name.parent().unwrap().to_owned();
            assert!(parent.as_os_str().is_empty() || parent == Path::new("usr") || seen.contains(&parent), "{name:?}");
            seen.push(name);
        }
        assert!(seen.iter().any(|name| name.to_string_lossy().contains("libc.so")));
    }

    #[test]
    fn a_tree_is_packed_with_directories_first() {
        let dir = std::env::temp_dir().join(format!("janua-tree-{}", std::process::id()));
        fs::create_dir_all(dir.join("a/b")).unwrap();
        fs::write(dir.join("a/b/c"), "text").unwrap();
        std::os::unix::fs::symlink("a/b", dir.join("l")).unwrap();
        let mut bytes = Vec::new();
        let packed = pack(&dir, &mut bytes);
        fs::remove_dir_all(&dir).unwrap();
        packed.unwrap();
        let mut at = 0;
        let mut names = Vec::new();
        while let Some(entry) = archive::next(&bytes, &mut at).unwrap() {
            names.push((String::from_utf8_lossy(entry.name).into_owned(), entry.data.to_vec()));
        }
        let expected: [(&str, &[u8]); 4] = [("a", b""), ("a/b", b""), ("a/b/c", b"text"), ("l", b"a/b")];
        assert_eq!(names, expected.map(|(name, data)| (name.to_owned(), data.to_vec())));
    }
}
