//! What the agent reports.

mod account;
mod flow;
mod port;
mod status;

pub use self::account::*;
pub use self::flow::*;
pub use self::port::*;
pub use self::status::*;
