use std::vec;
use std::vec::Vec;
use std::{env, fs, println};

use janua_abi::linux::Errno;

use crate::elf::{self, Segment};
use crate::frames;
use crate::random;
use crate::rewrite::rewrite;
use crate::sites::{self, Form, Refusal};
use crate::trampoline::{self, Patch};

const BASE: u64 = 0x40_1000;
const ENTRY: u64 = 0x6000_0000_1234;

/// Code that starts with enough one-byte instructions for boundaries to be certain.
fn code(bytes: &[u8]) -> Vec<u8> {
    let mut code = vec![0x90; 300];
    code.extend_from_slice(bytes);
    code.extend_from_slice(&[0x90; 300]);
    code
}

fn one(bytes: &[u8]) -> (Vec<u8>, sites::Found) {
    let code = code(bytes);
    let found = sites::find(&code);
    (code, found)
}

fn refused(bytes: &[u8]) -> Vec<Refusal> {
    let (_, found) = one(bytes);
    assert!(found.sites.is_empty(), "{:?}", found.sites);
    Refusal::ALL.into_iter().filter(|&refusal| found.refused[refusal as usize] > 0).collect()
}

fn build(code: &[u8], site: &sites::Site, at: u64) -> (Patch, Vec<u8>) {
    let mut out = Vec::new();
    let patch = trampoline::build(code, BASE, site, at, ENTRY, &mut out).unwrap();
    (patch, out)
}

fn number_in_rcx(out: &[u8], lea: usize, at: u64) -> u64 {
    let displacement = i32::from_le_bytes(out[lea + 3..lea + 7].try_into().unwrap());
    (at + lea as u64 + 7).wrapping_add_signed(i64::from(displacement))
}

#[test]
fn a_number_and_a_call() {
    // mov $39, %eax; syscall
    let (code, found) = one(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3]);
    assert_eq!(found.sites.len(), 1);
    let site = found.sites[0];
    assert_eq!((site.form, site.start, site.len, site.call), (Form::Number, 300, 5, 305));
    let at = BASE - 4096;
    let (patch, out) = build(&code, &site, at);
    assert_eq!(out[..8], [0xb8, 39, 0, 0, 0, 0x48, 0x8d, 0x0d]);
    assert_eq!(number_in_rcx(&out, 5, at), BASE + 307);
    assert_eq!(out[12..14], [0x49, 0xbb]);
    assert_eq!(out[14..22], ENTRY.to_le_bytes());
    assert_eq!(out[22..25], [0x41, 0xff, 0xe3]);
    assert_eq!(out.len() % trampoline::ALIGN, 0);
    let jump = patch.jump().unwrap();
    assert_eq!(jump[0], 0xe9);
    let to = (BASE + 305).wrapping_add_signed(i64::from(i32::from_le_bytes(jump[1..].try_into().unwrap())));
    assert_eq!(to, at);
    // Before the number is loaded the site's first instruction stands for the trampoline, then its syscall.
    assert_eq!(patch.original(at), Some(BASE + 300));
    assert_eq!(patch.original(at + 5), Some(BASE + 305));
    assert_eq!(patch.original(at + 22), Some(BASE + 305));
    assert_eq!(patch.original(at + 25), None);
    assert_eq!(patch.original(at - 1), None);
    assert_eq!(patch.moved(BASE + 305), None);
}

