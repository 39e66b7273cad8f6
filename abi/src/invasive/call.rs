//! The numbers of the calls: one for each function of the interface, ascending, never given twice.
//!
//! Number 0 gives up the core: kernels take 0 for every number beyond the end where they call a function without looking further
//! (`janua_port::PlainTable`), so it must not be one of those calls.

macro_rules! numbers {
    ($($number:literal $constant:ident $name:literal $words:literal;)*) => {
        $(#[doc = concat!("`", $name, "`, argument words: ", stringify!($words))] pub const $constant: usize = $number;)*
        /// Name and argument words of each call; the index is its number.
        pub const CALLS: &[(&str, usize)] = &[$(($name, $words)),*];
    };
}

numbers! {
    0 ILET_EXIT "ilet_exit" 0;
    1 EMPTY_1 "empty_1" 1;
    2 EMPTY_2 "empty_2" 2;
    3 EMPTY_3 "empty_3" 3;
    4 EMPTY_4 "empty_4" 4;
    5 EMPTY_5 "empty_5" 5;
    6 EMPTY_6 "empty_6" 6;
    7 SHUTDOWN "shutdown" 1;
    8 PRINT "print" 2;
    9 CLOCK_READ "clock_read" 1;
    10 EMPTY_0 "empty_0" 0;
    11 CLAIM_CONSTRUCT "claim_construct" 0;
    12 INVADE_SIMPLE "invade_simple" 2;
    13 RETREAT "retreat" 2;
    14 INFECT "infect" 3;
    15 INFECT_SIMPLE "infect_simple" 1;
    16 GET_CLAIM "get_claim" 0;
    17 CLAIM_GET_SIZE "claim_get_size" 0;
    18 CLAIM_SET_LOCAL_DATA "claim_set_local_data" 1;
    19 CLAIM_GET_LOCAL_DATA "claim_get_local_data" 0;
    20 SIMPLE_ILET_INIT "simple_ilet_init" 3;
    21 DUAL_ILET_INIT "dual_ilet_init" 4;
    22 SIMPLE_SIGNAL_INIT "simple_signal_init" 2;
    23 SIMPLE_SIGNAL_GET_MAX_PROC_COUNT "simple_signal_get_max_proc_count" 0;
    24 SIMPLE_SIGNAL_ADD_SIGNALERS "simple_signal_add_signalers" 2;
    25 SIMPLE_SIGNAL_GET_COUNTER "simple_signal_get_counter" 1;
    26 SIMPLE_SIGNAL_WAIT "simple_signal_wait" 1;
    27 SIMPLE_SIGNAL_SIGNAL "simple_signal_signal" 1;
    28 SIMPLE_SIGNAL_SIGNAL_AND_EXIT "simple_signal_signal_and_exit" 1;
    29 INFECT_SIGNAL_INIT "infect_signal_init" 3;
    30 INFECT_SIGNAL_SIGNAL "infect_signal_signal" 1;
    31 INFECT_SIGNAL_SIGNAL_AND_EXIT "infect_signal_signal_and_exit" 1;
    32 BINARY_SIGNAL_INIT "binary_signal_init" 1;
    33 BINARY_SIGNAL_GET_COUNTER "binary_signal_get_counter" 1;
    34 BINARY_SIGNAL_WAIT "binary_signal_wait" 1;
    35 BINARY_SIGNAL_SIGNAL "binary_signal_signal" 1;
    36 BINARY_SIGNAL_SIGNAL_AND_EXIT "binary_signal_signal_and_exit" 1;
    37 GET_CPU_ID "get_cpu_id" 0;
    38 GET_TILE_ID "get_tile_id" 0;
    39 GET_TILE_CORE_COUNT "get_tile_core_count" 0;
    40 GET_TILE_COUNT "get_tile_count" 0;
    41 GET_COMPUTE_TILE_COUNT "get_compute_tile_count" 0;
    42 GET_COMPUTE_TILE_IDS "get_compute_tile_ids" 2;
    43 GET_IO_TILE_ID "get_io_tile_id" 0;
    44 GET_TILE_ID_FROM_PTR "get_tile_id_from_ptr" 1;
    45 GET_GLOBAL_ADDRESS "get_global_address" 1;
    46 GET_GLOBAL_ADDRESS_FOR_TILE "get_global_address_for_tile" 2;
    47 GET_LOCAL_ADDRESS "get_local_address" 1;
    48 PROXY_INVADE "proxy_invade" 3;
    49 INVADE_FUTURE_FORCE "invade_future_force" 1;
    50 PROXY_REINVADE "proxy_reinvade" 3;
    51 REINVADE_FUTURE_FORCE "reinvade_future_force" 1;
    52 PROXY_RETREAT "proxy_retreat" 2;
    53 RETREAT_FUTURE_FORCE "retreat_future_force" 1;
    54 PROXY_INFECT "proxy_infect" 3;
    55 PROXY_PUSH_DMA "proxy_push_dma" 6;
    56 PROXY_CLAIM_PULL_DMA "proxy_claim_pull_dma" 6;
    57 PROXY_GET_TID "proxy_get_tid" 1;
    58 PROXY_GET_DISPATCH_INFO "proxy_get_dispatch_info" 1;
    59 GET_PARENT_DISPATCH_CLAIM "get_parent_dispatch_claim" 0;
    60 GET_OWN_DISPATCH_CLAIM "get_own_dispatch_claim" 0;
    61 DISPATCH_CLAIM_INFECT "dispatch_claim_infect" 3;
    62 DISPATCH_CLAIM_PUSH_DMA "dispatch_claim_push_dma" 6;
    63 DISPATCH_CLAIM_PULL_DMA "dispatch_claim_pull_dma" 6;
    64 DISPATCH_CLAIM_SEND_REPLY "dispatch_claim_send_reply" 1;
    65 DISPATCH_CLAIM_GET_TID "dispatch_claim_get_tid" 1;
    66 INFECT_SELF "infect_self" 2;
    67 SYNC_DMA_TRANSFER "sync_dma_transfer" 3;
    68 SYNC_DMA_MEMSET "sync_dma_memset" 3;
    69 ASYNC_LDMA_COPY "async_ldma_copy" 4;
    70 ASYNC_LDMA_COPY_ILET "async_ldma_copy_ilet" 4;
    71 SYSCALL_FUTURE_INIT "syscall_future_init" 1;
    72 SYSCALL_FUTURE_RET_VAL "syscall_future_ret_val" 1;
    73 SYSCALL_FUTURE_ON_COMPLETION "syscall_future_on_completion" 2;
    74 SYSCALL_FUTURE_WAIT "syscall_future_wait" 1;
    75 MEM_MAP "mem_map" 2;
    76 MEM_UNMAP "mem_unmap" 2;
    77 MEM_GET_PAGE_SIZE "mem_get_page_size" 0;
    78 MEM_GET_PAGE_COUNT "mem_get_page_count" 1;
    79 GET_CUR_ILET_SCHED_DOM "get_cur_ilet_sched_dom" 0;
    80 SET_CUR_ILET_SCHED_DOM "set_cur_ilet_sched_dom" 1;
    81 ETH_OPEN "eth_open" 1;
    82 SEND_RPC "send_rpc" 4;
}
