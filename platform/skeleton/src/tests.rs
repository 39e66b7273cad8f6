//! The skeleton can be constructed and passed where the kernel wants a machine, and reports nothing that is not so.

extern crate std;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::AtomicU32;
use std::panic::{AssertUnwindSafe, catch_unwind};

use janua_abi::linux::Errno;
use janua_port::guest::Abi;
use janua_port::host::SocketCall;
use janua_port::machine::{Memory, NewSpace, Outside};
use janua_port::{
    Backing, Context, Fault, Flow, Frame, Guest, HostFd, HostSignal, HostedGate, Machine, Prot, Registers, Space, Spawn,
    SpawnKind, Trap, UserMemory,
};

use crate::SkeletonMachine;
use crate::context::{SkeletonContext, SkeletonRegisters};
use crate::gate::SkeletonGate;
use crate::space::SkeletonSpace;
use crate::user::SkeletonUser;

static MACHINE: &dyn Machine = &SkeletonMachine;

/// A guest that is never run, and records it if it is.
struct Nobody(AtomicU32);

impl Guest for Nobody {
    fn attach(&self, _context: Arc<dyn Context>) {}

    fn store_fault(&self, _addr: usize) -> bool {
        false
    }

    fn call(&self, _frame: &mut Frame, _abi: Abi) -> Flow {
        Flow::Exit
    }
    fn trap(&self, _frame: &mut Frame, _trap: Trap) -> Flow {
        Flow::Exit
    }
    fn poll(&self, _frame: &mut Frame) -> Flow {
        Flow::Exit
    }
    fn start(&self, _frame: &mut Frame) -> Flow {
        self.0.store(7, core::sync::atomic::Ordering::SeqCst);
        Flow::Exit
    }
    fn wake_word(&self) -> &AtomicU32 {
        &self.0
    }
    fn has_work(&self) -> bool {
        false
    }
    fn set_gate(&self, _gate: janua_port::GateId) {}
}

/// The report with which `call` ended.
fn report<T>(call: impl FnOnce() -> T) -> String {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(_) => String::from("returned"),
        Err(reason) => *reason.downcast::<String>().unwrap_or_default(),
    }
}

