//! What a program can point to, each kind at numbers of its own.
//!
//! | upper 32 bits | is |
//! |---|---|
//! | 0 | the frame, from [`FRAME`] on: `data` and `data_end` are 32 bits wide in `__sk_buff` |
//! | 1 | the context |
//! | 2 | a map; 3: code |
//! | [`STACKS`] and up | the stacks of nested calls |
//! | [`VALUES`] and up | values of maps |

use crate::fault::Fault;

/// Where the frame begins.
pub(crate) const FRAME: u64 = 0x1_0000;
pub(crate) const CONTEXT: u64 = 1 << 32;
pub(crate) const MAPS: u64 = 2 << 32;
pub(crate) const CODE: u64 = 3 << 32;
const STACKS: u64 = 0x100;
const VALUES: u64 = 0x1_0000;

/// Bytes of a call's stack.
const STACK: usize = 512;

/// All memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) frame: Vec<u8>,
    /// So many of the frame's bytes can be read: the rest is not in one piece with them.
    pub(crate) linear: usize,
    pub(crate) context: Vec<u8>,
    stacks: Vec<[u8; STACK]>,
    values: Vec<Vec<u8>>,
}

impl Memory {
    /// A stack for a call, by the address of its end, as programs have it in r10.
    pub(crate) fn push_stack(&mut self) -> u64 {
        self.stacks.push([0; STACK]);
        (STACKS + self.stacks.len() as u64 - 1) << 32 | STACK as u64
    }

    pub(crate) fn pop_stack(&mut self) {
        self.stacks.pop();
    }

    /// Room for a value, by its address.
    pub(crate) fn push_value(&mut self, value: Vec<u8>) -> u64 {
        self.values.push(value);
        (VALUES + self.values.len() as u64 - 1) << 32
    }

    /// The bytes at an address.
    pub(crate) fn bytes(&self, address: u64, length: usize) -> Result<&[u8], Fault> {
        let outside = Fault::OutOfBounds { address, length };
        let (area, offset) = self.area(address).ok_or(outside)?;
        area.get(offset..).and_then(|rest| rest.get(..length)).ok_or(Fault::OutOfBounds { address, length })
    }

    /// The bytes at an address, to be written.
    pub(crate) fn bytes_mut(&mut self, address: u64, length: usize) -> Result<&mut [u8], Fault> {
        let outside = || Fault::OutOfBounds { address, length };
        let (upper, lower) = (address >> 32, address as u32 as usize);
        let (area, offset) = match upper {
            0 => (&mut self.frame[..self.linear], lower.checked_sub(FRAME as usize).ok_or_else(outside)?),
            1 => (self.context.as_mut_slice(), lower),
            STACKS..VALUES => {
                let stack = self.stacks.get_mut((upper - STACKS) as usize).ok_or_else(outside)?;
                (stack.as_mut_slice(), lower)
            }
            VALUES.. => {
                let value = self.values.get_mut((upper - VALUES) as usize).ok_or_else(outside)?;
                (value.as_mut_slice(), lower)
            }
            _ => return Err(outside()),
        };
        area.get_mut(offset..).and_then(|rest| rest.get_mut(..length)).ok_or_else(outside)
    }

    /// A number of `width` bytes.
    pub(crate) fn load(&self, address: u64, width: usize) -> Result<u64, Fault> {
        let mut number = [0; 8];
        number[..width].copy_from_slice(self.bytes(address, width)?);
        Ok(u64::from_le_bytes(number))
    }

    /// Writes the lower `width` bytes of a number.
    pub(crate) fn store(&mut self, address: u64, width: usize, number: u64) -> Result<(), Fault> {
        self.bytes_mut(address, width)?.copy_from_slice(&number.to_le_bytes()[..width]);
        Ok(())
    }

    fn area(&self, address: u64) -> Option<(&[u8], usize)> {
        let (upper, lower) = (address >> 32, address as u32 as usize);
        Some(match upper {
            0 => (&self.frame[..self.linear], lower.checked_sub(FRAME as usize)?),
            1 => (&self.context, lower),
            STACKS..VALUES => (self.stacks.get((upper - STACKS) as usize)?.as_slice(), lower),
            VALUES.. => (self.values.get((upper - VALUES) as usize)?, lower),
            _ => return None,
        })
    }
}
