//! What the agent reports.

mod config;
mod flow;
mod port;
mod status;

pub use self::config::*;
pub use self::flow::*;
pub use self::port::*;
pub use self::status::*;
