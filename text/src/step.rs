//! Doing the work of one instruction that cannot run where it is.
//!
//! Two kinds of instructions need it: those that store into the page they are in, which is never writable and executable at once,
//! and those whose bytes hold a forbidden instruction and have been overwritten ([`crate::patch_out`]). The set is what compilers
//! and just-in-time compilers make there: moves, integer arithmetic, pushes, near jumps and calls, loads of a vector register.
//! Everything else, everything with a segment, lock or repeat prefix, is not done. (Intel SDM volume 2 for each.)

use iced_x86::{
    Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, MemorySize, Mnemonic, OpKind, Register,
};

use crate::decode::LONGEST;

/// A thread's registers and memory.
pub trait Core {
    /// A general register by its number in instruction encodings.
    fn register(&self, number: usize) -> u64;
    /// Sets a general register.
    fn set_register(&mut self, number: usize, value: u64);
    /// RFLAGS.
    fn flags(&self) -> u64;
    /// Sets RFLAGS.
    fn set_flags(&mut self, flags: u64);
    /// Reads memory; false when that cannot be.
    fn load(&mut self, addr: u64, bytes: &mut [u8]) -> bool;
    /// Writes memory; false when that cannot be.
    fn store(&mut self, addr: u64, bytes: &[u8]) -> bool;
    /// Sets the lower 128 bits of a vector register (0 to 15); false when that cannot be.
    fn set_vector(&mut self, number: usize, value: u128) -> bool;
    /// `xrstor` from this address with the components asked for (edx:eax); false when it would fault.
    fn restore(&mut self, addr: u64, mask: u64) -> bool;
}

const CF: u64 = 1;
const PF: u64 = 1 << 2;
const AF: u64 = 1 << 4;
const ZF: u64 = 1 << 6;
const SF: u64 = 1 << 7;
const OF: u64 = 1 << 11;
const STATUS: u64 = CF | PF | AF | ZF | SF | OF;

const RAX: usize = 0;
const RDX: usize = 2;
const RSP: usize = 4;
const RBP: usize = 5;

/// Whether [`step`] can do an instruction, as far as can be seen without its operands' values.
pub fn knows(found: &Instruction) -> bool {
    use Mnemonic::*;
    let plain = !found.has_lock_prefix()
        && !found.has_rep_prefix()
        && !found.has_repne_prefix()
        && found.segment_prefix() == Register::None
        && found.vex_or_evex_free();
    let operands = match found.mnemonic() {
        Mov | Movzx | Movsx | Movsxd | Lea | Add | Or | And | Sub | Xor | Cmp | Test | Inc | Dec | Neg | Not | Push | Pop
        | Shl | Shr | Sar | Nop => (0..found.op_count()).all(|at| general(found, at)),
        Imul => found.op_count() >= 2,
        Cdqe | Cdq | Cqo => true,
        Leave | Ret => matches!(found.code(), Code::Leaveq | Code::Retnq),
        _ if conditional(found) => (0..found.op_count()).all(|at| general(found, at)),
        Movss | Movsd | Movups | Movaps | Movupd | Movapd | Movdqu | Movdqa => {
            found.op_count() == 2 && found.op0_register().is_xmm() && found.op1_kind() == OpKind::Memory
        }
        Xrstor | Xrstor64 => true,
        Jmp | Call => found.op0_kind() == OpKind::NearBranch64 || is_indirect(found),
        // `loope` and `loopne` have a condition, too, and count besides.
        _ => found.is_jcc_short_or_near() && found.op0_kind() == OpKind::NearBranch64,
    };
    plain && operands
}

/// Whether it is a `setcc` or `cmovcc`.
fn conditional(found: &Instruction) -> bool {
    found.condition_code() != ConditionCode::None && found.flow_control() == FlowControl::Next
}

/// Whether it is a near call or jump to an address in a register or in memory.
fn is_indirect(found: &Instruction) -> bool {
    match found.op0_kind() {
        OpKind::Register => found.op0_register().is_gpr64(),
        OpKind::Memory => found.memory_size() == MemorySize::QwordOffset,
        _ => false,
    }
}

