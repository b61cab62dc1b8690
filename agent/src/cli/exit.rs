//! Exit codes beside success.

/// Exit code for a question that the agent did not answer.
pub const UNREACHABLE: u8 = 1;

/// Exit code for a command line or a configuration that makes no sense.
pub const USAGE: u8 = 2;

/// Exit code of `check` for something that is not as it should be.
pub const INCONSISTENT: u8 = 3;
