//! The machine: registers, and one instruction after the other.

use std::collections::BTreeMap;

use crate::alu;
use crate::fault::Fault;
use crate::instruction::{
    ALU, ALU64, CALL, CALL_HELPER, CALL_LOCAL, EXIT, Instruction, JA, JMP, JMP32, LD, LDX, MODE_ATOMIC,
    MODE_IMM, MODE_MEM, MODE_MEMSX, PSEUDO_CODE, PSEUDO_MAP, PSEUDO_MAP_VALUE, ST, STX,
};
use crate::kernel::{Kernel, Surroundings};
use crate::kernel_call;
use crate::map::MapError;
use crate::memory::{CODE, CONTEXT, MAPS, Memory};
use crate::object::Object;
use crate::outcome::Outcome;
use crate::socket_buffer::SocketBuffer;

/// No program of ours comes near; one that does runs in circles.
const MOST_INSTRUCTIONS: u64 = 1_000_000;

/// Calls within calls: the kernel's limit.
const MOST_CALLS: usize = 8;

/// An object's programs over one set of maps.
pub struct Machine<'a> {
    programs: &'a BTreeMap<String, Vec<Instruction>>,
    kernel: Kernel<'a>,
    /// Where each map that is a section of data has its only value.
    data: BTreeMap<usize, u64>,
    instructions: u64,
    helpers: BTreeMap<i32, u32>,
}

impl<'a> Machine<'a> {
    /// A machine whose maps are empty.
    pub fn new(object: &'a Object, surroundings: &'a dyn Surroundings) -> Self {
        let mut memory = Memory::default();
        let data = object.data.iter().map(|(map, data)| (*map, memory.push_value(data.clone()))).collect();
        Self {
            programs: &object.programs,
            kernel: Kernel {
                surroundings,
                maps: object.maps.clone(),
                memory,
                redirect: None,
                copies: Vec::new(),
            },
            data,
            instructions: 0,
            helpers: BTreeMap::new(),
        }
    }

    /// Puts an entry into a map, as its owner would.
    ///
    /// # Errors
    /// There is no such map, or it has no such entries.
    pub fn insert(&mut self, map: &str, key: &[u8], value: &[u8]) -> Result<(), MapError> {
        let unknown = || MapError::Unknown(map.to_owned());
        let Kernel { maps, memory, .. } = &mut self.kernel;
        let found = maps.iter_mut().find(|each| each.name == map).ok_or_else(unknown)?;
        match found.update(key, value, 0, memory) {
            0 => Ok(()),
            error => Err(MapError::Refused { name: map.to_owned(), error }),
        }
    }

    /// Runs a program on a packet. The machine is for one run: its maps are left as the program left them.
    ///
    /// # Errors
    /// The program did what no program may.
    pub fn run(mut self, program: &str, packet: SocketBuffer) -> Result<Outcome, Fault> {
        let code = self.programs.get(program).ok_or_else(|| Fault::Program(program.to_owned()))?.as_slice();
        packet.enter(&mut self.kernel.memory);
        let action = self.call(code, 0, [CONTEXT, 0, 0, 0, 0], 0)? as u32;
        Ok(Outcome {
            action,
            redirect: self.kernel.redirect,
            copies: self.kernel.copies,
            packet: SocketBuffer::leave(&self.kernel.memory),
            instructions: self.instructions,
            helpers: self.helpers,
        })
    }

    /// Calls the function at an instruction; also what `bpf_loop` does with its callback.
    fn call(
        &mut self,
        code: &[Instruction],
        at: usize,
        arguments: [u64; 5],
        depth: usize,
    ) -> Result<u64, Fault> {
        if depth >= MOST_CALLS {
            return Err(Fault::Astray(at));
        }
        let mut registers = [0; 11];
        registers[1..=5].copy_from_slice(&arguments);
        registers[10] = self.kernel.memory.push_stack();
        let result = self.steps(code, at, &mut registers, depth);
        self.kernel.memory.pop_stack();
        result
    }

    fn steps(
        &mut self,
        code: &[Instruction],
        mut at: usize,
        registers: &mut [u64; 11],
        depth: usize,
    ) -> Result<u64, Fault> {
        loop {
            let instruction = *code.get(at).ok_or(Fault::Astray(at))?;
            self.instructions += 1;
            if self.instructions > MOST_INSTRUCTIONS {
                return Err(Fault::Astray(at));
            }
            let next = at + 1;
            at = match instruction.class() {
                JMP if instruction.operation() == EXIT => return Ok(registers[0]),
                JMP if instruction.operation() == CALL => {
                    let arguments = [registers[1], registers[2], registers[3], registers[4], registers[5]];
                    registers[0] = match instruction.source {
                        CALL_HELPER => self.help(code, instruction.immediate, arguments, depth)?,
                        CALL_LOCAL => {
                            self.call(code, moved(next, instruction.immediate), arguments, depth + 1)?
                        }
                        _ => return Err(Fault::Instruction { at, code: instruction.code }),
                    };
                    next
                }
                JMP | JMP32 => jump(instruction, registers, at)?,
                LD => {
                    let upper = code.get(next).ok_or(Fault::Astray(next))?.immediate;
                    registers[instruction.destination] = self.constant(instruction, upper, at)?;
                    next + 1
                }
                _ => {
                    self.step(instruction, registers, at)?;
                    next
                }
            };
        }
    }

