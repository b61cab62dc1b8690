//! The result of an ADD, in the shape of the specification's newest version; [`versions`](self::versions) puts it into
//! the one that was asked for.

mod dns;
mod interface;
mod lenient;
mod route;
mod versions;

use serde::{Deserialize, Serialize};

pub use dns::Dns;
pub use interface::{Interface, Ip};
pub use route::Route;
pub use versions::ResultError;

/// What an attachment consists of (CNI specification 1.1, "Success").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AddResult {
    /// The interfaces, host side first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    /// The container's addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ips: Vec<Ip>,
    /// The container's routes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The container's resolver.
    pub dns: Dns,
}
