//! Which way and how wide does an instruction of a CUBIN access memory?
//!
//! CUPTI's counters come per (function, byte offset). The instruction there tells load from store and the bytes per
//! lane; no disassembler is needed. From `sm_70` on an instruction is 16 bytes: the low nine bits are the operation, the
//! nine bits from bit 9 of the upper half on hold, in their low three, the width or the type of an atomic. The table was
//! read off `nvdisasm -hex` of one set of kernels for sm_75, sm_80, sm_90, sm_100 and sm_120, which agree
//! (but for the width of LDGSTS from sm_100 on, given as unknown).
//!
//! Example: `LDG.E.64 R2, [R2.64]` is `…7981` with width code 5: a global load of 8 bytes.

use super::job::{Direction, Space};

/// A memory instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// `LDG.64`
    pub opcode: String,
    /// `None` for generic accesses, which may go anywhere, and for async copies, which go to two spaces.
    pub space: Option<Space>,
    pub operation: Direction,
    /// Bytes per lane; 0: unknown.
    pub bytes: u32,
}

/// The memory instruction at `offset` of `function` (its mangled name) in a CUBIN.
pub fn instruction(cubin: &[u8], function: &str, offset: u64) -> Option<Instruction> {
    let text = section(cubin, &format!(".text.{function}"))?;
    let start = usize::try_from(offset).ok()?;
    let code = text.get(start..start.checked_add(16)?)?;
    decode(u64_at(code, 0)?, u64_at(code, 8)?)
}

/// All memory instructions of `function` with their byte offsets.
pub fn instructions(cubin: &[u8], function: &str) -> Vec<(u64, Instruction)> {
    let text = section(cubin, &format!(".text.{function}")).unwrap_or_default();
    let codes = text.chunks_exact(16).enumerate();
    codes
        .filter_map(|(at, code)| Some((at as u64 * 16, decode(u64_at(code, 0)?, u64_at(code, 8)?)?)))
        .collect()
}

/// The mangled names of a CUBIN's functions, in file order.
pub fn functions(cubin: &[u8]) -> Vec<String> {
    let names = sections(cubin).unwrap_or_default().into_iter();
    names.filter_map(|(name, _)| name.strip_prefix(".text.").map(str::to_owned)).collect()
}

fn decode(low: u64, high: u64) -> Option<Instruction> {
    let code = (high >> 9) & 7;
    let (name, space, operation, width) = match low & 0x1ff {
        0x180 => ("LD", None, Direction::Load, Width::Plain),
        0x181 => ("LDG", Some(Space::Global), Direction::Load, Width::Plain),
        0x183 => ("LDL", Some(Space::Local), Direction::Load, Width::Plain),
        0x184 => ("LDS", Some(Space::Shared), Direction::Load, Width::Plain),
        0x185 => ("ST", None, Direction::Store, Width::Plain),
        0x186 => ("STG", Some(Space::Global), Direction::Store, Width::Plain),
        0x187 => ("STL", Some(Space::Local), Direction::Store, Width::Plain),
        0x188 => ("STS", Some(Space::Shared), Direction::Store, Width::Plain),
        0x18a => ("ATOM", None, Direction::Atomic, Width::Integer),
        0x18b => ("ATOM.CAS", None, Direction::Atomic, Width::Integer),
        0x1a2 => ("ATOM", None, Direction::Atomic, Width::Float),
        0x1a8 => ("ATOMG", Some(Space::Global), Direction::Atomic, Width::Integer),
        0x1a9 => ("ATOMG.CAS", Some(Space::Global), Direction::Atomic, Width::Integer),
        0x1a3 => ("ATOMG", Some(Space::Global), Direction::Atomic, Width::Float),
        0x18c => ("ATOMS", Some(Space::Shared), Direction::Atomic, Width::Integer),
        0x18d => ("ATOMS.CAS", Some(Space::Shared), Direction::Atomic, Width::Integer),
        0x18e => ("RED", Some(Space::Global), Direction::Atomic, Width::Integer),
        0x1a6 => ("RED", Some(Space::Global), Direction::Atomic, Width::Float),
        0x1ae => ("LDGSTS", None, Direction::Load, Width::Copy),
        0x03b => ("LDSM", Some(Space::Shared), Direction::Load, Width::Unknown),
        0x044 => ("STSM", Some(Space::Shared), Direction::Store, Width::Unknown),
        _ => return None,
    };
    let bytes = width.bytes(code);
    let opcode = match bytes {
        0 => name.to_owned(),
        4 => format!("{name}.32"),
        bytes => format!("{name}.{}", bytes * 8),
    };
    Some(Instruction { opcode, space, operation, bytes })
}