#[test]
fn a_number_an_address_and_a_call() {
    // mov $14, %eax; lea 0x100(%rip), %rsi; syscall; mov (%rbx), %rax
    let bytes = [0xb8, 14, 0, 0, 0, 0x48, 0x8d, 0x35, 0, 1, 0, 0, 0x0f, 0x05, 0x48, 0x8b, 0x03, 0xc3];
    let (code, found) = one(&bytes);
    let site = found.sites[0];
    assert_eq!((site.form, site.start, site.len, site.call), (Form::Number, 300, 12, 312));
    let at = BASE - 4096;
    let (patch, out) = build(&code, &site, at);
    assert_eq!(out[..8], bytes[..8]);
    // The address is the same, the return address is behind the call.
    assert_eq!(number_in_rcx(&out, 5, at), BASE + 312 + 0x100);
    assert_eq!(out[12..15], [0x48, 0x8d, 0x0d]);
    assert_eq!(number_in_rcx(&out, 12, at), BASE + 314);
    let originals = [(0, 300), (5, 305), (12, 312), (20, 312)];
    assert!(originals.iter().all(|&(offset, place)| patch.original(at + offset) == Some(BASE + place)));
    // Not with the number's own register, or one that is read and written; nor by a mov that the jump does not fit in.
    for lea in [[0x48, 0x8d, 0x05, 0, 1, 0, 0], [0x48, 0x8d, 0xb6, 0, 1, 0, 0], [0x8d, 0x35, 0, 1, 0, 0, 0x90]] {
        let mut other = bytes;
        other[5..12].copy_from_slice(&lea);
        assert_eq!(one(&other).1.sites, []);
    }
}

#[test]
fn a_store_to_the_stack_and_a_call() {
    // mov %r9, %r10; mov 8(%rsp), %r8; mov 16(%rsp), %r9; mov %r11, 8(%rsp); syscall; ret: a cancellation point
    let bytes = [
        0x4d, 0x89, 0xca, 0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c, 0x8b, 0x4c, 0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05,
        0xc3,
    ];
    let (code, found) = one(&bytes);
    let site = found.sites[0];
    assert_eq!((site.form, site.start, site.len, site.call), (Form::Number, 313, 5, 318));
    assert_eq!(sites::find_at(&code, 318), Ok(site));
    let at = BASE - 4096;
    let (patch, out) = build(&code, &site, at);
    assert_eq!(out[..8], [0x4c, 0x89, 0x5c, 0x24, 0x08, 0x48, 0x8d, 0x0d]);
    assert_eq!(number_in_rcx(&out, 5, at), BASE + 320);
    // Before the store its own place stands for the trampoline, then the call.
    assert_eq!(
        (patch.original(at), patch.original(at + 5), patch.moved(BASE + 318)),
        (Some(BASE + 313), Some(BASE + 318), None)
    );
    // A load: `syscall` of a function with seven arguments. Also with a copy of a register behind it.
    let load = [0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x48, 0x89, 0xca, 0x0f, 0x05, 0xc3];
    let (code, found) = one(&load);
    assert_eq!((found.sites[0].form, found.sites[0].start, found.sites[0].call), (Form::Number, 300, 308));
    assert_eq!(build(&code, &found.sites[0], at).1[..8], load[..8]);
    // A store elsewhere, of a vector register: movups %xmm0, 0x2d8(%rbx).
    let store = [0x0f, 0x11, 0x83, 0xd8, 0x02, 0, 0, 0x0f, 0x05, 0x31, 0xd2];
    let (code, found) = one(&store);
    assert_eq!((found.sites[0].form, found.sites[0].start, found.sites[0].call), (Form::Number, 300, 307));
    assert_eq!(build(&code, &found.sites[0], at).1[..7], store[..7]);
    // Not a move that the jump does not fit in, one of another segment, or what is more than a move.
    for other in [[0x90, 0x4c, 0x89, 0x1c, 0x24], [0x64, 0x48, 0x89, 0x5b, 0x08], [0x48, 0x83, 0x44, 0x24, 0x08]] {
        let mut changed = bytes;
        changed[13..18].copy_from_slice(&other);
        assert!(one(&changed).1.sites.is_empty(), "{other:x?}");
    }
}

#[test]
fn longer_ways_to_load_a_number() {
    let (_, found) = one(&[0x48, 0xc7, 0xc0, 39, 0, 0, 0, 0x0f, 0x05, 0xc3]);
    assert_eq!((found.sites[0].form, found.sites[0].start, found.sites[0].len), (Form::Number, 300, 7));
    let (_, found) = one(&[0xc7, 0xc0, 39, 0, 0, 0, 0x0f, 0x05, 0xc3]);
    assert_eq!((found.sites[0].form, found.sites[0].start, found.sites[0].len), (Form::Number, 300, 6));
}

