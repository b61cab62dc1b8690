//! One request, with the words that an error about it uses.

use std::borrow::Cow;
use std::marker::PhantomData;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkSerializable,
};
use netlink_packet_route::RouteNetlinkMessage;

use crate::message;

/// Makes something that is not there yet (`EEXIST` where it is).
pub(crate) const MAKE: u16 = NLM_F_CREATE | NLM_F_EXCL;

/// Makes something, in the place of what is there.
pub(crate) const REPLACE: u16 = NLM_F_CREATE | NLM_F_REPLACE;

/// What is read of each message in answer to a request.
pub trait Reply: Sized {
    /// Reads the payload of a message; none for one that is not about this, or is too short.
    fn read(payload: &[u8]) -> Option<Self>;
}

/// What answers a request that is only acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged;

impl Reply for Acknowledged {
    fn read(_: &[u8]) -> Option<Self> {
        None
    }
}

/// A message that has not been sent yet; `T` is what answers it.
#[derive(Debug)]
#[must_use]
pub struct Request<T = Acknowledged> {
    pub(crate) what: Cow<'static, str>,
    kind: u16,
    flags: u16,
    payload: Vec<u8>,
    answer: PhantomData<fn() -> T>,
}

impl<T> Request<T> {
    /// Asks for something to be done or shown. `what` follows "could not"; `flags` are those beyond request and acknowledge.
    pub(crate) fn new(what: impl Into<Cow<'static, str>>, message: RouteNetlinkMessage, flags: u16) -> Self {
        let mut payload = vec![0; message.buffer_len()];
        message.serialize(&mut payload);
        Self::raw(what, message.message_type(), flags, payload)
    }

    /// Asks for a whole table.
    pub(crate) fn dump(what: impl Into<Cow<'static, str>>, message: RouteNetlinkMessage) -> Self {
        Self::new(what, message, NLM_F_DUMP)
    }

    /// Asks with a payload that the crates have no type for.
    pub(crate) fn raw(what: impl Into<Cow<'static, str>>, kind: u16, flags: u16, payload: Vec<u8>) -> Self {
        Self { what: what.into(), kind, flags: flags | NLM_F_REQUEST, payload, answer: PhantomData }
    }

    /// The same request in a batch of several kinds.
    pub fn any(self) -> Request {
        let Self { what, kind, flags, payload, .. } = self;
        Request { what, kind, flags, payload, answer: PhantomData }
    }

    pub(crate) fn is_dump(&self) -> bool {
        self.flags & NLM_F_DUMP == NLM_F_DUMP
    }

    /// Appends the message to `wire`, padded. The kernel says of an `acknowledged` request that it is done, of each that it failed,
    /// and of a dump where it ends (`netlink_rcv_skb`, net/netlink/af_netlink.c).
    pub(crate) fn emit(&self, sequence: u32, acknowledged: bool, wire: &mut Vec<u8>) {
        let flags = self.flags | if acknowledged { NLM_F_ACK } else { 0 };
        message::write(self.kind, flags, sequence, &self.payload, wire);
    }

    /// The message's payload.
    #[cfg(test)]
    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }
}
