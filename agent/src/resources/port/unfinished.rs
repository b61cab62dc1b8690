//! What of a removed attachment is left.

use shunt_agent_api::AttachmentKey;

use crate::datapath::attach::hook::Hook;

/// A program that could not be detached. Its attachment's record stays until it is: without one, the next agent would keep the port guarded.
#[derive(Clone, Debug)]
pub(crate) struct Unfinished {
    pub(super) key: AttachmentKey,
    pub(super) hook: Hook,
}
