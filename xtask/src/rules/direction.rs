//! Which crate may name which.

use super::{Breach, Tree, source};

/// What the crates of each layer may depend on; a layer is the first part of a crate's directory, but for those that have a row of their own.
const LAYERS: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("arch", &["abi"]),
    ("port", &["arch", "abi"]),
    ("rt", &["port"]),
    ("paging", &["rt", "port", "abi"]),
    ("kernel", &["rt", "port", "arch", "abi"]),
    ("text", &["arch", "abi"]),
    ("object", &["kernel", "rt", "port", "arch", "abi"]),
    ("jail", &["object", "text", "kernel", "rt", "port", "arch", "abi"]),
    ("personality", &["object", "kernel", "rt", "port", "arch", "abi"]),
    ("gate/entry", &["port", "arch", "abi"]),
    ("gate", &["gate/entry", "port", "arch", "abi"]),
    ("platform", &["gate/entry", "paging", "text", "rt", "port", "arch", "abi"]),
    ("image", &["gate", "personality", "platform", "jail", "object", "kernel", "rt", "port", "arch", "abi"]),
    ("user", &["abi"]),
    ("cli", &["bench", "debug", "personality", "kernel", "platform", "port", "abi"]),
    ("bench", &["rt", "port", "abi"]),
    ("debug", &[]),
    ("fuzz", &["personality", "object", "platform", "paging", "text", "kernel", "rt", "port", "abi"]),
    ("xtask", &[]),
    ("test", &["personality", "object", "kernel", "rt", "port", "arch", "abi"]),
];

fn layer_of(dir: &str) -> &str {
    let own = LAYERS.iter().any(|(name, _)| *name == dir);
    if own { dir } else { dir.split('/').next().unwrap_or_default() }
}

/// Rule `direction`: dependences point the way `LAYERS` specifies, within a layer freely.
pub fn direction(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for member in &tree.members {
        let place = format!("{}/Cargo.toml", member.dir);
        let layer = layer_of(&member.dir);
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
            breaches.push(Breach::new("direction", place, format!("no layer is called `{layer}`")));
            continue;
        };
        for name in &member.depends {
            let Some(other) = tree.members.iter().find(|m| m.name == *name) else {
                continue;
            };
            let target = layer_of(&other.dir);
            if target != layer && !allowed.contains(&target) {
                let may = if allowed.is_empty() { "nothing".to_string() } else { allowed.join(", ") };
                breaches.push(Breach::new(
                    "direction",
                    place.clone(),
                    format!("`{layer}` must not depend on `{target}` ({name}); it may depend on: {may}"),
                ));
            }
        }
    }
    breaches
}

/// Crates that the kernel does not name.
const ABOVE: &[&str] = &["janua_gate", "janua_platform", "janua_personality", "janua_image", "janua_object"];
/// Words of systems and processors that it carries and knows nothing of, in lower case, each alone or a part of a name. Code for one processor is
/// `arch`'s.
const FOREIGN: &[&str] = &[
    "linux",
    "posix",
    "octopos",
    "invasive",
    "l4v2",
    "pal",
    "signal",
    "signals",
    "sigset",
    "sigreturn",
    "ptrace",
    "i386",
    "x86",
    "sparc",
    "leon3",
    "target_arch",
];

/// Whether a word is one of those. Names of Linux' signals and restart codes are.
fn is_foreign(word: &str) -> bool {
    let lower = word.to_lowercase();
    let is_part = lower.split('_').chain([&*lower]).any(|part| FOREIGN.contains(&part));
    let is_signal =
        word.len() > 3 && word.starts_with("SIG") && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    is_part || is_signal || lower.starts_with("erestart")
}

/// Rule `neutral-kernel`: the kernel's code names no gate, platform, personality or image, and neither it nor its comments a system or processor
/// that it carries. The errors and structures that all personalities share are `abi`'s, in a module that is called after Linux.
pub fn neutral_kernel(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files.iter().filter(|f| f.is_rust() && f.layer() == "kernel") {
        for (number, line) in file.lines.iter().enumerate() {
            let mut refuse = |word: &str| {
                let place = format!("{}:{}", file.path, number + 1);
                breaches.push(Breach::new("neutral-kernel", place, format!("the kernel names `{word}`")));
            };
            let named = source::words(&line.code).into_iter().find(|w| ABOVE.iter().any(|f| w.starts_with(f)));
            named.into_iter().for_each(&mut refuse);
            let shared = |text: &str| text.replace("janua_abi::linux", "janua_abi");
            for text in [shared(&line.code), shared(&line.comment)] {
                source::words(&text).into_iter().find(|word| is_foreign(word)).into_iter().for_each(&mut refuse);
            }
        }
    }
    breaches
}

