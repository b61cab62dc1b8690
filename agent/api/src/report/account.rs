//! What the agent reports for `shunt-agent account`: two readings of each port's counters, and between them one of its host end.

use serde::{Deserialize, Serialize};

use super::Traffic;

/// One attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountReport {
    /// Network name.
    pub network: String,
    /// Container id.
    pub container: String,
    /// Interface name in the container.
    pub ifname: String,
    /// The host end's name.
    pub host_ifname: String,
    /// The programs' counters.
    pub before: Counted,
    /// Packets that the host end has received from the container, as the kernel counts them; none where it does not say.
    pub arrived: Option<u64>,
    /// What programs have dropped at the host end, by reason.
    pub drops: Vec<DropCount>,
    /// The programs' counters, read last.
    pub after: Counted,
}

/// The counters of a port at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// What the container sent.
    pub from: Traffic,
    /// What the container was sent.
    pub to: Traffic,
}

/// Packets dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCount {
    /// Why.
    pub reason: String,
    /// How many.
    pub packets: u64,
}