/// Where a near call or jump goes.
fn target(core: &mut dyn Core, found: &Instruction) -> Option<u64> {
    if is_indirect(found) { read(core, found, 0, 8) } else { Some(found.near_branch_target()) }
}

trait Legacy {
    fn vex_or_evex_free(&self) -> bool;
}

impl Legacy for Instruction {
    fn vex_or_evex_free(&self) -> bool {
        self.encoding() == iced_x86::EncodingKind::Legacy
    }
}

/// Whether an operand is a general register, an immediate, or memory.
fn general(found: &Instruction, at: u32) -> bool {
    match found.op_kind(at) {
        OpKind::Register => found.op_register(at).is_gpr(),
        OpKind::Memory => true,
        kind => immediate(found, at, kind).is_some(),
    }
}

fn immediate(found: &Instruction, at: u32, kind: OpKind) -> Option<u64> {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
    .then(|| found.immediate(at))
}

/// Does the instruction `bytes` at address `rip`: the address to go on at. `None` when it is none of those known, or memory could
/// not be reached; then nothing has changed, except that the first of two stores may have been made.
pub fn step(core: &mut dyn Core, bytes: &[u8], rip: u64) -> Option<u64> {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let found = Decoder::with_ip(64, bytes, rip, DecoderOptions::NONE).decode();
    if found.is_invalid() || !knows(&found) {
        return None;
    }
    let next = found.next_ip();
    use Mnemonic::*;
    match found.mnemonic() {
        Ret => {
            let to = top(core)?;
            core.set_register(RSP, core.register(RSP).wrapping_add(8));
            return Some(to);
        }
        Call => {
            let to = target(core, &found)?;
            push(core, next)?;
            return Some(to);
        }
        Jmp => return target(core, &found),
        Mov | Movzx | Movsx | Movsxd | Lea | Cdqe | Cdq | Cqo => moved(core, &found)?,
        Push | Pop | Leave => stacked(core, &found)?,
        Add | Or | And | Sub | Xor | Cmp | Test | Inc | Dec | Neg | Not | Imul | Shl | Shr | Sar => calculated(core, &found)?,
        Nop => {}
        Movss | Movsd | Movups | Movaps | Movupd | Movapd | Movdqu | Movdqa => load_vector(core, &found)?,
        Xrstor | Xrstor64 => {
            let low = |number: usize| core.register(number) & 0xffff_ffff;
            let (addr, mask) = (address(core, &found)?, low(2) << 32 | low(0));
            core.restore(addr, mask).then_some(())?;
        }
        _ if conditional(&found) => chosen(core, &found)?,
        _ => {
            let taken = holds(found.condition_code(), core.flags())?;
            return Some(if taken { found.near_branch_target() } else { next });
        }
    }
    Some(next)
}

/// Moves of a value, as it is or extended.
fn moved(core: &mut dyn Core, found: &Instruction) -> Option<()> {
    use Mnemonic::*;
    let size = operand_size(found);
    let value = match found.mnemonic() {
        Mov => read(core, found, 1, size)?,
        Movzx => read(core, found, 1, operand_width(found, 1))?,
        Movsx | Movsxd => {
            let from = operand_width(found, 1);
            sign_extend(read(core, found, 1, from)?, from)
        }
        Lea => address(core, found)?,
        Cdqe => {
            core.set_register(RAX, sign_extend(core.register(RAX), 4));
            return Some(());
        }
        Cdq => {
            core.set_register(RDX, cut((sign_extend(core.register(RAX), 4) as i64 >> 63) as u64, 4));
            return Some(());
        }
        _ => {
            core.set_register(RDX, (core.register(RAX) as i64 >> 63) as u64);
            return Some(());
        }
    };
    write(core, found, 0, size, value)
}

