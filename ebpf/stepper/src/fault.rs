//! What no program may do.

/// The program did what no program may.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// A load or store where there is nothing.
    #[error("{length} bytes at {address:#x} are outside of everything")]
    OutOfBounds {
        /// Where.
        address: u64,
        /// How much.
        length: usize,
    },
    /// An instruction that is not known here.
    #[error("instruction {at} has the unknown code {code:#04x}")]
    Instruction {
        /// Where in the program.
        at: usize,
        /// Its code.
        code: u8,
    },
    /// A helper that is not known here.
    #[error("no helper has the number {0} here")]
    Helper(i32),
    /// No such map, by what a program has in place of its file descriptor.
    #[error("there is no map at {0:#x}")]
    Map(u64),
    /// The program left its own code, called too deep, or did not end.
    #[error("the program runs astray at instruction {0}")]
    Astray(usize),
    /// There is no such program.
    #[error("the object has no program {0}")]
    Program(String),
}
