//! What has happened, for whoever subscribed; the field names are the contract of `shunt-agent events`.

use serde::{Deserialize, Serialize};

use crate::AttachmentKey;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in UTC (RFC 3339, milliseconds), as `2026-01-31T12:00:00.000Z`.
    pub time: String,
    /// What.
    pub event: EventKind,
    /// To which attachment; absent for what concerns a whole bridge or the stream itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AttachmentKey>,
    /// The namespace of the attachment's pod, as far as the runtime says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The pod's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// On which interface of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ifname: Option<String>,
    /// The trace of the request that it follows from: 32 hexadecimal digits (W3C Trace Context). Absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// One line for a person: why, or what exactly.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// The kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// An attachment was made.
    Attach,
    /// An attachment was forgotten: asked to, collected, or its link or bridge is gone.
    Detach,
    /// Somebody had altered an attachment or a bridge, and it is as it should be again.
    Repair,
    /// A link cannot carry packets: one of its ends is down.
    LinkDown,
    /// It can again.
    LinkUp,
    /// A program of ours was not where it was attached.
    ProgramLost,
    /// A bridge was deleted under its attachments.
    BridgeLost,
    /// Another container has an attachment's address: the lease was taken away, and given again.
    LeaseTaken,
    /// Claims limit an attachment: which, and whether they or the limits that were asked for beside them hold.
    Claim,
    /// What is left of an uplink, which `host_ifname` names, has changed.
    Capacity,
    /// The subscriber was too slow: events are missing before the next one.
    Lagged,
}
