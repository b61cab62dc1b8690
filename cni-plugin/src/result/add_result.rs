//! What an attachment consists of.

use serde::{Deserialize, Serialize};

use super::dns::Dns;
use super::interface::{Interface, Ip};
use super::route::Route;

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
