//! What the agent reports.

mod account;
mod config;
mod flow;
mod port;
mod status;

pub use self::account::*;
pub use self::config::*;
pub use self::flow::*;
pub use self::port::*;
pub use self::status::*;
