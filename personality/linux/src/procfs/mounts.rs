//! /proc/PID/mounts and mountinfo.

use core::fmt::Write;

use janua_abi::linux::Result;
use janua_object::vfs::path::NAME_MOST;
use janua_object::vfs::{Mount, Path, device};

use super::{Subject, Text};

/// Characters of names that are written as octal escapes.
const SPECIAL: &[u8] = b" \t\n#";

/// Calls `each` for the mounts below the subject's root, with the place as the subject names it.
fn visible(subject: &Subject, mut each: impl FnMut(&Mount, &[u8])) {
    let root = subject.root();
    subject.kernel.vfs.list_mounts(|mounts| {
        for mount in mounts {
            let place = Path::of_mount(&mount).write(&root);
            if place.reachable {
                each(&mount, &place.name);
            }
        }
    });
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