/// What moves the stack pointer.
fn stacked(core: &mut dyn Core, found: &Instruction) -> Option<()> {
    match found.mnemonic() {
        Mnemonic::Push => {
            let value = read(core, found, 0, 8).filter(|_| found.stack_pointer_increment() == -8)?;
            push(core, value)
        }
        Mnemonic::Pop => {
            let value = top(core).filter(|_| found.stack_pointer_increment() == 8)?;
            let old = core.register(RSP);
            core.set_register(RSP, old.wrapping_add(8));
            let written = write(core, found, 0, 8, value);
            if written.is_none() {
                core.set_register(RSP, old);
            }
            written
        }
        _ => {
            let frame = core.register(RBP);
            let mut bytes = [0; 8];
            core.load(frame, &mut bytes).then_some(())?;
            core.set_register(RSP, frame.wrapping_add(8));
            core.set_register(RBP, u64::from_le_bytes(bytes));
            Some(())
        }
    }
}

/// Integer arithmetic and its flags.
fn calculated(core: &mut dyn Core, found: &Instruction) -> Option<()> {
    use Mnemonic::*;
    let size = operand_size(found);
    match found.mnemonic() {
        Inc | Dec => {
            let left = read(core, found, 0, size)?;
            let (value, flags) = arithmetic(if found.mnemonic() == Inc { Add } else { Sub }, left, 1, size);
            write(core, found, 0, size, value)?;
            core.set_flags(core.flags() & !(STATUS & !CF) | flags & !CF);
        }
        Neg => {
            let right = read(core, found, 0, size)?;
            let (value, flags) = arithmetic(Sub, 0, right, size);
            write(core, found, 0, size, value)?;
            core.set_flags(core.flags() & !STATUS | flags);
        }
        Not => {
            let value = !read(core, found, 0, size)?;
            write(core, found, 0, size, value)?;
        }
        Imul => {
            let first = if found.op_count() == 3 { 1 } else { 0 };
            let (left, right) = (read(core, found, first, size)?, read(core, found, first + 1, size)?);
            let wide = i128::from(sign_extend(left, size) as i64) * i128::from(sign_extend(right, size) as i64);
            let value = cut(wide as u64, size);
            let overflow = i128::from(sign_extend(value, size) as i64) != wide;
            write(core, found, 0, size, value)?;
            // The other status flags are undefined.
            core.set_flags(core.flags() & !(CF | OF) | if overflow { CF | OF } else { 0 });
        }
        Shl | Shr | Sar => {
            let count = read(core, found, 1, 1)? as u32 & if size == 8 { 63 } else { 31 };
            let left = read(core, found, 0, size)?;
            let (value, flags) = shifted(found.mnemonic(), left, count, size);
            // Also by no bits: a 32-bit register loses its upper half.
            write(core, found, 0, size, value)?;
            if count > 0 {
                core.set_flags(core.flags() & !STATUS | flags);
            }
        }
        _ => {
            let (left, right) = (read(core, found, 0, size)?, read(core, found, 1, size)?);
            let (value, flags) = arithmetic(found.mnemonic(), left, right, size);
            if !matches!(found.mnemonic(), Cmp | Test) {
                write(core, found, 0, size, value)?;
            }
            core.set_flags(core.flags() & !STATUS | flags);
        }
    }
    Some(())
}

/// `setcc` and `cmovcc`.
fn chosen(core: &mut dyn Core, found: &Instruction) -> Option<()> {
    let size = operand_size(found);
    let holds = holds(found.condition_code(), core.flags())?;
    let set = found.op_count() == 1;
    // A conditional move reads its source in any case, and clears the upper half of a 32-bit register.
    let value = match (set, holds) {
        (true, _) => u64::from(holds),
        (false, true) => read(core, found, 1, size)?,
        (false, false) => read(core, found, 1, size).and_then(|_| read(core, found, 0, size))?,
    };
    write(core, found, 0, size, value)
}

/// The word on top of the stack.
fn top(core: &mut dyn Core) -> Option<u64> {
    let mut bytes = [0; 8];
    core.load(core.register(RSP), &mut bytes).then(|| u64::from_le_bytes(bytes))
}

