//! How much of the stack a program takes at most, as the verifier reckons it (`check_max_stack_depth`, kernel/bpf/verifier.c).

use std::collections::{BTreeMap, BTreeSet};

use crate::instruction::{
    ALU64, CALL, CALL_LOCAL, Instruction, JMP, LD, LDX, MODE_IMM, PSEUDO_CODE, ST, STX,
};
use crate::object::Object;

/// The register that has a frame's end.
const FRAME: usize = 10;
const MOVE: u8 = 0xb0;
const ADD: u8 = 0x00;

/// Linux rounds each frame up to so many bytes before 6.9, and without a compiler of its own still.
const ROUNDED: u32 = 32;

impl Object {
    /// The bytes of the deepest chain of calls of each program, at most 512 of which Linux allows.
    pub fn stacks(&self) -> impl Iterator<Item = (&str, u32)> {
        self.programs.iter().map(|(name, code)| (name.as_str(), deepest(&frames(code), 0)))
    }
}

/// A function's frame in bytes, and where the functions begin that it calls.
#[derive(Default)]
struct Frame {
    bytes: u32,
    calls: BTreeSet<usize>,
}

/// The frames of a linked program's functions, by the place of their first instruction.
fn frames(code: &[Instruction]) -> BTreeMap<usize, Frame> {
    let mut frames: BTreeMap<usize, Frame> =
        code.iter().enumerate().filter_map(|(at, it)| Some((it.callee(at)?, Frame::default()))).collect();
    frames.entry(0).or_default();
    let mut copies = BTreeSet::new();
    for (at, instruction) in code.iter().enumerate() {
        let Some((_, frame)) = frames.range_mut(..=at).next_back() else { continue };
        frame.calls.extend(instruction.callee(at));
        frame.bytes = frame.bytes.max(instruction.reaches(&mut copies));
    }
    frames
}

/// No program calls itself: the verifier refuses that.
fn deepest(frames: &BTreeMap<usize, Frame>, at: usize) -> u32 {
    let Some(frame) = frames.get(&at) else { return 0 };
    let below = frame.calls.iter().map(|callee| deepest(frames, *callee)).max();
    frame.bytes.max(1).next_multiple_of(ROUNDED) + below.unwrap_or(0)
}

impl Instruction {
    /// Where the function begins that is called, or whose address is taken, by the instruction at `at`.
    fn callee(self, at: usize) -> Option<usize> {
        let is_call = self.class() == JMP && self.operation() == CALL && self.source == CALL_LOCAL;
        let is_address = self.class() == LD && self.mode() == MODE_IMM && self.source == PSEUDO_CODE;
        (is_call || is_address).then(|| at.checked_add_signed(self.immediate as isize + 1)).flatten()
    }

    /// How far below its end the frame is reached. `copies` are the registers that have the end of the frame at this place.
    fn reaches(self, copies: &mut BTreeSet<usize>) -> u32 {
        let below = |offset: i32| offset.min(0).unsigned_abs();
        match (self.class(), self.operation()) {
            (LDX, _) if usize::from(self.source) == FRAME => below(self.offset.into()),
            (ST | STX, _) if self.destination == FRAME => below(self.offset.into()),
            (ALU64, MOVE) if self.by_register() && usize::from(self.source) == FRAME => {
                copies.insert(self.destination);
                0
            }
            (ALU64, ADD) if !self.by_register() && copies.remove(&self.destination) => below(self.immediate),
            _ => {
                copies.remove(&self.destination);
                0
            }
        }
    }
}