/// The most methods of the traits that every machine implements.
const METHODS: &[(&str, &str, usize)] = &[("port/src/machine.rs", "Machine", 22), ("port/src/space.rs", "Space", 10)];

/// Rule `small-contract`: what every machine must offer does not grow.
pub fn small_contract(tree: &Tree) -> Vec<Breach> {
    METHODS.iter().filter_map(|&(path, name, most)| crowded(tree, path, name, most)).collect()
}

/// The breach of a trait that has too many methods, or that is not where it should be.
fn crowded(tree: &Tree, path: &str, name: &str, most: usize) -> Option<Breach> {
    let lines = tree.files.iter().filter(|file| file.path == path).flat_map(|file| &file.lines);
    let mut body = lines.map(|line| line.code.trim_end()).skip_while(|code| !code.starts_with(&format!("pub trait {name}:")));
    let Some(_) = body.next() else {
        return Some(Breach::new("small-contract", path, format!("there is no trait `{name}`")));
    };
    let methods = body.take_while(|code| *code != "}").filter(|code| code.starts_with("    fn ")).count();
    let what =
        format!("`{name}` has {methods} methods; {most} are the most: what is about one thread, file or object is that one's");
    (methods > most).then(|| Breach::new("small-contract", path, what))
}

/// Who may decode instructions: what reads machine code, and tools that run on the host.
const DECODERS: &[&str] = &["text", "xtask", "fuzz"];
/// Layers of the kernel that know no protection key and no rewritten code, and parts of the words that those who do would use.
const KEYLESS: &[&str] = &["port", "rt", "paging", "kernel", "object", "personality", "gate"];
/// The entry that all gates of a host share opens the key, and the exit closes it.
const KEY_HOLDER: &str = "gate/entry/";
const KEY_WORDS: &[&str] = &["iced", "pkru", "xrstor", "trampoline", "patch_out", "rewriter"];

/// Rule `one-jail`: what exists because of protection keys and of rewritten code is in `jail` and `text`.
pub fn one_jail(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for member in &tree.members {
        let layer = member.dir.split('/').next().unwrap_or_default();
        if member.foreign.iter().any(|name| name == "iced-x86") && !DECODERS.contains(&layer) {
            let place = format!("{}/Cargo.toml", member.dir);
            breaches.push(Breach::new("one-jail", place, format!("`{layer}` decodes instructions")));
        }
    }
    for file in tree.files.iter().filter(|f| f.is_rust() && KEYLESS.contains(&f.layer()) && !f.path.starts_with(KEY_HOLDER)) {
        for (number, line) in file.lines.iter().enumerate() {
            let words = source::words(&line.code);
            let named = words.iter().find(|w| KEY_WORDS.iter().any(|key| w.to_lowercase().contains(key)));
            if let Some(word) = named {
                let place = format!("{}:{}", file.path, number + 1);
                breaches.push(Breach::new("one-jail", place, format!("`{word}` belongs to the jail")));
            }
        }
    }
    breaches
}

/// Parts of `port` that are about one thread, and names of what belongs to a thread: its memory, its registers, its kick, its accounts.
const OF_THREADS: &[&str] =
    &["port/src/context.rs", "port/src/user.rs", "port/src/guest.rs", "port/src/drive.rs", "port/src/gate.rs"];
const THREAD_WORDS: &[&str] = &[
    "UserMemory",
    "Registers",
    "Usage",
    "set_tls",
    "set_gs",
    "fpu_save",
    "fpu_restore",
    "fpu_reset",
    "set_segments",
    "set_thread_area",
    "kick",
    "restrict",
    "residency",
    "set_nice",
    "membarrier",
    "thread_cpu",
];

/// Layers in which who calls is an argument, and no thread is found by where the code runs.
const TOLD_WHO_CALLS: &[&str] = &["port", "kernel", "object", "jail", "personality"];

/// Whether a line asks, or lets others ask, which thread it runs on.
fn asks_who_runs(code: &str) -> bool {
    let words = source::words(code);
    words.windows(3).any(|three| three == [".", "current", "("] || three == ["fn", "current", "("])
}