/// A shift by `count` bits, less than the width of a 64-bit operand: value and status flags, which are those of the
/// processor where they are defined.
fn shifted(mnemonic: Mnemonic, left: u64, count: u32, size: usize) -> (u64, u64) {
    let bits = 8 * size as u32;
    let sign = |value: u64| value >> (bits - 1) & 1;
    let (value, carry, overflow) = match mnemonic {
        Mnemonic::Shl => {
            let wide = u128::from(left) << count;
            let (value, carry) = (cut(wide as u64, size), (wide >> bits & 1) as u64);
            (value, carry, sign(value) ^ carry)
        }
        Mnemonic::Shr => (left >> count, count.checked_sub(1).map_or(0, |by| left >> by & 1), sign(left)),
        _ => {
            let wide = sign_extend(left, size) as i64;
            (cut((wide >> count) as u64, size), count.checked_sub(1).map_or(0, |by| (wide >> by) as u64 & 1), 0)
        }
    };
    (value, (carry * CF) | (overflow * OF) | result_flags(value, size))
}

fn push(core: &mut dyn Core, value: u64) -> Option<()> {
    let top = core.register(RSP).wrapping_sub(8);
    core.store(top, &value.to_le_bytes()).then(|| core.set_register(RSP, top))
}

fn load_vector(core: &mut dyn Core, found: &Instruction) -> Option<()> {
    let addr = address(core, found)?;
    let (len, align) = match found.mnemonic() {
        Mnemonic::Movss => (4, 1),
        Mnemonic::Movsd => (8, 1),
        Mnemonic::Movaps | Mnemonic::Movapd | Mnemonic::Movdqa => (16, 16),
        _ => (16, 1),
    };
    let mut bytes = [0; 16];
    if addr % align != 0 || !core.load(addr, &mut bytes[..len]) {
        return None;
    }
    core.set_vector(found.op0_register().number(), u128::from_le_bytes(bytes)).then_some(())
}

/// The size of the operation, bytes: that of the first operand.
fn operand_size(found: &Instruction) -> usize {
    operand_width(found, 0)
}

fn operand_width(found: &Instruction, at: u32) -> usize {
    match found.op_kind(at) {
        OpKind::Register => found.op_register(at).size(),
        _ => found.memory_size().size(),
    }
}

/// The address of the memory operand, without a segment base. Cut to 32 bits (prefix 67) it is not known.
fn address(core: &dyn Core, found: &Instruction) -> Option<u64> {
    let value = |name: Register| match name {
        // The decoder gives the target of an address relative to rip as the displacement.
        Register::None | Register::RIP => Some(0),
        name if name.is_gpr64() => Some(core.register(name.number())),
        _ => None,
    };
    let index = value(found.memory_index())?.wrapping_mul(u64::from(found.memory_index_scale()));
    Some(value(found.memory_base())?.wrapping_add(index).wrapping_add(found.memory_displacement64()))
}

/// The number of a general register, and whether it is bits 8 to 15 of it.
fn place(name: Register) -> (usize, bool) {
    let high = matches!(name, Register::AH | Register::CH | Register::DH | Register::BH);
    (name.full_register().number(), high)
}

fn read(core: &mut dyn Core, found: &Instruction, at: u32, size: usize) -> Option<u64> {
    match found.op_kind(at) {
        OpKind::Register => {
            let (number, high) = place(found.op_register(at));
            let value = core.register(number);
            Some(cut(if high { value >> 8 } else { value }, size))
        }
        OpKind::Memory => {
            let addr = address(core, found)?;
            let mut bytes = [0; 8];
            core.load(addr, bytes.get_mut(..size)?).then(|| u64::from_le_bytes(bytes))
        }
        kind => immediate(found, at, kind).map(|value| cut(value, size)),
    }
}

fn write(core: &mut dyn Core, found: &Instruction, at: u32, size: usize, value: u64) -> Option<()> {
    match found.op_kind(at) {
        OpKind::Register => {
            let (number, high) = place(found.op_register(at));
            let old = core.register(number);
            let new = match size {
                1 if high => old & !0xff00 | (value & 0xff) << 8,
                1 | 2 => old & !mask(size) | cut(value, size),
                // A 32-bit result clears the upper half.
                _ => cut(value, size),
            };
            core.set_register(number, new);
            Some(())
        }
        OpKind::Memory => {
            let addr = address(core, found)?;
            core.store(addr, value.to_le_bytes().get(..size)?).then_some(())
        }
        _ => None,
    }
}

