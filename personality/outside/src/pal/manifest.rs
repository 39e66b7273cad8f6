//! Manifests: what a picoprocess runs, and which files and addresses it may use.
//!
//! A text of lines `key = value`, with comments behind `#`; a first line `#!` names who interprets it. A key that is not known is refused, so that a
//! rule with a slip in it is not one that never applies.

mod net;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub use net::{Addresses, NetRule, address};

/// Longest manifest, bytes, and most rules of a kind in it.
pub const MOST: usize = 64 << 10;
const MOST_RULES: usize = 256;

/// What is wrong with a manifest, for a person: `line 3: ...`.
pub type Fault = String;

/// A file system of the library OS, and what of the host it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// `root`, or the name behind `other.`.
    pub name: String,
    /// chroot, proc or dev.
    pub kind: String,
    /// Where the library OS has it; of the root `/`.
    pub path: String,
    /// The path of the URI, without its scheme; empty for kinds that show nothing of the host.
    pub shows: String,
}

/// Where the library's own reports go (`loader.debug_type`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Debug {
    #[default]
    None,
    /// To standard error.
    Inline,
    /// To the file with this path.
    File(String),
}

/// A manifest as a program is run by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The program's path.
    pub exec: Option<String>,
    pub execname: Option<String>,
    /// `NAME=value`.
    pub env: Vec<String>,
    pub debug: Debug,
    pub mounts: Vec<Mount>,
    pub start_dir: Option<String>,
    pub net: Vec<NetRule>,
    /// Ports of the loopback are this much higher outside.
    pub rebase: u16,
    /// `sys.stack.size`, bytes.
    pub stack: Option<u64>,
    debug_type: Option<String>,
    debug_file: Option<String>,
}

