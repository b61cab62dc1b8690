//! One request, with the words that an error about it will use.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::RouteNetlinkMessage;

/// What is asked.
#[derive(Debug)]
pub(super) enum Message {
    /// In the library's words.
    Route(RouteNetlinkMessage),
    /// Something that the library has no words for.
    Other {
        /// `nlmsg_type`.
        kind: u16,
        /// What follows the netlink header.
        payload: Vec<u8>,
    },
}

impl From<RouteNetlinkMessage> for Message {
    fn from(message: RouteNetlinkMessage) -> Self {
        Self::Route(message)
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        match self {
            Self::Route(message) => message.message_type(),
            Self::Other { kind, .. } => *kind,
        }
    }

    fn buffer_len(&self) -> usize {
        match self {
            Self::Route(message) => NetlinkSerializable::buffer_len(message),
            Self::Other { payload, .. } => payload.len(),
        }
    }

    fn serialize(&self, buffer: &mut [u8]) {
        match self {
            Self::Route(message) => message.serialize(buffer),
            Self::Other { payload, .. } => buffer.copy_from_slice(payload),
        }
    }
}

/// A message that has not been sent yet.
#[derive(Debug)]
pub(crate) struct Request {
    pub(super) what: String,
    pub(super) flags: u16,
    message: Message,
}

impl Request {
    /// Asks for something to be done or shown; `flags` are those beyond request and acknowledge.
    pub(super) fn new(what: String, message: impl Into<Message>, flags: u16) -> Self {
        Self { what, flags: flags | NLM_F_REQUEST, message: message.into() }
    }

    /// Asks for a list.
    pub(super) fn list(what: String, message: RouteNetlinkMessage) -> Self {
        Self { what, flags: NLM_F_REQUEST | NLM_F_DUMP, message: message.into() }
    }

    /// Appends the message to `wire`, padded to netlink's alignment of four bytes. The kernel says of what is
    /// `acknowledged` that it was done, of everything that it failed, and of a list where it ends (`netlink_rcv_skb`, net/netlink/af_netlink.c).
    pub(super) fn emit(self, sequence: u32, acknowledged: bool, wire: &mut Vec<u8>) -> String {
        let mut header = NetlinkHeader::default();
        header.flags = self.flags | if acknowledged { NLM_F_ACK } else { 0 };
        header.sequence_number = sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(self.message));
        message.finalize();
        let start = wire.len();
        let length = message.buffer_len();
        wire.resize(start + length.next_multiple_of(4), 0);
        message.serialize(&mut wire[start..start + length]);
        self.what
    }
}
