//! /proc/PID/mounts and mountinfo.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt::Write;

use janua_abi::linux::Result;
use janua_object::vfs::path::NAME_MOST;
use janua_object::vfs::{Mount, Path, device};

use super::{Subject, Text};

/// Characters of names that are written as octal escapes.
const SPECIAL: &[u8] = b" \t\n#";

/// Bytes of the names that are kept while a list is made, and what each costs besides.
const MOST_KNOWN: usize = 16 << 20;
const ENTRY: usize = 64;

/// Calls `each` for the mounts below the subject's root, with the place as the subject names it.
fn visible(subject: &Subject, mut each: impl FnMut(&Mount, &[u8])) {
    let mut places = Places { root: subject.root(), known: BTreeMap::new(), room: MOST_KNOWN };
    subject.kernel.vfs.list_mounts(|mounts| {
        for mount in mounts {
            if let Some(place) = places.of(&mount) {
                each(&mount, &place);
            }
        }
    });
}

/// The places of mounts as their subject names them, each by that of the mount it is on: mounts may lie on each other, thousands deep.
struct Places {
    root: Path,
    /// By the mount's number; `None` for one that the subject cannot reach.
    known: BTreeMap<u64, Option<Arc<[u8]>>>,
    /// Bytes that further names may take.
    room: usize,
}

impl Places {
    fn of(&mut self, mount: &Arc<Mount>) -> Option<Arc<[u8]>> {
        let place = match self.on_known(mount) {
            Some(place) => place,
            None => {
                let whole = Path::of_mount(mount).write(&self.root);
                whole.reachable.then(|| Arc::from(whole.name))
            }
        };
        if let Some(left) = self.room.checked_sub(place.as_ref().map_or(0, |name| name.len()) + ENTRY) {
            self.room = left;
            self.known.insert(mount.id, place.clone());
        }
        place
    }

    /// Its place if it is on a mount whose place is known, and the subject's root is not there.
    fn on_known(&self, mount: &Arc<Mount>) -> Option<Option<Arc<[u8]>>> {
        if self.root.mount.id == mount.id {
            return None;
        }
        let on = mount.parent().filter(|on| on.mount.id != self.root.mount.id)?;
        let Some(below) = self.known.get(&on.mount.id)? else { return Some(None) };
        let within = on.write(&Path::of_mount(&on.mount));
        Some(match (&**below, &*within.name) {
            _ if !within.reachable => None,
            (_, b"/") => Some(below.clone()),
            (b"/", _) => Some(Arc::from(within.name)),
            (below, name) => Some([below, name].concat().into()),
        })
    }
}

fn super_options(mount: &Mount) -> alloc::string::String {
    let mut options = alloc::string::String::from(if mount.fs.read_only() { "ro" } else { "rw" });
    let own = mount.fs.options();
    if !own.is_empty() {
        options.push(',');
        options.push_str(&own);
    }
    options
}

/// /proc/PID/mounts.
pub fn mounts(subject: &Subject, text: &mut Text) -> Result<()> {
    visible(subject, |mount, place| {
        text.escaped(&mount.source, SPECIAL);
        text.bytes(b" ");
        text.escaped(place, SPECIAL);
        let own = mount.fs.options();
        let comma = if own.is_empty() { "" } else { "," };
        let _ = writeln!(text, " {} {}{comma}{own} 0 0", mount.fs.name(), mount.options());
    });
    Ok(())
}

/// /proc/PID/mountinfo.
pub fn mountinfo(subject: &Subject, text: &mut Text) -> Result<()> {
    visible(subject, |mount, place| {
        let parent = mount.parent().map_or(mount.id, |parent| parent.mount.id);
        let dev = mount.fs.dev();
        let _ = write!(text, "{} {parent} {}:{} ", mount.id, device::major(dev), device::minor(dev));
        // The place within the file system: "/" but for binds of a directory.
        let mut parts = alloc::vec::Vec::new();
        let mut at = mount.root.clone();
        let mut len = 0;
        while let Some(up) = at.parent()
            && len <= NAME_MOST
        {
            len += at.name().len() + 1;
            parts.push(at.name());
            at = up;
        }
        let mut name = alloc::vec::Vec::new();
        for part in parts.iter().rev() {
            name.push(b'/');
            name.extend_from_slice(part);
        }
        if name.is_empty() {
            name.push(b'/');
        }
        text.escaped(&name, SPECIAL);
        text.bytes(b" ");
        text.escaped(place, SPECIAL);
        let _ = write!(text, " {} - {} ", mount.options(), mount.fs.name());
        text.escaped(&mount.source, SPECIAL);
        let _ = writeln!(text, " {}", super_options(mount));
    });
    Ok(())
}

/// /proc/PID/mountstats: no file system here has anything to add.
pub fn mountstats(subject: &Subject, text: &mut Text) -> Result<()> {
    visible(subject, |mount, place| {
        text.bytes(b"device ");
        text.escaped(&mount.source, SPECIAL);
        text.bytes(b" mounted on ");
        text.escaped(place, SPECIAL);
        let _ = writeln!(text, " with fstype {}", mount.fs.name());
    });
    Ok(())
}
