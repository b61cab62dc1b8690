//! What the user of a pod can cure, told to whoever writes it where users look (events of the pod).
//!
//! Nobody waits for it: a notice that finds the queue full is dropped.

use shunt_agent_api::{AgentError, ErrorKind, Pod};

use super::Refusal;
use super::refusal::ClaimFault;

/// Why, in a word that scripts may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// More bandwidth is asked for than the uplink has left.
    BandwidthExceeded,
    /// The pod's claim is of another uplink than the network's.
    ClaimOfAnotherUplink,
    /// Several pods, or interfaces, have one claim.
    ClaimShared,
    /// Another pod has the host port.
    HostPortTaken,
    /// There is no room for so many host ports.
    HostPortsExhausted,
    /// Limits that are asked for beside a claim are above it, or below: the lower ones hold.
    LimitsDiffer,
}

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Whom it concerns.
    pub(crate) pod: Pod,
    /// Why.
    pub(crate) reason: Reason,
    /// One line for a person.
    pub(crate) note: String,
}

impl Reason {
    /// The word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BandwidthExceeded => "BandwidthExceeded",
            Self::ClaimOfAnotherUplink => "ClaimOfAnotherUplink",
            Self::ClaimShared => "ClaimShared",
            Self::HostPortTaken => "HostPortTaken",
            Self::HostPortsExhausted => "HostPortsExhausted",
            Self::LimitsDiffer => "LimitsDiffer",
        }
    }

    /// Whether the pod does not run for it.
    pub(crate) fn is_fatal(self) -> bool {
        self != Self::LimitsDiffer
    }

    /// That of a refusal that a user can cure.
    pub(crate) fn of(refusal: &Refusal) -> Option<Self> {
        match refusal {
            Refusal::Capacity { .. } => Some(Self::BandwidthExceeded),
            Refusal::TooManyPorts { .. } => Some(Self::HostPortsExhausted),
            Refusal::PortTaken { .. } => Some(Self::HostPortTaken),
            Refusal::Claim { fault: ClaimFault::OtherUplink, .. } => Some(Self::ClaimOfAnotherUplink),
            Refusal::Claim { fault: ClaimFault::Shared, .. } => Some(Self::ClaimShared),
            _ => None,
        }
    }
}

impl Notice {
    /// That of a refusal by who was asked before an attachment ([`crate::agent`]): only that of a claim which others have is the user's.
    pub(crate) fn of_consultation(pod: &Pod, error: &AgentError) -> Option<Self> {
        let notice = |note| Self { pod: pod.clone(), reason: Reason::ClaimShared, note };
        (error.kind == ErrorKind::Claim).then(|| notice(error.message.clone()))
    }
}