fn mask(size: usize) -> u64 {
    u64::MAX >> (64 - 8 * size.clamp(1, 8))
}

fn cut(value: u64, size: usize) -> u64 {
    value & mask(size)
}

fn sign_extend(value: u64, size: usize) -> u64 {
    let shift = 64 - 8 * size.clamp(1, 8);
    ((value << shift) as i64 >> shift) as u64
}

/// Result and status flags.
fn arithmetic(mnemonic: Mnemonic, left: u64, right: u64, size: usize) -> (u64, u64) {
    let sign = 1u64 << (8 * size - 1);
    let (value, flags) = match mnemonic {
        Mnemonic::Add => {
            let value = cut(left.wrapping_add(right), size);
            let carry = u64::from(value < left) * CF;
            let overflow = u64::from((left ^ value) & (right ^ value) & sign != 0) * OF;
            (value, carry | overflow | (left ^ right ^ value) & AF)
        }
        Mnemonic::Sub | Mnemonic::Cmp => {
            let value = cut(left.wrapping_sub(right), size);
            let carry = u64::from(left < right) * CF;
            let overflow = u64::from((left ^ right) & (left ^ value) & sign != 0) * OF;
            (value, carry | overflow | (left ^ right ^ value) & AF)
        }
        Mnemonic::Or => (left | right, 0),
        Mnemonic::Xor => (left ^ right, 0),
        _ => (left & right, 0),
    };
    (value, flags | result_flags(value, size))
}

/// The flags that depend on the result alone.
fn result_flags(value: u64, size: usize) -> u64 {
    let sign = 1u64 << (8 * size - 1);
    let even = (value as u8).count_ones().is_multiple_of(2);
    (u64::from(value == 0) * ZF) | (u64::from(value & sign != 0) * SF) | (u64::from(even) * PF)
}