#[test]
fn the_number_of_another_register_is_none() {
    // mov $15, %r8d; syscall; ret: the bytes b8 0f 00 00 00 are before the call, and are not an instruction. All of it makes way.
    let site = one(&[0x41, 0xb8, 15, 0, 0, 0, 0x0f, 0x05, 0xc3]).1.sites[0];
    assert_eq!((site.form, site.start, site.call), (Form::Number, 300, 306));
}

#[test]
fn bytes_within_an_instruction_are_no_call() {
    // mov $0x050f, %ecx; lea 0x50f(%rax), %rcx
    let (_, found) = one(&[0xb9, 0x0f, 0x05, 0, 0, 0x48, 0x8d, 0x88, 0x0f, 0x05, 0, 0]);
    assert!(found.sites.is_empty());
    assert_eq!(found.refused, [0; Refusal::COUNT]);
}

#[test]
fn what_follows_moves() {
    // xor %eax, %eax; syscall; cmp $-4096, %rax; ja +0x10
    let (code, found) = one(&[0x31, 0xc0, 0x0f, 0x05, 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0x77, 0x10, 0xc3]);
    let site = found.sites[0];
    assert_eq!((site.form, site.start, site.len), (Form::Tail, 302, 8));
    let at = BASE - 4096;
    let (patch, out) = build(&code, &site, at);
    assert_eq!(number_in_rcx(&out, 0, at), at + 22);
    assert_eq!(out[20..22], [0x0f, 0x05]);
    assert_eq!(out[22..28], [0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff]);
    assert_eq!(out[28], 0xe9);
    let back = (at + 33).wrapping_add_signed(i64::from(i32::from_le_bytes(out[29..33].try_into().unwrap())));
    assert_eq!(back, BASE + 310);
    assert_eq!(patch.original(at + 3), Some(BASE + 302));
    assert_eq!(patch.original(at + 20), Some(BASE + 302));
    assert_eq!(patch.original(at + 22), Some(BASE + 304));
    assert_eq!(patch.original(at + 28), Some(BASE + 310));
    assert_eq!(patch.moved(BASE + 304), Some(at + 22));
    assert_eq!(patch.moved(BASE + 302), None);
    assert_eq!(patch.moved(BASE + 306), None);
    assert_eq!(patch.moved(BASE + 310), None);
}

#[test]
fn jumps_and_addresses_are_encoded_anew() {
    // syscall; test %eax, %eax; js +0x20 (a short jump, second of the moved instructions)
    let (code, found) = one(&[0x31, 0xc0, 0x0f, 0x05, 0x85, 0xc0, 0x78, 0x20]);
    let site = found.sites[0];
    assert_eq!((site.start, site.len), (302, 6));
    let at = BASE - 4096;
    let (_, out) = build(&code, &site, at);
    assert_eq!(out[22..26], [0x85, 0xc0, 0x0f, 0x88]);
    let to = (at + 30).wrapping_add_signed(i64::from(i32::from_le_bytes(out[26..30].try_into().unwrap())));
    assert_eq!(to, BASE + 308 + 0x20);
    // syscall; mov %eax, 0x1000(%rip)
    let (code, found) = one(&[0x31, 0xc0, 0x0f, 0x05, 0x89, 0x05, 0x00, 0x10, 0, 0]);
    let (_, out) = build(&code, &found.sites[0], at);
    let to = (at + 28).wrapping_add_signed(i64::from(i32::from_le_bytes(out[24..28].try_into().unwrap())));
    assert_eq!(to, BASE + 310 + 0x1000);
}

#[test]
fn what_is_jumped_to_stays() {
    // xor; syscall; 1: test %eax, %eax; mov %eax, %ebx; jmp 1b
    assert_eq!(refused(&[0x31, 0xc0, 0x0f, 0x05, 0x85, 0xc0, 0x89, 0xc3, 0xeb, 0xfa]), [Refusal::JumpedTo]);
    // the same from before: jmp over the call
    assert_eq!(refused(&[0xeb, 0x04, 0x31, 0xc0, 0x0f, 0x05, 0x85, 0xc0, 0x89, 0xc3]), [Refusal::JumpedTo]);
    // a jump to the call itself is none to what follows it
    let (_, found) = one(&[0xeb, 0x02, 0x31, 0xc0, 0x0f, 0x05, 0x85, 0xc0, 0x89, 0xc3]);
    assert_eq!(found.sites.len(), 1);
    // a near jump from far away
    let mut far = code(&[0x31, 0xc0, 0x0f, 0x05, 0x85, 0xc0, 0x89, 0xc3]);
    far.resize(400_000, 0x90);
    let at = far.len();
    let distance = 304 - (at as i32 + 5);
    far.push(0xe9);
    far.extend_from_slice(&distance.to_le_bytes());
    let found = sites::find(&far);
    assert!(found.sites.is_empty());
    assert_eq!(found.refused[Refusal::JumpedTo as usize], 1);
}

