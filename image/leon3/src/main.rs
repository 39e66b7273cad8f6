//! The LEON3 kernel image: joins the machine, its gate and the invasive personality.
//!
//! The loader brings one module besides the kernel: the personality's configuration, which holds the application.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

// A check of the whole workspace, for the host, finds the standard library's allocator and panic handler.
#[cfg(not(target_arch = "sparc"))]
extern crate std;

#[cfg(target_arch = "sparc")]
mod machine {
    extern crate alloc;

    use alloc::vec::Vec;
    use core::sync::atomic::AtomicU32;

    use janua_abi::invasive::record::library;
    use janua_gate::ta::Ta;
    use janua_kernel::Run;
    use janua_personality_invasive::config::Config;
    use janua_personality_invasive::memory::Layout;
    use janua_personality_invasive::system::Direct;
    use janua_personality_invasive::{Invasive, system, table};
    use janua_platform_leon3::heap::{self, Heap};
    use janua_platform_leon3::machine::{Leon3, LockSleep};
    use janua_platform_leon3::report;
    use janua_port::TrapGate;
    use janua_rt::Sleep;

    #[global_allocator]
    static HEAP: Heap = heap::new();

    /// The gates of this image.
    static GATES: [&dyn TrapGate; 1] = [&Ta];

    /// Where the one tile has what. Programs are linked below.
    const LAYOUT: Layout = Layout {
        records: 0x0f00_0000,
        stacks: 0x1000_0000,
        stack_size: 0x1_0000,
        stack_count: 1024,
        heap: 0x2000_0000,
        heap_end: 0x4000_0000,
    };

    /// The functions of plain calls by number, 0 for other calls.
    fn functions() -> Vec<usize> {
        let address = |run: &Run<Invasive>| if let Run::Plain(function) = run { *function as usize } else { 0 };
        table::ROWS.iter().map(|row| address(&row.run)).collect()
    }

    struct Locks;

    impl Sleep for Locks {
        fn sleep(&self, word: &AtomicU32, expected: u32) {
            LockSleep::sleep(word, expected);
        }
        fn wake_one(&self, word: &AtomicU32) {
            LockSleep::wake(word);
        }
    }

    static LOCKS: &dyn Sleep = &Locks;

    /// Where the platform's start code goes.
    #[expect(unsafe_code, reason = "the platform's start code calls it by this name")]
    #[unsafe(no_mangle)]
    extern "C" fn janua_start() -> ! {
        let machine = Leon3::start(&GATES);
        janua_rt::sync::set_sleep(&LOCKS);
        let config = Config::decode(machine.module());
        // Programs may call the kernel by address only where nothing keeps them from it.
        if config.is_ok_and(|config| usize::from(config.library) != library::GATE) {
            machine.unprotect();
        }
        let direct = machine.call_entry().map(|entry| Direct { functions: functions(), entry });
        let kernel = match system::start(machine, machine.module(), LAYOUT, direct, |_| false) {
            Ok(kernel) => kernel,
            Err(errno) => report::stop(format_args!("the kernel cannot start: {errno:?}")),
        };
        // The kernel lives as long as the machine; its cores have no need of this thread.
        machine.serve(move || {
            let _ = &kernel;
            None
        })
    }

    #[panic_handler]
    fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
        report::stop(format_args!("kernel fault: {info}"))
    }
}