    /// Arithmetic, loads and stores.
    fn step(&mut self, instruction: Instruction, registers: &mut [u64; 11], at: usize) -> Result<(), Fault> {
        let unknown = Fault::Instruction { at, code: instruction.code };
        let (to, from) = (instruction.destination, usize::from(instruction.source));
        let operand = if instruction.by_register() { registers[from] } else { instruction.extended() };
        let displaced = |base: u64| base.wrapping_add_signed(instruction.offset.into());
        let width = instruction.width();
        let memory = &mut self.kernel.memory;
        match (instruction.class(), instruction.mode()) {
            (ALU64, _) => registers[to] = alu::wide(instruction, registers[to], operand).ok_or(unknown)?,
            (ALU, _) => registers[to] = alu::narrow(instruction, registers[to], operand).ok_or(unknown)?,
            (LDX, MODE_MEM) => registers[to] = memory.load(displaced(registers[from]), width)?,
            (LDX, MODE_MEMSX) => {
                let unused = 64 - 8 * width as u32;
                let number = memory.load(displaced(registers[from]), width)?;
                registers[to] = ((number << unused) as i64 >> unused) as u64;
            }
            (ST, MODE_MEM) => memory.store(displaced(registers[to]), width, instruction.extended())?,
            (STX, MODE_MEM) => memory.store(displaced(registers[to]), width, registers[from])?,
            // Of the atomic ones the addition, which returns nothing.
            (STX, MODE_ATOMIC) if instruction.immediate == 0 => {
                let address = displaced(registers[to]);
                let sum = memory.load(address, width)?.wrapping_add(registers[from]);
                memory.store(address, width, sum)?;
            }
            _ => return Err(unknown),
        }
        Ok(())
    }

    /// A wide load: a number, or the address of something.
    fn constant(&self, instruction: Instruction, upper: i32, at: usize) -> Result<u64, Fault> {
        if instruction.mode() != MODE_IMM {
            return Err(Fault::Instruction { at, code: instruction.code });
        }
        let map = instruction.immediate as usize;
        Ok(match instruction.source {
            0 => u64::from(instruction.immediate as u32) | u64::from(upper as u32) << 32,
            PSEUDO_MAP => MAPS | map as u64,
            PSEUDO_MAP_VALUE => {
                let data = self.data.get(&map).ok_or(Fault::Map(MAPS | map as u64))?;
                data + u64::from(upper as u32)
            }
            PSEUDO_CODE => CODE | moved(at + 1, instruction.immediate) as u64,
            _ => return Err(Fault::Instruction { at, code: instruction.code }),
        })
    }

    fn help(
        &mut self,
        code: &[Instruction],
        number: i32,
        arguments: [u64; 5],
        depth: usize,
    ) -> Result<u64, Fault> {
        *self.helpers.entry(number).or_default() += 1;
        if number != kernel_call::LOOP {
            return kernel_call::call(&mut self.kernel, number, arguments).map(|result| result as u64);
        }
        let [times, callback, context, ..] = arguments;
        let at = callback.checked_sub(CODE).ok_or(Fault::Astray(callback as usize))? as usize;
        for turn in 0..times {
            if self.call(code, at, [turn, context, 0, 0, 0], depth + 1)? != 0 {
                return Ok(turn + 1);
            }
        }
        Ok(times)
    }
}

fn jump(instruction: Instruction, registers: &[u64; 11], at: usize) -> Result<usize, Fault> {
    let next = at + 1;
    if instruction.operation() == JA {
        let far = if instruction.class() == JMP { instruction.offset.into() } else { instruction.immediate };
        return Ok(moved(next, far));
    }
    let left = registers[instruction.destination];
    let right = if instruction.by_register() {
        registers[usize::from(instruction.source)]
    } else {
        instruction.extended()
    };
    let (left, right) = match instruction.class() {
        JMP => (left, right),
        // Signed comparisons are of 32 bits too: the sign goes with them, and unsigned ones do not mind.
        _ => (i64::from(left as i32) as u64, i64::from(right as i32) as u64),
    };
    let unknown = Fault::Instruction { at, code: instruction.code };
    let taken = alu::compared(instruction, left, right).ok_or(unknown)?;
    Ok(if taken { moved(next, instruction.offset.into()) } else { next })
}

/// An instruction from another; far outside of the program where it would be in front of it.
fn moved(from: usize, by: i32) -> usize {
    from.checked_add_signed(by as isize).unwrap_or(usize::MAX)
}
