//! The environment of a program: the caller's, or a clean one, with settings.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::args::{Refusal, refuse};

/// What a foreign file tree's programs get of the caller's environment.
const PASSED_ON: [&str; 3] = ["TERM", "LANG", "COLORTERM"];

/// The environment of the program: the caller's own (`own`) in its order, or for a foreign file tree a clean one, with the settings
/// applied: K=V sets a variable, K alone passes the caller's on.
pub fn environment(
    own: Vec<(OsString, OsString)>,
    settings: &[OsString],
    foreign: bool,
) -> Result<Vec<(OsString, OsString)>, Refusal> {
    let mut all = if foreign { clean(&own) } else { own.clone() };
    for setting in settings {
        let bytes = setting.as_bytes();
        let (key, value) = match bytes.iter().position(|&b| b == b'=') {
            Some(0) => {
                return refuse(
                    format!("--env {}: not of the form K=V, or K", setting.to_string_lossy()),
                    "for example --env LANG=C (--env LANG= sets it empty, --env LANG passes yours on)",
                );
            }
            Some(at) => (OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(bytes[at + 1..].to_vec())),
            None => match own.iter().find(|(key, _)| key == setting) {
                Some(entry) => entry.clone(),
                None => {
                    return refuse(
                        format!("--env {}: it is not in your environment", setting.to_string_lossy()),
                        "give it a value: --env K=V",
                    );
                }
            },
        };
        match all.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => all.push((key, value)),
        }
    }
    Ok(all)
}

/// A clean environment for programs of another tree. The home of a user whom the tree does not know is its root.
fn clean(own: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let home = if rustix::process::geteuid().is_root() { "/root" } else { "/" };
    let fixed = [("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("HOME", home)];
    let fixed = fixed.into_iter().map(|(key, value)| (key.into(), value.into()));
    fixed.chain(own.iter().filter(|(key, _)| PASSED_ON.iter().any(|name| key == name)).cloned()).collect()
}
