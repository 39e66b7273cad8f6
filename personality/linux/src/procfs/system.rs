//! The files of the whole system.

use core::fmt::Write;

use janua_abi::linux::Result;
use janua_object::Caller;
use janua_port::machine::processors;

use super::{Entry, Kind, Subject, Text, counters, locks, memstat, sys};
use crate::load;
use crate::processor::cpuinfo::cpuinfo;

pub static ENTRIES: &[Entry] = &[
    Entry::new("self", 0o777, Kind::Name(own)),
    Entry::new("thread-self", 0o777, Kind::Name(own_thread)),
    Entry::new("mounts", 0o777, Kind::Name(own_mounts)),
    Entry::new("net", 0o777, Kind::Name(own_net)),
    sys::dir("sys", sys::ENTRIES),
    Entry::dir("sysvipc", SYSVIPC),
    Entry::dir("pressure", counters::PRESSURE),
    Entry::dir("tty", TTY),
    Entry::text("buddyinfo", memstat::buddyinfo),
    Entry::text("cgroups", cgroups),
    Entry::text("cmdline", cmdline),
    Entry::text("cpuinfo", cpuinfo),
    Entry::text("devices", devices),
    Entry::text("diskstats", diskstats),
    Entry::text("execdomains", execdomains),
    Entry::text("filesystems", filesystems),
    Entry::text("interrupts", counters::interrupts),
    Entry::text("loadavg", loadavg),
    Entry::text("locks", locks::locks),
    Entry::text("meminfo", memstat::meminfo),
    Entry::text("misc", misc),
    Entry::text("modules", modules),
    Entry::text("partitions", partitions),
    Entry::new("slabinfo", 0o400, Kind::Text(slabinfo)),
    Entry::text("softirqs", counters::softirqs),
    Entry::text("stat", stat),
    Entry::text("swaps", swaps),
    Entry::new("timer_list", 0o400, Kind::Text(timer_list)),
    Entry::text("uptime", uptime),
    Entry::text("version", version),
    Entry::text("vmstat", memstat::vmstat),
    Entry::text("zoneinfo", memstat::zoneinfo),
];

fn own(caller: &dyn Caller) -> alloc::vec::Vec<u8> {
    alloc::format!("{}", caller.pid()).into_bytes()
}

fn own_thread(caller: &dyn Caller) -> alloc::vec::Vec<u8> {
    alloc::format!("{}/task/{}", caller.pid(), caller.tid()).into_bytes()
}

fn own_net(_: &dyn Caller) -> alloc::vec::Vec<u8> {
    b"self/net".to_vec()
}

fn own_mounts(_: &dyn Caller) -> alloc::vec::Vec<u8> {
    b"self/mounts".to_vec()
}

fn cmdline(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"janua\n");
    Ok(())
}

/// There is one hierarchy, and nothing that it controls.
fn cgroups(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"#subsys_name\thierarchy\tnum_cgroups\tenabled\n");
    Ok(())
}

/// Drivers that share the major number of miscellaneous devices: there are none.
fn misc(_: &Subject, _: &mut Text) -> Result<()> {
    Ok(())
}

/// There are no loadable modules.
fn modules(_: &Subject, _: &mut Text) -> Result<()> {
    Ok(())
}

/// The one execution domain: programs of Linux'.
fn execdomains(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"0-0\tLinux           \t[kernel]\n");
    Ok(())
}

static TTY: &[Entry] = &[Entry::text("drivers", tty_drivers)];

/// Names and numbers of terminals: ps(1) names a process' terminal by them.
fn tty_drivers(_: &Subject, text: &mut Text) -> Result<()> {
    for (name, path, numbers, kind) in [
        ("/dev/tty", "/dev/tty", "  5       0", "system:/dev/tty"),
        ("/dev/ptmx", "/dev/ptmx", "  5       2", "system"),
        ("pty_slave", "/dev/pts", "136 0-1048575", "pty:slave"),
    ] {
        let _ = writeln!(text, "{name:20} {path:13} {numbers} {kind}");
    }
    Ok(())
}

fn devices(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/ptmx\n136 pts\n\nBlock devices:\n");
    Ok(())
}

fn filesystems(subject: &Subject, text: &mut Text) -> Result<()> {
    for name in subject.kernel.vfs.type_names() {
        let _ = writeln!(text, "nodev\t{name}");
    }
    Ok(())
}

fn loadavg(subject: &Subject, text: &mut Text) -> Result<()> {
    for average in load::averages(&subject.kernel) {
        // Rounded to hundredths.
        let hundredths = (average * 100 + 0x8000) >> 16;
        let _ = write!(text, "{}.{:02} ", hundredths / 100, hundredths % 100);
    }
    let running = running(subject);
    let tree = subject.kernel.tree.lock();
    let (threads, last) = (tree.thread_count(), tree.last_pid());
    drop(tree);
    let _ = writeln!(text, "{running}/{threads} {last}");
    Ok(())
}

fn partitions(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"major minor  #blocks  name\n\n");
    Ok(())
}

/// There are no block devices.
fn diskstats(_: &Subject, _: &mut Text) -> Result<()> {
    Ok(())
}

fn swaps(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
    Ok(())
}

