//! An instruction's parts, by RFC 9669, section 3.

use aya_obj::generated::bpf_insn;

/// The eight classes.
pub(crate) const LD: u8 = 0;
pub(crate) const LDX: u8 = 1;
pub(crate) const ST: u8 = 2;
pub(crate) const STX: u8 = 3;
pub(crate) const ALU: u8 = 4;
pub(crate) const JMP: u8 = 5;
pub(crate) const JMP32: u8 = 6;
pub(crate) const ALU64: u8 = 7;

/// Modes of loads and stores.
pub(crate) const MODE_IMM: u8 = 0x00;
pub(crate) const MODE_MEM: u8 = 0x60;
pub(crate) const MODE_MEMSX: u8 = 0x80;
pub(crate) const MODE_ATOMIC: u8 = 0xc0;

/// Jumps that are none by a comparison.
pub(crate) const JA: u8 = 0x00;
pub(crate) const CALL: u8 = 0x80;
pub(crate) const EXIT: u8 = 0x90;

/// What the source register of a wide load says (section 5.4).
pub(crate) const PSEUDO_MAP: u8 = 1;
pub(crate) const PSEUDO_MAP_VALUE: u8 = 2;
pub(crate) const PSEUDO_CODE: u8 = 4;

/// What the source register of a call says.
pub(crate) const CALL_HELPER: u8 = 0;
pub(crate) const CALL_LOCAL: u8 = 1;

/// One instruction, decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    pub(crate) destination: usize,
    pub(crate) source: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

impl Instruction {
    pub(crate) fn class(self) -> u8 {
        self.code & 7
    }

    /// Of ALU and jumps: which operation.
    pub(crate) fn operation(self) -> u8 {
        self.code & 0xf0
    }

    /// Of ALU and jumps: whether the second operand is a register.
    pub(crate) fn by_register(self) -> bool {
        self.code & 8 != 0
    }

    /// Of loads and stores: how.
    pub(crate) fn mode(self) -> u8 {
        self.code & 0xe0
    }

    /// Of loads and stores: how many bytes.
    pub(crate) fn width(self) -> usize {
        match self.code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        }
    }

    /// The immediate as the 64-bit number that it stands for.
    pub(crate) fn extended(self) -> u64 {
        i64::from(self.immediate) as u64
    }
}

impl From<&bpf_insn> for Instruction {
    fn from(raw: &bpf_insn) -> Self {
        Self {
            code: raw.code,
            destination: usize::from(raw.dst_reg()),
            source: raw.src_reg(),
            offset: raw.off,
            immediate: raw.imm,
        }
    }
}