/// Rule `context-per-thread`: a machine is asked about a thread by that thread's context, so that any thread may ask; nobody asks which
/// thread that is, for a call may run on another than the one that made it.
pub fn context_per_thread(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files.iter().filter(|f| f.is_rust() && TOLD_WHO_CALLS.contains(&f.layer())) {
        for (number, line) in file.lines.iter().enumerate().filter(|(_, line)| asks_who_runs(&line.code)) {
            let place = format!("{}:{}", file.path, number + 1);
            breaches.push(Breach::new(
                "context-per-thread",
                place,
                format!("who calls is an argument: `{}`", line.code.trim()),
            ));
        }
    }
    for file in tree.files.iter().filter(|f| f.path.starts_with("port/src/") && !OF_THREADS.contains(&f.path.as_str())) {
        for (number, line) in file.lines.iter().enumerate() {
            let code = line.code.trim_start();
            // Only methods count, not types that are imported or passed on.
            let asks = code.starts_with("fn ");
            let words = source::words(code);
            if let Some(word) = words.iter().find(|w| asks && THREAD_WORDS.contains(w)) {
                let place = format!("{}:{}", file.path, number + 1);
                breaches.push(Breach::new("context-per-thread", place, format!("`{word}` is a thread's: ask its context")));
            }
        }
    }
    breaches
}

/// Registers of x86 beside those with a number, in lower case.
const X86_REGISTERS: &[&str] = &[
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "rip", "rflags", "orig_rax", "eax", "ebx", "ecx", "edx", "esi",
    "edi", "ebp", "esp", "eip", "eflags", "orig_eax", "fs_base", "gs_base", "mxcsr",
];

/// Whether a word is the name of such a register, or of one with a number.
fn is_x86_register(word: &str) -> bool {
    let word = word.to_lowercase();
    let numbered = word.strip_prefix('r').and_then(|number| number.parse::<u8>().ok());
    X86_REGISTERS.contains(&word.as_str()) || numbered.is_some_and(|number| (8..16).contains(&number))
}

/// Rule `x86-folder`: one folder of the personality linux names registers of x86.
pub fn x86_folder(tree: &Tree) -> Vec<Breach> {
    let (all, home) = ("personality/linux/src/", "personality/linux/src/x86/");
    let mut breaches = Vec::new();
    for file in tree.files.iter().filter(|f| f.is_rust() && f.path.starts_with(all) && !f.path.starts_with(home)) {
        for (number, line) in file.lines.iter().enumerate() {
            if let Some(word) = source::words(&line.code).into_iter().find(|word| is_x86_register(word)) {
                let place = format!("{}:{}", file.path, number + 1);
                breaches.push(Breach::new("x86-folder", place, format!("`{word}` is a register of x86")));
            }
        }
    }
    breaches
}

