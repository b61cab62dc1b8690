//! Bandwidth as something that can be handed out: what an uplink has, who was given how much, what is left.
//!
//! [`quantity`] reads what operators write, [`uplink`] makes a total of it and of the link's [`speed`], [`ledger`] keeps
//! the books. An attachment is guaranteed its configured
//! rate, so that is what it takes. The ledger is memory only: the attachments' records are what survives a restart, and
//! it is made of them again.

pub mod ledger;
mod node_name;
pub mod quantity;
pub mod slice;
pub mod speed;
pub mod uplink;

pub use ledger::{Demand, Ledger, Shortage};
pub use node_name::{NODE_NAME, node_name};
pub use quantity::Quantity;
pub use speed::{Speed, Speeds};
pub use uplink::{UplinkOptions, XdpMode};
