//! One request, with the words that an error about it will use.

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;

/// A message that has not been sent yet.
#[derive(Debug)]
pub(crate) struct Request {
    pub(super) what: String,
    pub(super) flags: u16,
    message: RouteNetlinkMessage,
}

impl Request {
    /// Asks for something to be done or shown; `flags` are those beyond request and acknowledge.
    pub(super) fn new(what: String, message: RouteNetlinkMessage, flags: u16) -> Self {
        Self { what, flags: flags | NLM_F_REQUEST | NLM_F_ACK, message }
    }

    /// Asks for a list.
    pub(super) fn list(what: String, message: RouteNetlinkMessage) -> Self {
        Self { what, flags: NLM_F_REQUEST | NLM_F_DUMP, message }
    }

    /// Appends the message to `wire`, padded to netlink's alignment of four bytes.
    pub(super) fn emit(self, sequence: u32, wire: &mut Vec<u8>) -> String {
        let mut message = NetlinkMessage::from(self.message);
        message.header.flags = self.flags;
        message.header.sequence_number = sequence;
        message.finalize();
        debug_assert!(matches!(message.payload, NetlinkPayload::InnerMessage(_)));
        let start = wire.len();
        let length = message.buffer_len();
        wire.resize(start + length.next_multiple_of(4), 0);
        message.serialize(&mut wire[start..start + length]);
        self.what
    }
}