#[test]
fn what_cannot_move_stays() {
    // xor; syscall; call: its return address would be the trampoline's
    assert_eq!(refused(&[0x31, 0xc0, 0x0f, 0x05, 0x85, 0xc0, 0xe8, 0, 1, 0, 0]), [Refusal::Unmovable]);
    // xor; syscall; jmp +2: what is behind is not this code's
    assert_eq!(refused(&[0x31, 0xc0, 0x0f, 0x05, 0xeb, 0x02, 0x55, 0x55]), [Refusal::Unrelated]);
    // xor; syscall; neg %al; another call
    assert_eq!(refused(&[0x31, 0xc0, 0x0f, 0x05, 0xf6, 0xd8, 0x0f, 0x05]), [Refusal::Unrelated, Refusal::Unmovable]);
    // A return as the last one may move.
    let (_, found) = one(&[0x31, 0xc0, 0x0f, 0x05, 0x85, 0xc0, 0xc3, 0x55]);
    assert_eq!((found.sites.len(), found.sites[0].len), (1, 5));
}

#[test]
fn what_moves_is_no_other_site() {
    // xor; syscall; mov %eax, %edx; mov $39, %eax; syscall: the jump of the first would end where that of the second begins.
    let bytes = [0x31, 0xc0, 0x0f, 0x05, 0x89, 0xc2, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3];
    let (_, found) = one(&bytes);
    let site = sites::Site { form: Form::Number, start: 306, len: 5, call: 311 };
    assert_eq!((&found.sites[..], found.refused[Refusal::Unmovable as usize]), (&[site][..], 1));
    // Nor one that may be rewritten once more is known of it.
    let mut returns = bytes;
    returns[7] = 15;
    let (_, mut found) = one(&returns);
    found.take_returns(|_| true);
    assert_eq!(found.sites, [site]);
}

#[test]
fn flags_across_a_call_are_noticed() {
    // mov $39, %eax; syscall; pushfq
    assert_eq!(refused(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x9c]), [Refusal::Flags]);
    // cmp %ebx, %ecx; mov $39, %eax; syscall; mov %rax, %rdx; je +2
    assert_eq!(refused(&[0x39, 0xd9, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x48, 0x89, 0xc2, 0x74, 0x02]), [Refusal::Flags]);
    // Where nobody knows what follows.
    let executed = [&[0x90; 300][..], &[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x48, 0x89]].concat();
    assert_eq!(sites::find_at(&executed, 305), Err(Refusal::Flags));
    // The same with a test of its own in between.
    let (_, found) = one(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x48, 0x89, 0xc2, 0x85, 0xc0, 0x74, 0x02]);
    assert_eq!(found.sites.len(), 1);
}

#[test]
fn a_signal_return_stays() {
    assert_eq!(refused(&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05]), [Refusal::SignalReturn]);
    assert_eq!(refused(&[0xb8, 15, 0, 0, 0, 0x0f, 0x05]), [Refusal::SignalReturn]);
}

#[test]
fn a_signal_return_that_is_marked_is_rewritten() {
    let (_, mut found) = one(&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05, 0x90, 0xb8, 15, 0, 0, 0, 0x0f, 0x05]);
    found.take_returns(|site| site.start == 300);
    let site = sites::Site { form: Form::Number, start: 300, len: 7, call: 307 };
    assert_eq!((&found.sites[..], found.refused[Refusal::SignalReturn as usize]), (&[site][..], 1));
}

