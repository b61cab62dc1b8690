//! What the agent reports.

mod flow;
mod port;
mod status;

pub use self::flow::*;
pub use self::port::*;
pub use self::status::*;
