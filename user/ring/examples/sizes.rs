//! The sizes of files, asked for at once: `cargo build -p janua-ring --example sizes`, then `janua run -- target/debug/examples/sizes FILE...`

use std::ffi::CString;

use janua_ring::{Call, Error, Full, Ring};

/// lstat(2), and the place of the size in what it fills in.
const LSTAT: u32 = 6;
const SIZE: usize = 6;

fn main() -> Result<(), String> {
    let names: Vec<CString> = std::env::args().skip(1).filter_map(|name| CString::new(name).ok()).collect();
    let mut attributes = vec![[0_u64; 18]; names.len()];
    let mut ring = Ring::open(16, 8).map_err(|Error(number)| format!("no ring: errno {number}"))?;
    let (mut next, mut ended) = (0, 0);
    while ended < names.len() {
        while let Some(name) = names.get(next) {
            let words = [name.as_ptr().addr() as u64, attributes[next].as_mut_ptr().addr() as u64, 0, 0, 0, 0];
            // SAFETY: a name, and room for the attributes, which nobody looks at before the call is over.
            match unsafe { ring.push(&Call { number: LSTAT, words, tag: next as u64, ..Call::default() }) } {
                Ok(()) => next += 1,
                Err(Full) => break,
            }
        }
        ring.submit();
        ring.wait(1, 0).map_err(|Error(number)| format!("errno {number}"))?;
        while let Some(end) = ring.end() {
            ended += 1;
            let at = end.tag as usize;
            let name = names[at].to_string_lossy();
            match end.result {
                0 => println!("{:>12} {name}", attributes[at][SIZE]),
                error => println!("errno {:>6} {name}", -error),
            }
        }
    }
    Ok(())
}