/// Nanoseconds from the start to a monotonic time.
fn up_at(subject: &Subject, now: u64) -> u64 {
    now.saturating_sub(subject.kernel.booted)
}

fn uptime(subject: &Subject, text: &mut Text) -> Result<()> {
    let (at, used) = load::used(&subject.kernel);
    let idle = (up_at(subject, at) * subject.kernel.machine.cpus() as u64).saturating_sub(used.user + used.system);
    let hundredths = |nanos: u64| nanos / 10_000_000;
    let (up, idle) = (hundredths(up_at(subject, subject.kernel.machine.clock().monotonic())), hundredths(idle));
    let _ = writeln!(text, "{}.{:02} {}.{:02}", up / 100, up % 100, idle / 100, idle % 100);
    Ok(())
}

/// Threads that do not wait.
fn running(subject: &Subject) -> usize {
    subject.kernel.processes().iter().flat_map(|task| task.threads()).filter(|seat| !seat.is_waiting()).count()
}

fn stat(subject: &Subject, text: &mut Text) -> Result<()> {
    let cpus = subject.kernel.machine.cpus() as u64;
    let (at, used) = load::used(&subject.kernel);
    let (user, system) = (used.user / 10_000_000, used.system / 10_000_000);
    let idle = (up_at(subject, at) / 10_000_000 * cpus).saturating_sub(user + system);
    let _ = writeln!(text, "cpu  {user} 0 {system} {idle} 0 0 0 0 0 0");
    for cpu in processors(subject.kernel.machine) {
        let _ = writeln!(text, "cpu{cpu} {} 0 {} {} 0 0 0 0 0 0", user / cpus, system / cpus, idle / cpus);
    }
    let running = running(subject);
    let born = subject.kernel.tree.lock().last_pid();
    let boot = subject.kernel.booted_real / 1_000_000_000;
    let _ = writeln!(
        text,
        "intr 0\nctxt {}\nbtime {boot}\nprocesses {born}\nprocs_running {running}\nprocs_blocked 0\nsoftirq 0",
        used.waits + used.preemptions
    );
    Ok(())
}

fn version(subject: &Subject, text: &mut Text) -> Result<()> {
    let uts = *subject.kernel.uts.read();
    let name = |field: &[u8]| {
        alloc::string::String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
    };
    let _ = writeln!(text, "{} version {} {}", name(&uts.sysname), name(&uts.release), name(&uts.version));
    Ok(())
}

/// Caches of objects of one size: the heap has none.
fn slabinfo(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> ");
    text.bytes(b": tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n");
    Ok(())
}

/// What is set to happen at a time: one queue for all processors. What threads sleep for is the machine's to know.
fn timer_list(subject: &Subject, text: &mut Text) -> Result<()> {
    let now = subject.kernel.machine.clock().monotonic();
    let _ = writeln!(text, "Timer List Version: v0.10\nHRTIMER_MAX_CLOCK_BASES: 1\nnow at {now} nsecs\n\ncpu: 0\n clock 0:");
    let _ = writeln!(text, "  .index:      0\n  .resolution: 1 nsecs\n  .offset:     0 nsecs\nactive timers:");
    for (place, (at, number, what)) in subject.kernel.timers.list().into_iter().enumerate() {
        let left = at as i64 - now as i64;
        let _ = writeln!(
            text,
            " #{place}: <{number:016x}>, {what}, S:01\n # expires at {at}-{at} nsecs [in {left} to {left} nsecs]"
        );
    }
    Ok(())
}

static SYSVIPC: &[Entry] = &[Entry::text("msg", sysv_msg), Entry::text("sem", sysv_sem), Entry::text("shm", sysv_shm)];

#[rustfmt::skip]
fn sysv_shm(subject: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n");
    for (id, segment) in subject.kernel.ipc.shm.ids.all().0 {
        let s = segment.stat();
        let p = s.perm;
        let _ = writeln!(
            text,
            "{:10} {id:10}  {:4o} {:21} {:5} {:5}  {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10} {:21} {:21}",
            p.key, p.mode, s.segsz, s.cpid, s.lpid, s.nattch, p.uid, p.gid, p.cuid, p.cgid, s.atime, s.dtime, s.ctime, segment.resident(), 0
        );
    }
    Ok(())
}

fn sysv_sem(subject: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n");
    for (id, set) in subject.kernel.ipc.sem.all().0 {
        let s = set.stat(id);
        let p = s.perm;
        let _ = writeln!(
            text,
            "{:10} {id:10}  {:4o} {:10} {:5} {:5} {:5} {:5} {:10} {:10}",
            p.key, p.mode, s.nsems, p.uid, p.gid, p.cuid, p.cgid, s.otime, s.ctime
        );
    }
    Ok(())
}

fn sysv_msg(subject: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n");
    for (id, queue) in subject.kernel.ipc.msg.all().0 {
        let s = queue.stat(id);
        let p = s.perm;
        let _ = writeln!(
            text,
            "{:10} {id:10}  {:4o}  {:10} {:10} {:5} {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10}",
            p.key, p.mode, s.cbytes, s.qnum, s.lspid, s.lrpid, p.uid, p.gid, p.cuid, p.cgid, s.stime, s.rtime, s.ctime
        );
    }
    Ok(())
}
