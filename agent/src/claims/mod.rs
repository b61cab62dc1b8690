//! Claims of bandwidth (dynamic resource allocation) that a kubelet has had prepared: what each has of which uplink, and for which pod.
//!
//! [`Claim`] is what is written down before the kubelet is answered, [`Claims`] are all of them, and [`Held`] is what those of one pod
//! come to on one uplink, beside the limits that were asked for otherwise. Nothing here asks the kernel or a server.

mod claim;
mod held;
mod table;

pub use claim::{Claim, Consumer, Share};
pub use held::Held;
pub use table::{Claims, MAX_CLAIMS, TooMany};
