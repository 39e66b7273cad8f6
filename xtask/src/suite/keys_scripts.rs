//! Scripts for the emulated Linux of the suite `keys`. All controllers of cgroup version 2 can be had there: a sandbox with limits has
//! a cgroup of its own, as root and as a user to whom a part of the tree was given. And two sandboxes beside each other have keys.

use serde_json::Value;

/// A script for busybox' shell, without single quotes; `$1` is the program.
pub struct Script {
    pub name: &'static str,
    /// The program's source, below `test`.
    pub program: &'static str,
    pub text: &'static str,
    /// Lines that must be printed, in this order among others.
    lines: &'static [&'static str],
    /// What must be true of the outcome that `--status-fd` wrote as the last line, if it did.
    outcome: Option<fn(&Value) -> bool>,
}

/// What comes before each.
pub const BEFORE: &str = "mount -t cgroup2 cgroup /sys/fs/cgroup 2>/dev/null\n";

/// The program of the suite `limits`.
const LIMITS: &str = "limits/limits.c";

/// Two sandboxes, of which one can write to a file that the other runs.
macro_rules! two {
    ($name:literal, $gate:literal) => {
        Script {
            name: $name,
            program: "keys/two.c",
            text: concat!(
                "/janua run --jail pkey --gate ",
                $gate,
                " --bind /w::rw -- $1 write /w/code /w/said &
                until [ -s /w/code ]; do sleep 1; done
                /janua run --jail pkey --gate ",
                $gate,
                " -- $1 run /w/code >/w/said 2>&1; wait; cat /w/said"
            ),
            lines: &["mapped 1", "a copy"],
            outcome: None,
        }
    };
}

pub const SCRIPTS: &[Script] = &[
    two!("keys/two/call", "call"),
    two!("keys/two/sud", "sud"),
    Script {
        name: "keys/cgroup/held",
        program: LIMITS,
        text: "cd /sys/fs/cgroup
            /janua run --jail none --memory 256M --pids 20 --cpus 1 --status-fd 9 -- /bin/sleep 3 9>/w/json &
            until grep -q . janua-*/cgroup.procs; do :; done 2>/dev/null
            cd janua-*; cat memory.max memory.oom.group pids.max cpu.max; wait; cd ..; ls -d janua-* 2>&1; cat /w/json",
        lines: &["402653184", "1", "104", "100000 100000", "ls: janua-*: No such file or directory"],
        outcome: Some(|outcome| {
            let group = &outcome["cgroup"];
            let held = ["memory", "pids", "cpu"].map(Value::from);
            outcome["exit"] == 0 && group["holds"] == Value::from(held.to_vec()) && group["memory"].as_u64() > Some(1 << 20) && group["killed"] == 0
        }),
    },
    Script {
        name: "keys/cgroup/killed",
        program: LIMITS,
        // The kernel's own account ends what a guest does first, so the group is given less.
        text: "cd /sys/fs/cgroup
            /janua run --jail none --memory 64M --status-fd 9 -- /bin/sleep 100 9>/w/json &
            until grep -q . janua-*/cgroup.procs; do :; done 2>/dev/null
            sleep 3; cd janua-*; echo 1M >memory.max; cd ..; wait $!; echo $?; ls -d /sys/fs/cgroup/janua-* 2>&1; cat /w/json",
        lines: &["janua: limit met: memory (64M; ", "137", "ls: /sys/fs/cgroup/janua-*: No such file or directory"],
        outcome: Some(|outcome| {
            let killed = outcome["cgroup"]["killed"].as_u64();
            outcome["exit"] == 137 && outcome["limit"] == "memory" && outcome["fault"].is_null() && killed > Some(0)
        }),
    },
    Script {
        name: "keys/cgroup/left_behind",
        program: LIMITS,
        text: "cd /sys/fs/cgroup
            /janua run --jail none --memory 64M -- /bin/sleep 100 & until grep -q . janua-*/cgroup.procs; do :; done 2>/dev/null
            kill -9 $!; wait; while grep -q . janua-*/cgroup.procs; do :; done; echo left $(ls -d janua-* | wc -l)
            mkdir janua-of_others; echo $$ >janua-of_others/cgroup.procs
            /janua run --jail none --pids 9 --status-fd 9 -- /bin/true 9>/w/json; ls -d janua-*
            echo $$ >cgroup.procs; rmdir janua-of_others; cat /w/json",
        lines: &["left 1", "janua-of_others"],
        outcome: Some(|outcome| outcome["exit"] == 0 && outcome["cgroup"]["holds"] == Value::from(vec!["pids"])),
    },
    Script {
        name: "keys/cgroup/user",
        program: LIMITS,
        text: "cd /sys/fs/cgroup; echo +memory +pids >cgroup.subtree_control; mkdir -p u/own.scope u/a.service
            echo +memory +pids >u/cgroup.subtree_control; chown -R 1000 u; chmod 777 /w
            limits=$1; as() { echo $$ >u/$1/cgroup.procs; $limits as_user \"$2\"; echo $$ >cgroup.procs; }
            doctor() { as $1 \"/janua doctor\" >/w/said; grep \" cgroup \" /w/said; }
            doctor a.service; doctor own.scope; echo 1G >u/own.scope/memory.max; doctor own.scope; echo max >u/own.scope/memory.max
            as own.scope \"/janua run --jail none --memory 64M --pids 20 --status-fd 9 -- $limits nothing 9>/w/json\"; ls u | grep janua; cat /w/json",
        lines: &[
            "  no   cgroup                       /sys/fs/cgroup/u/a.service is a service's own",
            "  yes  cgroup                       --memory, --pids: ",
            "  no   cgroup                       A sandbox beside /sys/fs/cgroup/u/own.scope would escape its memory.max",
        ],
        outcome: Some(|outcome| {
            let path = outcome["cgroup"]["path"].as_str().unwrap_or_default();
            outcome["exit"] == 0 && path.starts_with("/sys/fs/cgroup/u/janua-") && outcome["cgroup"]["memory"].as_u64() > Some(0)
        }),
    },
];

impl Script {
    /// Whether what was printed is what had to be.
    pub fn judge(&self, said: &[String]) -> Result<(), String> {
        let mut rest = said.iter();
        if let Some(missing) = self.lines.iter().find(|start| !rest.any(|line| line.starts_with(**start))) {
            return Err(format!("no line {missing:?} in its place"));
        }
        let Some(outcome) = self.outcome else { return Ok(()) };
        let written: Value = said.last().and_then(|line| serde_json::from_str(line).ok()).ok_or("no outcome")?;
        if outcome(&written) { Ok(()) } else { Err("another outcome".into()) }
    }
}