/// A file of one segment at 0x1000: the table for unwinders at its start, a common part and a description of 0x2000 to 0x2009 in it.
fn with_frames(augmentation: &[u8; 3]) -> (elf::Layout, Vec<u8>) {
    let segment = Segment { offset: 0, vaddr: 0x1000, len: 0x100 };
    let mut file = vec![0; 0x100];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[1, 0x1b, 0x03, 0x3b]);
    put(8, &2u32.to_le_bytes());
    // Two entries, 0x1800 and 0x1fff, from the table's own address on.
    for (at, word) in [(12, 0x800u32), (16, 0x80), (20, 0xfff), (24, 0x60)] {
        put(at, &word.to_le_bytes());
    }
    put(0x40, &0x1cu32.to_le_bytes());
    put(0x48, &[1]);
    put(0x49, augmentation);
    put(0x4d, &[1, 0x78, 16, 1, 0x1b]);
    put(0x60, &0x10u32.to_le_bytes());
    put(0x64, &0x24u32.to_le_bytes());
    put(0x68, &(0x1fff - 0x1068u32).to_le_bytes());
    put(0x6c, &10u32.to_le_bytes());
    (elf::Layout { low: 0x1000, high: 0x3000, code: Vec::new(), frames: Some((0x1000, segment)) }, file)
}

#[test]
fn signal_frames() {
    let ask = |layout: &elf::Layout, file: &[u8], address: u64| {
        let mut read = |to: &mut [u8], at: u64| {
            to.copy_from_slice(file.get(at as usize..at as usize + to.len()).ok_or(Errno::EIO)?);
            Ok(())
        };
        frames::is_signal_frame(layout, address, &mut read)
    };
    let (layout, file) = with_frames(b"zRS");
    let reported = [0x1fff, 0x2000, 0x2009, 0x200a, 0x1800, 0, u64::MAX].map(|address| ask(&layout, &file, address));
    assert_eq!(reported, [false, true, true, false, false, false, false]);
    let (layout, plain) = with_frames(b"zR\0");
    assert!(!ask(&layout, &plain, 0x2000));
    // Whatever is there, a value is returned.
    for at in 0..0x70 {
        for byte in [0, 0x7f, 0xff] {
            let mut other = file.clone();
            other[at] = byte;
            ask(&layout, &other, 0x2000);
        }
    }
    assert!(!ask(&elf::Layout { frames: None, ..layout }, &file, 0x2000));
}

#[test]
fn hostile_bytes_end_in_a_refusal() {
    // Every end and every start of code that has all forms in it.
    let bytes = code(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x31, 0xc0, 0x0f, 0x05, 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff]);
    for end in 0..bytes.len() {
        let found = sites::find(&bytes[..end]);
        for site in found.sites {
            let mut out = Vec::new();
            let _ = trampoline::build(&bytes[..end], u64::MAX - 20, &site, 64, ENTRY, &mut out);
        }
        let _ = sites::find(&bytes[end..]);
        let _ = sites::find_at(&bytes[..end], end.saturating_sub(1));
        let _ = elf::layout(&bytes[..end]);
    }
    // Noise, with many calls in it.
    let mut random = random::numbers(random::given().unwrap_or(0), 0);
    let noise: Vec<u8> = (0..200_000)
        .map(|_| {
            let byte = random(256) as u8;
            [0x0f, 0x05, 0xb8, 0xe9, byte, byte, byte, 0][random(8) as usize]
        })
        .collect();
    let found = sites::find(&noise);
    let mut out = Vec::new();
    for site in &found.sites {
        let _ = trampoline::build(&noise, BASE, site, BASE - 4096, ENTRY, &mut out);
    }
}

/// A file's layout and code.
fn load(path: &str) -> Option<(elf::Layout, Vec<Vec<u8>>)> {
    let bytes = fs::read(path).ok()?;
    let layout = elf::layout(&bytes)?;
    let code = layout
        .code
        .iter()
        .map(|segment| bytes[segment.offset as usize..(segment.offset + segment.len) as usize].to_vec())
        .collect();
    Some((layout, code))
}

