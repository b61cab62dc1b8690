//! Others' rules for bridged packets, and whether they are heeded: then a flow between containers is opened by the kernel's way, and the programs
//! ask again while it lasts (the stage `accept`).

mod carried;
mod follow;
mod handover;
mod harmless;
mod harms;
mod heeded;
mod kept;
mod listed;
mod masqueraded;
mod opened;
mod opening;
mod refused;
mod routes;
mod state;
mod tracking;
mod watch;

pub(crate) use self::opened::opened_ports;
pub(crate) use self::state::Heeded;
