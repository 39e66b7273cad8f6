#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| janua_fuzz::run("capabilities", input));
