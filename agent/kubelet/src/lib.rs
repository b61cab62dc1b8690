//! A driver of dynamic resource allocation as a kubelet sees it: it registers, prepares and unprepares claims, and tells its devices' health.
//!
//! In: a [`Driver`], and the kubelet's root directory. Out: two sockets for root alone, one in the kubelet's registry and one of the
//! driver's own. Every call has a deadline and a bounded length; a claim that cannot be prepared fails alone. The messages are written
//! from the published API (k8s.io/kubelet/pkg/apis) in `proto`.

#![forbid(unsafe_code)]

mod connection;
mod driver;
mod health;
mod plugin;
pub mod proto;
mod registration;
mod serve;
mod services;
mod socket;
mod sockets;

pub use driver::{ClaimName, Device, DeviceHealth, Driver};
pub use serve::{ServeError, serve};
pub use socket::SocketError;
