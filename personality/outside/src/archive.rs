//! Archives of the cpio format "newc" (SVR4 portable format without checksums, cpio(5)), and the module a boot loader brings: one
//! archive that holds nothing but the configuration, and behind it one that holds the file tree.

use alloc::vec::Vec;

const MAGIC: &[u8] = b"070701";
/// Bytes of an entry's header.
pub const HEADER: usize = 110;
const TRAILER: &[u8] = b"TRAILER!!!";
/// The name of the configuration in the first archive.
const CONFIG: &[u8] = b"janua/config";

/// One file of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Without a leading slash.
    pub name: &'a [u8],
    /// Names of the same file carry the same number when `links` is more than one; the last of them carries its bytes.
    pub ino: u32,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub links: u32,
    /// Seconds since 1970.
    pub mtime: u32,
    /// Of a device: major and minor number.
    pub device: (u32, u32),
    /// What is in a file; where a symbolic link leads.
    pub data: &'a [u8],
}

/// The archive is cut off, or is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// An entry's header.
pub struct Head {
    /// Without name and data.
    pub entry: Entry<'static>,
    /// Bytes of the name, its NUL among them, which follows the header at once; of the data, which follows that.
    pub name: usize,
    pub data: usize,
}

/// Longest name of an entry, with its NUL.
const NAME_MOST: usize = 4096;

impl Head {
    /// Reads a header: the first [`HEADER`] bytes.
    pub fn of(bytes: &[u8]) -> Result<Head, Broken> {
        let header = bytes.get(..HEADER).filter(|header| header.starts_with(MAGIC)).ok_or(Broken)?;
        let field = |index: usize| -> Result<u32, Broken> {
            let mut value = 0;
            // Digits and nothing else: a parser of numbers takes a sign, too, which no other reader of archives does.
            for &digit in &header[6 + index * 8..14 + index * 8] {
                value = value << 4 | char::from(digit).to_digit(16).ok_or(Broken)?;
            }
            Ok(value)
        };
        let (name, data) = (field(11)? as usize, field(6)? as usize);
        if !(1..=NAME_MOST).contains(&name) {
            return Err(Broken);
        }
        let entry = Entry {
            ino: field(0)?,
            mode: field(1)?,
            uid: field(2)?,
            gid: field(3)?,
            links: field(4)?,
            mtime: field(5)?,
            device: (field(9)?, field(10)?),
            ..EMPTY
        };
        Ok(Head { entry, name, data })
    }

    /// Where data and next header begin, of a header at `at`; `None` beyond all archives.
    pub fn places(&self, at: usize) -> Option<(usize, usize)> {
        let data = at.checked_add(HEADER + self.name)?.checked_next_multiple_of(4)?;
        Some((data, data.checked_add(self.data)?.checked_next_multiple_of(4)?))
    }

    /// The name in the `self.name` bytes behind the header; `None` for the archive's end.
    pub fn name<'a>(&self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Broken> {
        let name = bytes.strip_suffix(b"\0").ok_or(Broken)?;
        Ok((name != TRAILER).then(|| name.strip_prefix(b"./").unwrap_or(name)))
    }
}

/// Takes one entry from `bytes` at `*at`, and moves on; `None` at the trailer.
pub fn next<'a>(bytes: &'a [u8], at: &mut usize) -> Result<Option<Entry<'a>>, Broken> {
    let head = Head::of(bytes.get(*at..).ok_or(Broken)?)?;
    let name = bytes.get(*at + HEADER..*at + HEADER + head.name).ok_or(Broken)?;
    let name = head.name(name)?;
    let (start, end) = head.places(*at).ok_or(Broken)?;
    let data = bytes.get(start..start + head.data).ok_or(Broken)?;
    *at = end;
    Ok(name.map(|name| Entry { name, data, ..head.entry }))
}

/// Adds an entry to an archive. ENAMETOOLONG and the like cannot happen: sizes over 4 GiB are the caller's to refuse.
pub fn push(archive: &mut Vec<u8>, entry: &Entry<'_>) {
    let fields = [
        entry.ino,
        entry.mode,
        entry.uid,
        entry.gid,
        entry.links,
        entry.mtime,
        entry.data.len() as u32,
        0,
        0,
        entry.device.0,
        entry.device.1,
        entry.name.len() as u32 + 1,
        0,
    ];
    archive.extend_from_slice(MAGIC);
    for field in fields {
        archive.extend_from_slice(alloc::format!("{field:08x}").as_bytes());
    }
    archive.extend_from_slice(entry.name);
    archive.push(0);
    align(archive);
    archive.extend_from_slice(entry.data);
    align(archive);
}