impl Manifest {
    /// Reads a text.
    pub fn parse(text: &[u8]) -> Result<Manifest, Fault> {
        if text.len() > MOST {
            return Err(format!("it has {} bytes, and {MOST} are the most", text.len()));
        }
        let text = core::str::from_utf8(text).map_err(|_| "it is no text".to_owned())?;
        let mut manifest = Manifest::default();
        let mut seen: Vec<&str> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let failed = |why: String| format!("line {}: {why}", at + 1);
            let (key, value) = line.split_once('=').ok_or_else(|| failed(format!("`{line}` is not key = value")))?;
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) {
                return Err(failed(format!("`{key}` is there twice")));
            }
            seen.push(key);
            manifest.set(key, value).map_err(failed)?;
        }
        manifest.complete()?;
        Ok(manifest)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Fault> {
        match key {
            "loader.exec" => self.exec = Some(file(key, value)?),
            "loader.execname" => self.execname = Some(value.to_owned()),
            "loader.preload" => {
                return Err("`loader.preload`: programs are linked with their library here, and none is loaded".to_owned());
            }
            "loader.daemonize" => {
                return Err("`loader.daemonize`: the command has --detach".to_owned());
            }
            "loader.debug_type" => self.debug_type = Some(one_of(key, value, &["none", "inline", "file"])?),
            "loader.debug_file" => self.debug_file = Some(file(key, value)?),
            // The library OS reads these by itself.
            "loader.syscall_symbol" => {}
            "sys.ask_for_checkpoint" => drop(one_of(key, value, &["0", "1"])?),
            "sys.brk.size" => drop(size(key, value)?),
            "sys.stack.size" => match size(key, value)? {
                0 => return Err(format!("`{key}`: no program begins without a stack")),
                bytes => self.stack = Some(bytes),
            },
            "fs.start_dir" => self.start_dir = Some(value.to_owned()),
            "net.port.rebase_on_lo" => {
                self.rebase = value.parse().map_err(|_| format!("`{key}`: `{value}` is not a number up to 65535"))?;
            }
            _ => return self.set_family(key, value),
        }
        Ok(())
    }

    /// Keys with a name of the manifest's own in them.
    fn set_family(&mut self, key: &str, value: &str) -> Result<(), Fault> {
        if let Some(name) = key.strip_prefix("loader.env.").filter(|name| !name.is_empty()) {
            self.env.push(format!("{name}={value}"));
            return Ok(());
        }
        if let Some(number) = key.strip_prefix("net.rules.").filter(|number| !number.is_empty()) {
            let rule = NetRule::parse(value).map_err(|why| format!("net.rules.{number}: {why}"))?;
            self.net.push(rule);
            return if self.net.len() > MOST_RULES { Err(format!("more than {MOST_RULES} rules")) } else { Ok(()) };
        }
        let mount = key.strip_prefix("fs.mount.").and_then(|rest| match rest.rsplit_once('.') {
            Some(("root", field)) => Some(("root", field)),
            Some((name, field)) => name.strip_prefix("other.").filter(|name| !name.is_empty()).map(|name| (name, field)),
            None => None,
        });
        let unknown = || format!("there is no key `{key}`");
        let (name, field) = mount.ok_or_else(unknown)?;
        let mount = self.mount(name)?;
        match field {
            "type" => mount.kind = one_of(key, value, &["chroot", "proc", "dev"])?,
            "path" if name != "root" => mount.path = value.to_owned(),
            "uri" if value.starts_with("dev:") => mount.shows = String::new(),
            "uri" => mount.shows = file(key, value)?,
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn mount(&mut self, name: &str) -> Result<&mut Mount, Fault> {
        let at = match self.mounts.iter().position(|mount| mount.name == name) {
            Some(at) => at,
            None if self.mounts.len() == MOST_RULES => return Err(format!("more than {MOST_RULES} mounts")),
            None => {
                let path = if name == "root" { "/".to_owned() } else { String::new() };
                self.mounts.push(Mount { name: name.to_owned(), path, ..Mount::default() });
                self.mounts.len() - 1
            }
        };
        Ok(&mut self.mounts[at])
    }

    /// What only the whole text shows.
    fn complete(&mut self) -> Result<(), Fault> {
        for mount in &self.mounts {
            let of = if mount.name == "root" { "fs.mount.root" } else { &*format!("fs.mount.other.{}", mount.name) };
            let lacks = match () {
                () if mount.kind.is_empty() => "type",
                () if mount.path.is_empty() => "path",
                () if mount.kind == "chroot" && mount.shows.is_empty() => "uri",
                () => continue,
            };
            return Err(format!("`{of}` has no `{lacks}`"));
        }
        self.debug = match (self.debug_type.as_deref(), self.debug_file.take()) {
            (Some("file"), Some(path)) => Debug::File(path),
            (Some("file"), None) => return Err("`loader.debug_type` is file, and there is no `loader.debug_file`".to_owned()),
            (_, Some(_)) => return Err("there is a `loader.debug_file`, and `loader.debug_type` is not file".to_owned()),
            (Some("inline"), None) => Debug::Inline,
            (_, None) => Debug::None,
        };
        Ok(())
    }
}

/// The path of a file's URI.
fn file(key: &str, value: &str) -> Result<String, Fault> {
    match value.strip_prefix("file:").filter(|path| !path.is_empty()) {
        Some(path) => Ok(path.to_owned()),
        None => Err(format!("`{key}`: `{value}` is not file:PATH")),
    }
}

fn one_of(key: &str, value: &str, known: &[&str]) -> Result<String, Fault> {
    if known.contains(&value) {
        Ok(value.to_string())
    } else {
        Err(format!("`{key}`: `{value}` is none of {}", known.join(", ")))
    }
}

/// Bytes, with K, M or G behind the number.
fn size(key: &str, value: &str) -> Result<u64, Fault> {
    let (digits, shift) = match value.as_bytes().last() {
        Some(b'K' | b'k') => (&value[..value.len() - 1], 10),
        Some(b'M' | b'm') => (&value[..value.len() - 1], 20),
        Some(b'G' | b'g') => (&value[..value.len() - 1], 30),
        _ => (value, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("`{key}`: `{value}` is not a number of bytes, with K, M or G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        Manifest::parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_manifest_is_read() {
        let text = b"#!/usr/bin/pal\n# a comment\nloader.exec = file:hello\nloader.env.HOME=/root\n\n\
            fs.mount.root.type = chroot\nfs.mount.root.uri = file:/srv\nfs.mount.other.p.type = proc\nfs.mount.other.p.path = /proc\n\
            net.rules.1 = 127.0.0.1:8000:0.0.0.0:0-65535\nsys.stack.size = 256K\nloader.debug_type = inline\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.exec.as_deref(), Some("hello"));
        assert_eq!(manifest.env, ["HOME=/root"]);
        assert_eq!((manifest.mounts.len(), &*manifest.mounts[0].shows, &*manifest.mounts[1].path), (2, "/srv", "/proc"));
        assert_eq!((manifest.net.len(), manifest.stack, manifest.debug), (1, Some(256 << 10), Debug::Inline));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert_eq!(fault("a = b"), "line 1: there is no key `a`");
        assert_eq!(fault("#\nloader.exec"), "line 2: `loader.exec` is not key = value");
        assert_eq!(fault("loader.exec = /bin/sh"), "line 1: `loader.exec`: `/bin/sh` is not file:PATH");
        assert_eq!(fault("fs.start_dir = /\nfs.start_dir = /"), "line 2: `fs.start_dir` is there twice");
        assert_eq!(fault("fs.mount.root.path = /"), "line 1: there is no key `fs.mount.root.path`");
        assert_eq!(fault("fs.mount.root.type = chroot"), "`fs.mount.root` has no `uri`");
        assert_eq!(fault("sys.stack.size = 1T"), "line 1: `sys.stack.size`: `1T` is not a number of bytes, with K, M or G");
        assert_eq!(fault("sys.stack.size = 0"), "line 1: `sys.stack.size`: no program begins without a stack");
        assert_eq!(fault("sys.brk.size = 99999999999G").lines().count(), 1);
        assert!(fault("net.rules.1 = 1.2.3.4").starts_with("line 1: net.rules.1: "));
        assert!(fault("loader.preload = file:libLinux.so").contains("loader.preload"));
        assert!(Manifest::parse(b"\xff\n").is_err());
        assert!(Manifest::parse(&alloc::vec![b'#'; MOST + 1]).is_err());
    }
}