fn holds(condition: ConditionCode, flags: u64) -> Option<bool> {
    let set = |flag: u64| flags & flag != 0;
    let less = set(SF) != set(OF);
    Some(match condition {
        ConditionCode::o => set(OF),
        ConditionCode::no => !set(OF),
        ConditionCode::b => set(CF),
        ConditionCode::ae => !set(CF),
        ConditionCode::e => set(ZF),
        ConditionCode::ne => !set(ZF),
        ConditionCode::be => set(CF) || set(ZF),
        ConditionCode::a => !set(CF) && !set(ZF),
        ConditionCode::s => set(SF),
        ConditionCode::ns => !set(SF),
        ConditionCode::p => set(PF),
        ConditionCode::np => !set(PF),
        ConditionCode::l => less,
        ConditionCode::ge => !less,
        ConditionCode::le => less || set(ZF),
        ConditionCode::g => !less && !set(ZF),
        ConditionCode::None => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixteen registers and 4 KiB of memory at address 0x1000.
    struct Toy {
        registers: [u64; 16],
        flags: u64,
        memory: [u8; 4096],
        vector: Option<(usize, u128)>,
        restored: Option<(u64, u64)>,
    }

    impl Toy {
        fn new() -> Toy {
            let registers = core::array::from_fn(|number| 0x1100 + 0x10 * number as u64);
            Toy { registers, flags: 0x202, memory: [0; 4096], vector: None, restored: None }
        }

        fn word(&self, addr: usize) -> u64 {
            u64::from_le_bytes(self.memory[addr - 0x1000..][..8].try_into().expect("eight bytes"))
        }
    }

    impl Core for Toy {
        fn register(&self, number: usize) -> u64 {
            self.registers[number]
        }
        fn set_register(&mut self, number: usize, value: u64) {
            self.registers[number] = value;
        }
        fn flags(&self) -> u64 {
            self.flags
        }
        fn set_flags(&mut self, flags: u64) {
            self.flags = flags;
        }
        fn load(&mut self, addr: u64, bytes: &mut [u8]) -> bool {
            let place = (addr as usize).checked_sub(0x1000).and_then(|at| self.memory.get(at..at + bytes.len()));
            place.map(|place| bytes.copy_from_slice(place)).is_some()
        }
        fn store(&mut self, addr: u64, bytes: &[u8]) -> bool {
            let place = (addr as usize).checked_sub(0x1000).and_then(|at| self.memory.get_mut(at..at + bytes.len()));
            place.map(|place| place.copy_from_slice(bytes)).is_some()
        }
        fn set_vector(&mut self, number: usize, value: u128) -> bool {
            self.vector = Some((number, value));
            true
        }
        fn restore(&mut self, addr: u64, mask: u64) -> bool {
            self.restored = Some((addr, mask));
            true
        }
    }

    const AT: u64 = 0x1800;

    fn run(toy: &mut Toy, bytes: &[u8]) -> Option<u64> {
        step(toy, bytes, AT)
    }

    #[test]
    fn moves() {
        let mut toy = Toy::new();
        // mov %rdi, 0xf9(%rip); mov %al, (%rcx); movw $0x1234, 2(%rcx); movq $-2, 8(%rcx); mov 8(%rcx), %r9d
        assert_eq!(run(&mut toy, &[0x48, 0x89, 0x3d, 0xf9, 0, 0, 0]), Some(AT + 7));
        assert_eq!(toy.word(0x1900), 0x1170);
        toy.registers[0] = 0xabcd;
        run(&mut toy, &[0x88, 0x01]);
        run(&mut toy, &[0x88, 0x61, 0x01]);
        run(&mut toy, &[0x66, 0xc7, 0x41, 0x02, 0x34, 0x12]);
        run(&mut toy, &[0x48, 0xc7, 0x41, 0x08, 0xfe, 0xff, 0xff, 0xff]);
        assert_eq!((toy.word(0x1110), toy.word(0x1118)), (0x1234_abcd, u64::MAX - 1));
        toy.registers[9] = u64::MAX;
        assert_eq!(run(&mut toy, &[0x44, 0x8b, 0x49, 0x08]), Some(AT + 4));
        assert_eq!(toy.registers[9], 0xffff_fffe);
        // movsbl 8(%rcx), %eax; movzbl 8(%rcx), %eax; mov 9(%rcx), %ah
        run(&mut toy, &[0x0f, 0xbe, 0x41, 0x08]);
        assert_eq!(toy.registers[0], 0xffff_fffe);
        run(&mut toy, &[0x0f, 0xb6, 0x41, 0x08]);
        assert_eq!(toy.registers[0], 0xfe);
        run(&mut toy, &[0x8a, 0x61, 0x09]);
        assert_eq!(toy.registers[0], 0xfffe);
        // lea 0x2bae0f(%rip), %rdi, as in a program that holds the bytes of an xrstor.
        assert_eq!(run(&mut toy, &[0x48, 0x8d, 0x3d, 0x0f, 0xae, 0x2b, 0x00]), Some(AT + 7));
        assert_eq!(toy.registers[7], AT + 7 + 0x2b_ae0f);
    }

    #[test]
    fn arithmetic_and_flags() {
        let mut toy = Toy::new();
        let cases: [(&[u8], u64, u64, u64, u64); 9] = [
            // Bytes; rax and rcx before; rax and the status flags after.
            (&[0x48, 0x01, 0xc8], u64::MAX, 1, 0, CF | PF | AF | ZF),
            (&[0x00, 0xc8], 0x7f, 1, 0x80, AF | SF | OF),
            (&[0x29, 0xc8], 0, 1, 0xffff_ffff, CF | PF | AF | SF),
            (&[0x48, 0x39, 0xc8], 5, 5, 5, PF | ZF),
            (&[0x48, 0x85, 0xc8], 8, 8, 8, 0),
            (&[0x48, 0x31, 0xc8], 3, 3, 0, PF | ZF),
            (&[0x48, 0x83, 0xc0, 0xff], 1, 0, 0, CF | PF | AF | ZF),
            (&[0x48, 0xff, 0xc8], 0, 0, u64::MAX, PF | AF | SF),
            (&[0x48, 0xf7, 0xd8], 1, 0, u64::MAX, CF | PF | AF | SF),
        ];
        for (bytes, rax, rcx, after, flags) in cases {
            (toy.registers[0], toy.registers[1], toy.flags) = (rax, rcx, 0x202);
            assert_eq!(run(&mut toy, bytes), Some(AT + bytes.len() as u64), "{bytes:02x?}");
            assert_eq!((toy.registers[0], toy.flags & STATUS), (after, flags), "{bytes:02x?}");
        }
        // inc leaves the carry alone; none of these changes the direction flag.
        (toy.registers[0], toy.flags) = (1, 0x202 | CF | 1 << 10);
        run(&mut toy, &[0x48, 0xff, 0xc0]);
        assert_eq!((toy.registers[0], toy.flags), (2, 0x202 | CF | 1 << 10));
    }

    #[test]
    fn shifts_and_products() {
        let mut toy = Toy::new();
        let cases: [(&[u8], u64, u64, u64, u64); 8] = [
            // Bytes; rax and rcx before; rax and the status flags after, those that are defined.
            (&[0x48, 0xc1, 0xe0, 0x04], 0x1800_0000_0000_0001, 0, 0x8000_0000_0000_0010, CF | SF),
            (&[0xd1, 0xe8], 3, 0, 1, CF),
            (&[0x48, 0xd3, 0xf8], u64::MAX - 1, 65, u64::MAX, PF | SF),
            (&[0xc1, 0xf8, 0x1f], 0x8000_0000, 0, 0xffff_ffff, PF | SF),
            (&[0xd3, 0xe0], u64::MAX, 32, 0xffff_ffff, 0),
            (&[0x48, 0x0f, 0xaf, 0xc1], 3, u64::MAX - 1, u64::MAX - 5, 0),
            (&[0x6b, 0xc1, 0x02], 0, 0x7fff_ffff, 0xffff_fffe, CF | OF),
            (&[0x48, 0x69, 0xc1, 0x0f, 0xae, 0x28, 0x00], 0, 2, 2 * 0x28_ae0f, 0),
        ];
        for (bytes, rax, rcx, after, flags) in cases {
            (toy.registers[0], toy.registers[1], toy.flags) = (rax, rcx, 0x202);
            assert_eq!(run(&mut toy, bytes), Some(AT + bytes.len() as u64), "{bytes:02x?}");
            assert_eq!((toy.registers[0], toy.flags & STATUS & !(AF | OF)), (after, flags & !OF), "{bytes:02x?}");
        }
        // setg %al; cmovb %ecx, %eax; cdq; cqo; cltq
        (toy.registers[0], toy.registers[1], toy.flags) = (u64::MAX, 7, 0x202);
        run(&mut toy, &[0x0f, 0x9f, 0xc0]);
        assert_eq!(toy.registers[0], !0xff | 1);
        run(&mut toy, &[0x0f, 0x42, 0xc1]);
        assert_eq!(toy.registers[0], 0xffff_ff01);
        run(&mut toy, &[0x99]);
        assert_eq!(toy.registers[2], 0xffff_ffff);
        run(&mut toy, &[0x48, 0x98]);
        assert_eq!(toy.registers[0], !0xff | 1);
        run(&mut toy, &[0x48, 0x99]);
        assert_eq!(toy.registers[2], u64::MAX);
    }

    #[test]
    fn jumps_and_calls() {
        let mut toy = Toy::new();
        let top = toy.registers[RSP];
        assert_eq!(run(&mut toy, &[0xe8, 0x10, 0, 0, 0]), Some(AT + 21));
        assert_eq!((toy.registers[RSP], toy.word(top as usize - 8)), (top - 8, AT + 5));
        assert_eq!(run(&mut toy, &[0xe9, 0xf0, 0xff, 0xff, 0xff]), Some(AT + 5 - 16));
        // jmp *%rdi; call *(%rcx), jmp *(%rcx).
        let to = toy.registers[7];
        assert_eq!(run(&mut toy, &[0xff, 0xe7]), Some(to));
        toy.registers[RSP] = top;
        toy.registers[1] = 0x1100;
        toy.memory[0x100..0x108].copy_from_slice(&0x5_0000u64.to_le_bytes());
        assert_eq!(run(&mut toy, &[0xff, 0x11]), Some(0x5_0000));
        assert_eq!((toy.registers[RSP], toy.word(top as usize - 8)), (top - 8, AT + 2));
        assert_eq!(run(&mut toy, &[0xff, 0x21]), Some(0x5_0000));
        toy.flags = 0x202 | ZF;
        assert_eq!(run(&mut toy, &[0x74, 0x10]), Some(AT + 18));
        assert_eq!(run(&mut toy, &[0x0f, 0x85, 0x10, 0, 0, 0]), Some(AT + 6));
        // ret; pop %rdi; leave
        let stack = toy.registers[RSP];
        toy.registers[RSP] = 0x1100;
        assert_eq!(run(&mut toy, &[0xc3]), Some(0x5_0000));
        toy.registers[RSP] = 0x1100;
        run(&mut toy, &[0x5f]);
        assert_eq!((toy.registers[7], toy.registers[RSP]), (0x5_0000, 0x1108));
        toy.registers[RBP] = 0x1100;
        run(&mut toy, &[0xc9]);
        assert_eq!((toy.registers[RBP], toy.registers[RSP]), (0x5_0000, 0x1108));
        (toy.registers[RSP], toy.registers[7]) = (stack, 0x1170);
        // push %rdi; push $-1
        run(&mut toy, &[0x57]);
        run(&mut toy, &[0x6a, 0xff]);
        assert_eq!((toy.word(top as usize - 16), toy.word(top as usize - 24)), (0x1170, u64::MAX));
    }

    #[test]
    fn vectors_and_xrstor() {
        let mut toy = Toy::new();
        toy.memory[0x110..0x118].copy_from_slice(&7u64.to_le_bytes());
        assert_eq!(run(&mut toy, &[0xf2, 0x0f, 0x10, 0x09]), Some(AT + 4));
        assert_eq!(toy.vector, Some((1, 7)));
        (toy.registers[0], toy.registers[2]) = (0xaaaa_aaaa_0000_00ee, 1);
        assert_eq!(run(&mut toy, &[0x0f, 0xae, 0x6c, 0x24, 0x40]), Some(AT + 5));
        assert_eq!(toy.restored, Some((0x1180, 0x1_0000_00ee)));
        assert_eq!(run(&mut toy, &[0x41, 0x0f, 0xae, 0x6c, 0x88, 0xf0]), Some(AT + 6));
        assert_eq!(toy.restored.map(|(addr, _)| addr), Some(0x1180 + 4 * 0x1110 - 16));
    }

    #[test]
    fn what_is_not_done() {
        for bytes in [
            &[0xf0, 0x48, 0x01, 0x01][..],
            &[0x64, 0x48, 0x89, 0x01],
            &[0xf3, 0xa4],
            &[0x0f, 0x01, 0xef],
            &[0x48, 0x87, 0x01],
            &[0xff, 0x19],
            &[0x48, 0xff, 0x29],
            &[0x0f, 0x05],
            &[0xc5, 0xf8, 0x10, 0x01],
            &[0x67, 0x48, 0x89, 0x01],
            &[0x8e, 0xe0],
            &[0x48, 0x89],
            // loopne, loope, loop, jrcxz.
            &[0xe0, 0x0f],
            &[0xe1, 0x0f],
            &[0xe2, 0x0f],
            &[0xe3, 0x0f],
        ] {
            assert_eq!(run(&mut Toy::new(), bytes), None, "{bytes:02x?}");
        }
        // Memory that is not there.
        let mut toy = Toy::new();
        toy.registers[1] = 0x10;
        assert_eq!(run(&mut toy, &[0x48, 0x89, 0x01]), None);
    }
}