/// Ends an archive.
pub fn finish(archive: &mut Vec<u8>) {
    push(archive, &Entry { name: TRAILER, links: 1, ..EMPTY });
}

/// An entry with nothing in it.
pub const EMPTY: Entry<'static> =
    Entry { name: b"", ino: 0, mode: 0, uid: 0, gid: 0, links: 1, mtime: 0, device: (0, 0), data: b"" };

fn align(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

/// The start of a boot loader's module: the archive of the configuration. The file tree's archive follows.
pub fn module(config: &[u8]) -> Vec<u8> {
    module_of_tiles(&[config])
}

/// The same for a machine of several tiles, each with a configuration of its own; the file tree is the same for all.
pub fn module_of_tiles(configs: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut module = Vec::new();
    for config in configs {
        push(&mut module, &Entry { name: CONFIG, mode: 0o100_400, data: config.as_ref(), ..EMPTY });
    }
    finish(&mut module);
    module
}

/// The configuration and the file tree's archive in a boot loader's module. `None` when it does not begin as [`module`] makes it.
pub fn split(module: &[u8]) -> Option<(&[u8], &[u8])> {
    split_for(module, 0)
}

/// The same for a tile. `None` also when there is no configuration for it.
pub fn split_for(module: &[u8], tile: usize) -> Option<(&[u8], &[u8])> {
    let (mut at, mut found) = (0, None);
    for number in 0.. {
        match next(module, &mut at).ok()? {
            Some(config) if config.name == CONFIG => found = found.or((number == tile).then_some(config.data)),
            Some(_) => return None,
            None => break,
        }
    }
    Some((found?, module.get(at..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_apart_as_it_was_made() {
        let mut all = module(b"hello");
        push(&mut all, &Entry { name: b"etc", mode: 0o40755, links: 2, ..EMPTY });
        push(&mut all, &Entry { name: b"etc/x", mode: 0o100_644, uid: 7, mtime: 9, data: b"12345", ..EMPTY });
        finish(&mut all);
        let (config, tree) = split(&all).unwrap();
        assert_eq!(config, b"hello");
        let mut at = 0;
        assert_eq!(next(tree, &mut at).unwrap().unwrap().name, b"etc");
        let file = next(tree, &mut at).unwrap().unwrap();
        assert_eq!((file.name, file.data, file.uid, file.mtime), (&b"etc/x"[..], &b"12345"[..], 7, 9));
        assert_eq!(next(tree, &mut at), Ok(None));
    }

    #[test]
    fn each_tile_finds_its_configuration() {
        let mut all = module_of_tiles(&[b"zero", b"one!"]);
        finish(&mut all);
        let tree = split(&all).unwrap().1;
        assert_eq!(next(tree, &mut 0), Ok(None));
        assert_eq!(split_for(&all, 0), Some((&b"zero"[..], tree)));
        assert_eq!(split_for(&all, 1), Some((&b"one!"[..], tree)));
        assert_eq!(split_for(&all, 2), None);
        let mut other = Vec::new();
        push(&mut other, &Entry { name: CONFIG, ..EMPTY });
        push(&mut other, &Entry { name: b"etc/x", ..EMPTY });
        finish(&mut other);
        assert_eq!(split(&other), None);
    }

    #[test]
    fn a_field_is_digits_only() {
        let mut all = Vec::new();
        push(&mut all, &Entry { name: b"x", uid: 0xab, ..EMPTY });
        let uid = 6 + 2 * 8;
        assert_eq!(&all[uid..uid + 8], b"000000ab");
        all[uid..uid + 8].copy_from_slice(b"000000AB");
        assert_eq!(next(&all, &mut 0).unwrap().unwrap().uid, 0xab);
        for wrong in [b"+00000ab", b"-0000000", b"0x0000ab", b" 00000ab", b"000000a\0"] {
            all[uid..uid + 8].copy_from_slice(wrong);
            assert_eq!(next(&all, &mut 0), Err(Broken), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let all = module(b"hello");
        for len in 0..all.len() {
            assert_eq!(split(&all[..len]), None, "{len} bytes");
        }
        assert_eq!(split(b"070702"), None);
        let mut at = 0;
        assert_eq!(next(&[b'0'; 200], &mut at), Err(Broken));
    }
}
