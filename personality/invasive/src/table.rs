//! The table of calls. The numbers are those of [`janua_abi::invasive::call`].

use alloc::vec::Vec;

use janua_abi::invasive::types::{Future, Ilet, InfectSignal, Signal};
use janua_kernel::UserPtr;
use janua_port::{Flow, Frame};

use crate::handler::{claim, dma, ilet, memory, misc, remote, signal, tile};
use crate::{Invasive, Seat};

/// The rows, and beside each the kernel's function for it as programs may call it by address. What may give up the core is `frame`,
/// though it leaves the registers to [`crate::switch`].
macro_rules! rows {
    ($($number:literal $name:ident ( $($arg:ident : $t:ty),* ) => $how:ident $($path:ident)::* , $place:ident , $support:ident $(($note:literal))?;)*) => {
        janua_kernel::calls! {
            /// By number.
            pub static ROWS for Invasive;
            $($number $name($($arg: $t),*) => $how $($path)::*, $place, $support $(($note))?;)*
        }
        const DIRECT: &[fn(&Seat, &mut Frame) -> Flow] = &[$(direct::<$number>),*];
    };
}

rows! {
    0 ilet_exit() => frame ilet::exit, home, Full;
    1 empty_1(a: usize) => plain misc::empty_1, home, Full;
    2 empty_2(a: usize, b: usize) => plain misc::empty_2, home, Full;
    3 empty_3(a: usize, b: usize, c: usize) => plain misc::empty_3, home, Full;
    4 empty_4(a: usize, b: usize, c: usize, d: usize) => plain misc::empty_4, home, Full;
    5 empty_5(a: usize, b: usize, c: usize, d: usize, e: usize) => plain misc::empty_5, home, Full;
    6 empty_6(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) => plain misc::empty_6, home, Full;
    7 shutdown(code: i32) => frame misc::shutdown, home, Full;
    8 print(text: UserPtr<u8>, len: usize) => plain misc::print, home, Full;
    9 clock_read(to: UserPtr<u64>) => plain misc::clock, home, Full;
    10 empty_0() => plain misc::empty_0, home, Full;
    11 claim_construct() => plain claim::construct, home, Full;
    12 invade_simple(claim: usize, quantity: u32) => plain claim::invade_simple, home, Full;
    13 retreat(claim: usize, quantity: u32) => plain claim::retreat, home, Full;
    14 infect(claim: usize, team: UserPtr<Ilet>, size: usize) => plain claim::infect, home, Full;
    15 infect_simple(ilet: UserPtr<Ilet>) => plain claim::infect_simple, home, Full;
    16 get_claim() => plain claim::get_claim, home, Full;
    17 claim_get_size() => plain claim::get_size, home, Full;
    18 claim_set_local_data(data: usize) => plain claim::set_local_data, home, Full;
    19 claim_get_local_data() => plain claim::get_local_data, home, Full;
    20 simple_ilet_init(ilet: UserPtr<Ilet>, code: usize, first: usize) => plain ilet::simple_init, home, Full;
    21 dual_ilet_init(ilet: UserPtr<Ilet>, code: usize, first: usize, second: usize) => plain ilet::dual_init, home, Full;
    22 simple_signal_init(signal: UserPtr<Signal>, count: u32) => plain signal::simple_init, home, Full;
    23 simple_signal_get_max_proc_count() => plain signal::max_count, home, Full;
    24 simple_signal_add_signalers(signal: UserPtr<Signal>, more: u32) => plain signal::add_signalers, home, Full;
    25 simple_signal_get_counter(signal: UserPtr<Signal>) => plain signal::get_counter, home, Full;
    26 simple_signal_wait(signal: UserPtr<Signal>) => frame signal::wait, home, Full;
    27 simple_signal_signal(signal: UserPtr<Signal>) => plain signal::signal, home, Full;
    28 simple_signal_signal_and_exit(signal: UserPtr<Signal>) => frame signal::signal_and_exit, home, Full;
    29 infect_signal_init(signal: UserPtr<InfectSignal>, count: u32, ilet: UserPtr<Ilet>) => plain signal::infect_init, home, Full;
    30 infect_signal_signal(signal: UserPtr<InfectSignal>) => plain signal::infect_signal, home, Full;
    31 infect_signal_signal_and_exit(signal: UserPtr<InfectSignal>) => frame signal::infect_signal_and_exit, home, Full;
    32 binary_signal_init(signal: UserPtr<Signal>) => plain signal::binary_init, home, Full;
    33 binary_signal_get_counter(signal: UserPtr<Signal>) => plain signal::get_counter, home, Full;
    34 binary_signal_wait(signal: UserPtr<Signal>) => frame signal::wait, home, Full;
    35 binary_signal_signal(signal: UserPtr<Signal>) => plain signal::signal, home, Full;
    36 binary_signal_signal_and_exit(signal: UserPtr<Signal>) => frame signal::signal_and_exit, home, Full;
    37 get_cpu_id() => plain tile::cpu_id, home, Full;
    38 get_tile_id() => plain tile::tile_id, home, Full;
    39 get_tile_core_count() => plain tile::core_count, home, Full;
    40 get_tile_count() => plain tile::tile_count, home, Full;
    41 get_compute_tile_count() => plain tile::tile_count, home, Full;
    42 get_compute_tile_ids(to: UserPtr<u8>, most: usize) => plain tile::compute_ids, home, Full;
    43 get_io_tile_id() => plain tile::io_tile, home, Full;
    44 get_tile_id_from_ptr(address: usize) => plain tile::id_from_ptr, home, Full;
    45 get_global_address(address: usize) => plain tile::to_global, home, Full;
    46 get_global_address_for_tile(address: usize, tile: usize) => plain tile::to_global_for, home, Full;
    47 get_local_address(address: usize) => plain tile::to_local, home, Full;
    48 proxy_invade(tile: usize, future: UserPtr<Future>, quantity: u32) => plain remote::invade, home, Full;
    49 invade_future_force(future: UserPtr<Future>) => frame remote::force, home, Full;
    50 proxy_reinvade(proxy: usize, future: UserPtr<Future>, delta: i32) => plain remote::reinvade, home, Full;
    51 reinvade_future_force(future: UserPtr<Future>) => frame remote::force, home, Full;
    52 proxy_retreat(proxy: usize, future: UserPtr<Future>) => plain remote::retreat, home, Full;
    53 retreat_future_force(future: UserPtr<Future>) => frame remote::force, home, Full;
    54 proxy_infect(proxy: usize, team: UserPtr<Ilet>, size: usize) => plain remote::infect, home, Full;
    55 proxy_push_dma(proxy: usize, from: usize, to: usize, len: usize, here: UserPtr<Ilet>, there: UserPtr<Ilet>) => plain remote::push_dma, home, Full;
    56 proxy_claim_pull_dma(proxy: usize, to: usize, from: usize, len: usize, here: UserPtr<Ilet>, there: UserPtr<Ilet>) => plain remote::pull_dma, home, Full;
    57 proxy_get_tid(proxy: usize) => plain remote::tile_of, home, Full;
    58 proxy_get_dispatch_info(proxy: usize) => plain remote::dispatch_info, home, Full;
    59 get_parent_dispatch_claim() => plain remote::parent, home, Full;
    60 get_own_dispatch_claim() => plain remote::own, home, Full;
    61 dispatch_claim_infect(claim: usize, team: UserPtr<Ilet>, size: usize) => plain remote::infect, home, Full;
    62 dispatch_claim_push_dma(claim: usize, from: usize, to: usize, len: usize, here: UserPtr<Ilet>, there: UserPtr<Ilet>) => plain remote::push_dma, home, Full;
    63 dispatch_claim_pull_dma(claim: usize, to: usize, from: usize, len: usize, here: UserPtr<Ilet>, there: UserPtr<Ilet>) => plain remote::pull_dma, home, Full;
    64 dispatch_claim_send_reply(reply: UserPtr<Ilet>) => plain remote::send_reply, home, Full;
    65 dispatch_claim_get_tid(claim: usize) => plain remote::tile_of, home, Full;
    66 infect_self(team: UserPtr<Ilet>, size: usize) => plain claim::infect_self, home, Full;
    67 sync_dma_transfer(to: usize, from: usize, len: usize) => plain dma::transfer, home, Full;
    68 sync_dma_memset(to: usize, value: usize, len: usize) => plain dma::set, home, Full;
    69 async_ldma_copy(to: usize, from: usize, len: usize, future: UserPtr<Future>) => plain dma::copy, home, Full;
    70 async_ldma_copy_ilet(to: usize, from: usize, len: usize, then: UserPtr<Ilet>) => plain dma::copy_ilet, home, Full;
    71 syscall_future_init(future: UserPtr<Future>) => plain dma::future_init, home, Full;
    72 syscall_future_ret_val(future: UserPtr<Future>) => plain dma::future_value, home, Full;
    73 syscall_future_on_completion(future: UserPtr<Future>, then: UserPtr<Ilet>) => plain dma::on_completion, home, Full;
    74 syscall_future_wait(future: UserPtr<Future>) => frame dma::future_wait, home, Full;
    75 mem_map(kind: usize, pages: usize) => plain memory::map, home, Full;
    76 mem_unmap(addr: usize, pages: usize) => plain memory::unmap, home, Full;
    77 mem_get_page_size() => plain memory::page_size, home, Full;
    78 mem_get_page_count(kind: usize) => plain memory::page_count, home, Full;
    79 get_cur_ilet_sched_dom() => plain ilet::get_domain, home, Full;
    80 set_cur_ilet_sched_dom(domain: usize) => plain ilet::set_domain, home, Full;
    81 eth_open() => missing, home, Missing("no Ethernet device on these machines");
    82 send_rpc() => missing, home, Missing("system-internal, its format was never published");
}

/// A call without number, table and statistics.
fn direct<const NUMBER: usize>(seat: &Seat, frame: &mut Frame) -> Flow {
    seat.enter_row(frame, &ROWS[NUMBER])
}

/// Addresses of the kernel's functions by number, each a `fn(&Seat, &mut Frame) -> Flow`.
pub fn functions() -> Vec<usize> {
    DIRECT.iter().map(|function| *function as *const () as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::ROWS;
    use janua_abi::invasive::call::CALLS;

    #[test]
    fn rows_are_the_interface() {
        assert_eq!(ROWS.len(), CALLS.len());
        for (number, (row, (name, words))) in ROWS.iter().zip(CALLS).enumerate() {
            assert_eq!((row.number, row.name), (number, *name));
            let missing = matches!(row.run, janua_kernel::Run::Missing);
            assert!(missing || row.params.len() == *words, "{name} takes {} words", row.params.len());
        }
    }
}