/// Rule `platform-is-a-crate`: no Cargo feature is called after a platform, gate or personality.
pub fn platform_is_a_crate(tree: &Tree) -> Vec<Breach> {
    let choices: Vec<&str> = tree
        .members
        .iter()
        .filter_map(|m| m.dir.split_once('/'))
        .filter(|(layer, _)| matches!(*layer, "platform" | "gate" | "personality"))
        .map(|(_, name)| name)
        .collect();
    tree.members
        .iter()
        .flat_map(|m| m.features.iter().map(move |f| (m, f)))
        .filter(|(_, feature)| choices.contains(&feature.as_str()))
        .map(|(m, feature)| {
            let what = format!("feature `{feature}` selects what should be a crate of its own");
            Breach::new("platform-is-a-crate", format!("{}/Cargo.toml", m.dir), what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Member;

    fn member(name: &str, dir: &str, depends: &[&str]) -> Member {
        let depends = depends.iter().map(|d| d.to_string()).collect();
        Member { name: name.into(), dir: dir.into(), roots: vec![], depends, foreign: vec![], features: vec![] }
    }

    #[test]
    fn a_kernel_that_names_a_platform_is_refused() {
        let members = vec![
            member("kernel", "kernel", &["linux"]),
            member("linux", "platform/linux", &["skeleton"]),
            member("skeleton", "platform/skeleton", &[]),
            member("odd", "somewhere/odd", &[]),
        ];
        let breaches = direction(&Tree { members, files: vec![] });
        assert_eq!(breaches.len(), 2);
        assert!(breaches[0].what.contains("`kernel` must not depend on `platform`"));
        assert!(breaches[1].what.contains("somewhere"));
    }

    #[test]
    fn a_kernel_that_knows_a_system_or_a_processor_is_refused() {
        let refused = |text: &str| {
            let file = source::SourceFile { path: "kernel/src/thread.rs".into(), lines: source::split(text) };
            neutral_kernel(&Tree { members: vec![], files: vec![file] }).len()
        };
        for text in [
            "use janua_object::Pipe;",
            "/// A signal may be deliverable.",
            "fn deliver_signal() {}",
            "let set = SigSet::EMPTY;",
            "Cut::Interrupted => Errno::ERESTARTSYS,",
            "if number == SIGKILL {",
            "#[cfg(target_arch = \"sparc\")]",
            "// As Linux has it.",
            "// The stop of ptrace(2).",
        ] {
            assert_eq!(refused(text), 1, "{text}");
        }
        for text in [
            "use janua_abi::linux::{Errno, Result};",
            "#[cfg(target_has_atomic = \"64\")]",
            "fn signature() {} // designal, compat, palette, SIGNATURE_1",
        ] {
            assert_eq!(refused(text), 0, "{text}");
        }
    }

    #[test]
    fn a_machine_with_many_methods_is_refused() {
        let file = |methods: usize| {
            let body = "    /// One.\n    fn one(&self) -> usize {\n        1\n    }\n".repeat(methods);
            let text =
                format!("pub trait Space: Send {{\n{body}}}\n\nfn other() {{}}\nimpl Other {{\n    fn more() {{}}\n}}\n");
            source::SourceFile { path: "port/src/space.rs".into(), lines: source::split(&text) }
        };
        let breach = |methods| crowded(&Tree { members: vec![], files: vec![file(methods)] }, "port/src/space.rs", "Space", 10);
        assert!(breach(10).is_none());
        assert!(breach(11).is_some_and(|breach| breach.what.contains("has 11 methods")));
        let nowhere = crowded(&Tree { members: vec![], files: vec![] }, "port/src/space.rs", "Space", 10);
        assert!(nowhere.is_some_and(|breach| breach.what.contains("no trait")));
    }

    #[test]
    fn a_decoder_below_the_jail_is_refused() {
        let of = |dir: &str| Member { foreign: vec!["iced-x86".into()], ..member("one", dir, &[]) };
        let breaches = one_jail(&Tree { members: vec![of("object"), of("text")], files: vec![] });
        assert_eq!(breaches.len(), 1);
        assert!(breaches[0].place.starts_with("object"));
    }

    #[test]
    fn a_machine_that_knows_who_calls_is_refused() {
        let file = |path: &str, text: &str| source::SourceFile { path: path.into(), lines: source::split(text) };
        let files = vec![
            file(
                "port/src/machine.rs",
                "pub trait Machine {\n    fn user(&self) -> &dyn UserMemory;\n    fn cpus(&self) -> usize;\n}\n",
            ),
            file("port/src/context.rs", "    fn memory(&self) -> &dyn UserMemory;\n"),
            file("port/src/park.rs", "    fn current(&self) -> ThreadId;\n"),
            file("personality/linux/src/fd.rs", "// machine.current()\nlet id = thread.machine().current();\n"),
            file("platform/x86_64/src/sched.rs", "    let thread = cpu.current();\n"),
        ];
        let breaches = context_per_thread(&Tree { members: vec![], files });
        let places: Vec<&str> = breaches.iter().map(|breach| breach.place.as_str()).collect();
        assert_eq!(places, ["port/src/park.rs:1", "personality/linux/src/fd.rs:2", "port/src/machine.rs:2"]);
    }

    #[test]
    fn a_register_outside_its_folder_is_refused() {
        let file = |path: &str, text: &str| source::SourceFile { path: path.into(), lines: source::split(text) };
        let named = "fn pc(frame: &Frame) -> u64 {\n    frame.rip\n}\n";
        let files = vec![
            file("personality/linux/src/x86/frame.rs", named),
            file("personality/linux/src/signal/deliver.rs", named),
            file("personality/linux/src/signal/send.rs", "// rip\nfn r2d2() {}\n"),
        ];
        let breaches = x86_folder(&Tree { members: vec![], files });
        assert_eq!(breaches.len(), 1);
        assert_eq!(breaches[0].place, "personality/linux/src/signal/deliver.rs:2");
    }

    #[test]
    fn layers_form_no_cycle() {
        fn reaches(from: &str, to: &str) -> bool {
            let next = LAYERS.iter().find(|(name, _)| *name == from).map_or(&[][..], |(_, allowed)| allowed);
            next.iter().any(|n| *n == to || reaches(n, to))
        }
        for (layer, _) in LAYERS {
            assert!(!reaches(layer, layer), "{layer} depends on itself");
        }
    }
}