/// How the three width bits are read.
#[derive(Clone, Copy)]
enum Width {
    /// U8, S8, U16, S16, 32, 64, 128.
    Plain,
    /// U32, S32, U64, F32, F16x2, S64, F64, 16-bit pair.
    Integer,
    /// The floating-point atomics of sm_90 and later: F64 is 7, the others have 4 bytes.
    Float,
    /// Async copies, like plain ones; codes below 4 (sm_100 and later) are not known.
    Copy,
    Unknown,
}

impl Width {
    fn bytes(self, code: u64) -> u32 {
        match (self, code) {
            (Width::Plain, 0 | 1) => 1,
            (Width::Plain, 2 | 3) => 2,
            (Width::Plain | Width::Copy, 5) => 8,
            (Width::Plain | Width::Copy, 6) => 16,
            (Width::Copy, 0..=3) | (Width::Copy | Width::Plain, 7) | (Width::Unknown, _) => 0,
            (Width::Integer, 2 | 5 | 6) | (Width::Float, 7) => 8,
            (Width::Plain | Width::Copy | Width::Integer | Width::Float, _) => 4,
        }
    }
}

/// The contents of an ELF64 section by name.
fn section<'a>(elf: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    sections(elf)?.into_iter().find(|(name, _)| name == wanted).map(|(_, body)| body)
}

/// Names and contents of an ELF64 file's sections; those that lie outside the file are left out.
fn sections(elf: &[u8]) -> Option<Vec<(String, &[u8])>> {
    if elf.get(..4)? != b"\x7fELF" {
        return None;
    }
    let table = usize::try_from(u64_at(elf, 0x28)?).ok()?;
    let size = usize::from(u16_at(elf, 0x3a)?);
    let count = usize::from(u16_at(elf, 0x3c)?);
    let names = usize::from(u16_at(elf, 0x3e)?);
    let header = |index: usize| {
        let start = table.checked_add(index.checked_mul(size)?)?;
        elf.get(start..start.checked_add(size)?)
    };
    let body = |header: &[u8]| {
        let start = usize::try_from(u64_at(header, 0x18)?).ok()?;
        let length = usize::try_from(u64_at(header, 0x20)?).ok()?;
        elf.get(start..start.checked_add(length)?)
    };
    let names = body(header(names)?)?;
    let named = |header: &[u8]| {
        let at = u32_at(header, 0)? as usize;
        let name = names.get(at..)?.split(|&byte| byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    Some((0..count).filter_map(header).filter_map(|header| Some((named(header)?, body(header)?))).collect())
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two 64-bit halves are copied from `nvdisasm -hex` (13.5) of an sm_90 CUBIN.
    #[test]
    fn decodes_what_nvdisasm_shows() {
        let load = decode(0x0000_1404_0205_7981, 0x000e_a800_0c1e_9900).expect("a load");
        assert_eq!((load.opcode.as_str(), load.bytes), ("LDG.32", 4));
        assert_eq!(load.operation, Direction::Load);
        // LDC R1, c[0x0][0x28]: constant memory is not counted.
        assert_eq!(decode(0x0000_0a00_ff01_7b82, 0x000f_e200_0000_0800), None);
    }

    #[test]
    fn no_panic_on_broken_files() {
        assert_eq!(instructions(b"\x7fELF", "k"), []);
        assert_eq!(instructions(&[0x7f, b'E', b'L', b'F', 255, 255], "k"), []);
        let mut elf = vec![0xffu8; 80];
        elf[..4].copy_from_slice(b"\x7fELF");
        assert_eq!(instruction(&elf, "k", u64::MAX), None);
    }
}
