//! The result of an ADD, in the shape of the specification's newest version; `versions.rs` puts it into
//! the one that was asked for.

mod add_result;
mod dns;
mod interface;
mod lenient;
mod route;
mod versions;

pub use add_result::AddResult;
pub use dns::Dns;
pub use interface::{Interface, Ip};
pub use route::Route;
pub use versions::ResultError;