#[test]
fn threads_are_refused_and_never_started() {
    let guest = Arc::new(Nobody(AtomicU32::new(0)));
    for kind in [SpawnKind::Thread, SpawnKind::Fork, SpawnKind::SharedSpace] {
        let spawn = Spawn { kind, frame: Frame::default(), tls: None, guest: guest.clone(), space: None };
        assert_eq!(SkeletonContext.spawn(spawn).map(|_| ()), Err(Errno::ENOSYS));
    }
    assert_eq!(MACHINE.spawn_first(guest.clone()).map(|_| ()), Err(Errno::ENOSYS));
    let ran = Arc::new(AtomicU32::new(0));
    let body = {
        let ran = ran.clone();
        Box::new(move || ran.store(1, core::sync::atomic::Ordering::SeqCst))
    };
    assert_eq!(MACHINE.spawn_kernel("service", body), Err(Errno::ENOSYS));
    assert_eq!(guest.0.load(core::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(ran.load(core::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(Arc::strong_count(&guest), 1, "a refused thread's guest is given back");
}

#[test]
fn what_can_fail_says_enosys() {
    assert_eq!(SkeletonContext.restrict(&[1]), Err(Errno::ENOSYS));
    assert_eq!(SkeletonContext.set_nice(1), Err(Errno::ENOSYS));
    assert_eq!(SkeletonContext.membarrier(0, 0, 0), Err(Errno::ENOSYS));
    assert_eq!(SkeletonContext.residency(&mut |_| panic!("there is nothing")), Err(Errno::ENOSYS));
    let registers = SkeletonContext.registers().unwrap();
    assert_eq!(registers.fpu_restore(&[0; 512]), Err(Errno::ENOSYS));
    assert_eq!(registers.fpu_restore_part(&[0; 576], 3), Err(Errno::EINVAL));

    let space: Arc<dyn Space> = Arc::new(SkeletonSpace);
    let prot = Prot { read: true, write: true, exec: false };
    assert_eq!(space.map(0x1000, 0x1000, prot, &Backing::Anon), Err(Errno::ENOSYS));
    assert_eq!(space.unmap(0x1000, 0x1000), Err(Errno::ENOSYS));
    assert_eq!(space.protect(0x1000, 0x1000, prot), Err(Errno::ENOSYS));
    assert_eq!(space.remap(0x1000, 0x1000, 0x2000, 0x1000), Err(Errno::ENOSYS));
    let bounds = space.bounds();
    assert_eq!(bounds.low, bounds.high);
    let shared = MACHINE.space_for(SpawnKind::Thread, &space).unwrap();
    assert!(matches!(shared, NewSpace::Whole(shared) if Arc::ptr_eq(&shared, &space)));
    assert_eq!(space.reset(true).map(|_| ()), Err(Errno::ENOSYS));

    let host = MACHINE.host().expect("the skeleton shows a host as well");
    let (files, sockets) = (host.files().expect("files as well"), host.sockets().expect("and sockets"));
    assert_eq!(files.open(HostFd(-100), b"/", 0, 0, 0), Err(Errno::ENOSYS));
    assert_eq!(host.read(HostFd(0), &mut [0], None), Err(Errno::ENOSYS));
    assert_eq!(MACHINE.memory_object("x").map(|_| ()), Err(Errno::ENODEV));
    assert_eq!(sockets.socket_call(SocketCall::Shutdown { fd: HostFd(0), how: 0 }), Err(Errno::ENOSYS));
    assert_eq!(host.poll(HostFd(0), u32::MAX), 0);

    let gate: &dyn HostedGate = &SkeletonGate;
    let mut selector = 9;
    assert_eq!(gate.arm_sandbox(), Err(Errno::ENOSYS));
    assert_eq!(gate.arm_thread(&raw mut selector), Err(Errno::ENOSYS));
    assert_eq!(selector, 9);
    let signal = HostSignal { signal: 31, code: 2, number: 0, arch: 0xc000_003e };
    assert_eq!(gate.accept(&signal, &mut Frame::default(), &SkeletonUser), None);
}

#[test]
fn there_is_no_user_memory() {
    let user: &dyn UserMemory = SkeletonContext.memory();
    let here = [1u8; 8];
    let address = here.as_ptr() as usize;
    let mut out = [5u8; 8];
    assert!(!user.is_user(address, 1) && !user.in_range(address, 1));
    assert_eq!(user.copy_in(&mut out, address), Err(Fault));
    assert_eq!(user.copy_in_partial(&mut out, address), 0);
    assert_eq!(out, [5; 8], "nothing was copied");
    assert_eq!(user.copy_out(address, &out), Err(Fault));
    assert_eq!(user.copy_str(&mut out, address), Err(Fault));
    assert_eq!(user.cmpxchg_u32(address, 0x0101_0101, 2), Err(Fault));
    assert_eq!(here, [1; 8]);
}

#[test]
fn where_none_is_an_answer_it_is_given() {
    assert_eq!(MACHINE.vdso(), None);
    assert_eq!(SkeletonContext.resident(), None);
    assert_eq!(SkeletonContext.cpu(true), None);
    assert_eq!(SkeletonContext.outer_number(), None);
    assert_eq!(MACHINE.isa().fpu.size, 0);
    assert_eq!(MACHINE.memory(), Memory::default());
    assert!(MACHINE.cpu() < MACHINE.cpus());
}

#[test]
fn everything_else_ends_with_the_name_of_what_lacks() {
    let word = AtomicU32::new(0);
    let reports = [
        ("Clock::monotonic", report(|| MACHINE.clock().monotonic())),
        ("Clock::realtime", report(|| MACHINE.clock().realtime())),
        ("Console::write", report(|| MACHINE.console().write(b"hello"))),
        ("Park::park", report(|| MACHINE.park().park(&word, 0, None))),
        ("Park::unpark", report(|| MACHINE.park().unpark(&word, 1))),
        ("Park::yield_now", report(|| MACHINE.park().yield_now())),
        ("Context::id", report(|| SkeletonContext.id())),
        ("Context::kick", report(|| SkeletonContext.kick())),
        ("Registers::tls", report(|| SkeletonRegisters.tls())),
        ("Registers::set_tls", report(|| SkeletonRegisters.set_tls(0))),
        ("Registers::fpu_save", report(|| SkeletonRegisters.fpu_save(&mut []))),
        ("Machine::random", report(|| MACHINE.random(&mut [0; 16]))),
        ("Machine::notify_outside", report(|| MACHINE.notify_outside(Outside::Ended(0)))),
    ];
    for (name, report) in reports {
        assert_eq!(report, alloc::format!("the skeleton platform does not implement {name}"));
    }
}