/// Rewrites real files and checks each patch: the jump leads to its trampoline, nothing but the windows has changed, and what
/// was overwritten decodes to whole instructions. Prints counts for a person.
#[test]
fn real_files() {
    let files = env::var("JANUA_TEXT_FILES").unwrap_or_else(|_| {
        "/usr/lib/x86_64-linux-gnu/libc.so.6 /lib64/ld-linux-x86-64.so.2 /usr/bin/python3 /usr/bin/busybox \
         /lib/ld-musl-x86_64.so.1 /usr/bin/bash /usr/bin/node"
            .into()
    });
    let mut looked_at = 0;
    for path in files.split_whitespace() {
        let Some((layout, original)) = load(path) else { continue };
        looked_at += 1;
        let mut changed = original.clone();
        let mut parts: Vec<(Segment, &mut [u8])> =
            layout.code.iter().copied().zip(changed.iter_mut().map(Vec::as_mut_slice)).collect();
        let started = std::time::Instant::now();
        let file = fs::read(path).unwrap();
        let mut read = |to: &mut [u8], at: u64| {
            to.copy_from_slice(&file[at as usize..][..to.len()]);
            Ok(())
        };
        let (count, rewritten) = rewrite(&layout, &mut parts, ENTRY, &mut read);
        println!("{path}: {} of {} sites in {:?}", count.rewritten, count.found(), started.elapsed());
        for refusal in Refusal::ALL {
            if count.refused[refusal as usize] > 0 {
                println!("    {} {}", count.refused[refusal as usize], refusal.text());
            }
        }
        let Some(rewritten) = rewritten else {
            assert_eq!(original, changed);
            continue;
        };
        println!(
            "    {} bytes of trampolines, {} by number",
            rewritten.trampolines.len(),
            rewritten.patches.iter().filter(|p| p.form == Form::Number).count()
        );
        let mut expected = original.clone();
        let first = layout.low.wrapping_sub(rewritten.trampolines.len() as u64);
        for patch in &rewritten.patches {
            let (index, segment) = layout
                .code
                .iter()
                .enumerate()
                .find(|(_, segment)| (segment.vaddr..segment.vaddr + segment.len).contains(&patch.start))
                .unwrap();
            let at = (patch.start - segment.vaddr) as usize;
            let jump = patch.jump().unwrap();
            expected[index][at..at + 5].copy_from_slice(&jump);
            let displacement = i64::from(i32::from_le_bytes(jump[1..].try_into().unwrap()));
            assert_eq!((patch.start + 5).wrapping_add_signed(displacement), patch.trampoline);
            assert!(patch.trampoline.wrapping_sub(first) < rewritten.trampolines.len() as u64);
            let mut offset = 0;
            while offset < usize::from(patch.len) {
                offset += crate::decode::at(&original[index], 0, at + offset).unwrap().len();
            }
            assert_eq!(offset, usize::from(patch.len));
            let call = at + if patch.form == Form::Number { usize::from(patch.len) } else { 0 };
            assert_eq!(original[index][call..call + 2], [0x0f, 0x05]);
        }
        assert!(expected == changed, "{path}: other bytes have changed");
        if path.ends_with("/libc.so.6") {
            assert!(count.rewritten * 10 > count.found() * 8, "most sites of a C library can be rewritten");
            assert_eq!(
                count.refused[Refusal::SignalReturn as usize],
                0,
                "glibc tells unwinders of its return from signal handlers"
            );
        }
    }
    assert!(looked_at > 0, "no file to look at");
}

#[test]
fn a_call_that_was_made_settles_how_its_bytes_are_read() {
    // Zeroes, which can be read from even and from odd places; xor %eax, %eax; syscall; cmp $-4096, %rax; ret
    let mut bytes = vec![0; 300];
    bytes.extend_from_slice(&[0x31, 0xc0, 0x0f, 0x05, 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0xc3]);
    bytes.extend_from_slice(&[0x90; 300]);
    assert_eq!(sites::find(&bytes).refused[Refusal::Unclear as usize], 1);
    let site = sites::find_at(&bytes, 302).unwrap();
    assert_eq!((site.form, site.call, site.len), (Form::Tail, 302, 8));
    // Where no reading leads to there is no call.
    assert!(sites::find_at(&[0xb8, 0, 0, 0, 0, 0xc3].repeat(60), 301).is_err());
}
