//! Arithmetic and comparisons (RFC 9669, sections 4.1 to 4.3).

use crate::instruction::Instruction;

/// What becomes of `left`, in 64 bits; `None` is an operation that the standard has not.
pub(crate) fn wide(instruction: Instruction, left: u64, right: u64) -> Option<u64> {
    let signed = instruction.offset == 1;
    Some(match instruction.operation() {
        0x00 => left.wrapping_add(right),
        0x10 => left.wrapping_sub(right),
        0x20 => left.wrapping_mul(right),
        0x30 if signed => (left as i64).checked_div(right as i64).unwrap_or(0) as u64,
        0x30 => left.checked_div(right).unwrap_or(0),
        0x40 => left | right,
        0x50 => left & right,
        0x60 => left.wrapping_shl(right as u32),
        0x70 => left.wrapping_shr(right as u32),
        0x80 => left.wrapping_neg(),
        0x90 if signed => (left as i64).checked_rem(right as i64).unwrap_or(left as i64) as u64,
        0x90 => left.checked_rem(right).unwrap_or(left),
        0xa0 => left ^ right,
        0xb0 => moved(right, instruction.offset)?,
        0xc0 => (left as i64).wrapping_shr(right as u32) as u64,
        0xd0 => swapped(left, instruction.immediate)?,
        _ => return None,
    })
}

/// The same in 32 bits; the upper half of the result is zero.
pub(crate) fn narrow(instruction: Instruction, left: u64, right: u64) -> Option<u64> {
    let (low, other) = (left as u32, right as u32);
    let signed = instruction.offset == 1;
    let result = match instruction.operation() {
        0x30 if signed => (low as i32).checked_div(other as i32).unwrap_or(0) as u32,
        0x30 => low.checked_div(other).unwrap_or(0),
        0x60 => low.wrapping_shl(other),
        0x70 => low.wrapping_shr(other),
        0x80 => low.wrapping_neg(),
        0x90 if signed => (low as i32).checked_rem(other as i32).unwrap_or(low as i32) as u32,
        0x90 => low.checked_rem(other).unwrap_or(low),
        0xb0 => moved(u64::from(other), instruction.offset)? as u32,
        0xc0 => (low as i32).wrapping_shr(other) as u32,
        0xd0 => return ordered(instruction, left),
        _ => wide(instruction, left, right)? as u32,
    };
    Some(u64::from(result))
}

/// Whether the jump is taken; `None` is a comparison that the standard has not.
pub(crate) fn compared(instruction: Instruction, left: u64, right: u64) -> Option<bool> {
    let (signed_left, signed_right) = (left as i64, right as i64);
    Some(match instruction.operation() {
        0x10 => left == right,
        0x20 => left > right,
        0x30 => left >= right,
        0x40 => left & right != 0,
        0x50 => left != right,
        0x60 => signed_left > signed_right,
        0x70 => signed_left >= signed_right,
        0xa0 => left < right,
        0xb0 => left <= right,
        0xc0 => signed_left < signed_right,
        0xd0 => signed_left <= signed_right,
        _ => return None,
    })
}

/// A move, with the sign of its lower bits where the offset says how many these are.
fn moved(value: u64, offset: i16) -> Option<u64> {
    Some(match offset {
        0 => value,
        8 => i64::from(value as i8) as u64,
        16 => i64::from(value as i16) as u64,
        32 => i64::from(value as i32) as u64,
        _ => return None,
    })
}

/// Bytes the other way round.
fn swapped(value: u64, bits: i32) -> Option<u64> {
    Some(match bits {
        16 => u64::from((value as u16).swap_bytes()),
        32 => u64::from((value as u32).swap_bytes()),
        64 => value.swap_bytes(),
        _ => return None,
    })
}

/// To big-endian (by register) or little-endian (by immediate), on a little-endian machine.
fn ordered(instruction: Instruction, value: u64) -> Option<u64> {
    if instruction.by_register() {
        return swapped(value, instruction.immediate);
    }
    Some(match instruction.immediate {
        16 => u64::from(value as u16),
        32 => u64::from(value as u32),
        64 => value,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(code: u8, offset: i16, immediate: i32) -> Instruction {
        Instruction { code, destination: 0, source: 0, offset, immediate }
    }

    #[test]
    fn division_by_zero_is_zero_and_its_remainder_is_what_was_divided() {
        assert_eq!(wide(operation(0x3f, 0, 0), 7, 0), Some(0));
        assert_eq!(wide(operation(0x9f, 0, 0), 7, 0), Some(7));
        assert_eq!(narrow(operation(0x3c, 0, 0), 7, 1 << 32), Some(0));
        assert_eq!(narrow(operation(0x9c, 0, 0), 7 | 1 << 40, 1 << 32), Some(7));
    }

    #[test]
    fn thirty_two_bits_leave_the_upper_half_zero() {
        assert_eq!(narrow(operation(0x04, 0, 0), u64::MAX, 1), Some(0));
        assert_eq!(narrow(operation(0x84, 0, 0), 1, 0), Some(0xffff_ffff));
        assert_eq!(narrow(operation(0xc4, 0, 0), 0x8000_0000, 31), Some(0xffff_ffff));
        assert_eq!(narrow(operation(0xb4, 8, 0), 0, 0x80), Some(0xffff_ff80));
    }

    #[test]
    fn bytes_are_turned_to_the_order_of_the_network() {
        assert_eq!(narrow(operation(0xdc, 0, 16), 0x1234, 0), Some(0x3412));
        assert_eq!(narrow(operation(0xd4, 0, 16), 0xff_1234, 0), Some(0x1234));
        assert_eq!(wide(operation(0xd7, 0, 64), 1, 0), Some(1 << 56));
    }

    #[test]
    fn signs_count_in_signed_comparisons_only() {
        let minus_one = u64::MAX;
        assert_eq!(compared(operation(0x25, 0, 0), minus_one, 1), Some(true));
        assert_eq!(compared(operation(0x65, 0, 0), minus_one, 1), Some(false));
        assert_eq!(compared(operation(0xf5, 0, 0), 0, 0), None);
    }
}
