//! The result of an ADD: what was created, as the specification's newest version says it.

mod dns;
mod lenient;
mod route;

pub use dns::Dns;
pub use route::Route;
