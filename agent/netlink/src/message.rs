//! Messages of a datagram, and what the kernel says of a request in `NLMSG_ERROR` and `NLMSG_DONE`.

use netlink_packet_core::{NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP_INTR, NetlinkBuffer};
use netlink_packet_core::{NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN};
use nix::errno::Errno;

use crate::attribute::{find, text};
use crate::error::NetlinkError;

/// Bytes of `struct nlmsghdr`, and what messages are aligned to.
const HEADER: usize = 16;
const ALIGN: usize = 4;

/// The kernel's words on an error (`NLMSGERR_ATTR_MSG`, linux/netlink.h); the crates do not read them.
const NLMSGERR_ATTR_MSG: u16 = 1;

/// Appends a message to `wire`, padded.
pub fn write(kind: u16, flags: u16, sequence: u32, payload: &[u8], wire: &mut Vec<u8>) {
    let start = wire.len();
    let length = HEADER + payload.len();
    wire.resize(start + HEADER, 0);
    let mut header = NetlinkBuffer::new(&mut wire[start..]);
    header.set_length(length as u32);
    header.set_message_type(kind);
    header.set_flags(flags);
    header.set_sequence_number(sequence);
    wire.extend_from_slice(payload);
    wire.resize(start + length.next_multiple_of(ALIGN), 0);
}

/// The messages of one datagram; an error where one is cut short, and nothing behind it.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<NetlinkBuffer<&[u8]>, NetlinkError>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message =
            NetlinkBuffer::new_checked(rest).map_err(|_| NetlinkError::Malformed("a message is cut short"));
        let length = message.as_ref().map_or(rest.len(), |message| message.length() as usize);
        rest = rest.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some(message)
    })
}

/// One message in answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// What was asked for.
    Part(&'a [u8]),
    /// The request is done, or refused.
    End(Result<(), (Errno, Option<String>)>),
    /// Nothing.
    Noop,
}

/// What a message says; `interrupted` becomes true where it belongs to a dump that is not consistent.
pub fn read<'a>(message: &NetlinkBuffer<&'a [u8]>, interrupted: &mut bool) -> Answer<'a> {
    *interrupted |= message.flags() & NLM_F_DUMP_INTR != 0;
    let payload = message.payload();
    match message.message_type() {
        NLMSG_NOOP | NLMSG_OVERRUN => Answer::Noop,
        NLMSG_ERROR | NLMSG_DONE => Answer::End(status(message, payload)),
        _ => Answer::Part(payload),
    }
}

/// The error number at the front: zero or negative. What the kernel says about it stands behind the request that it quotes
/// (`netlink_ack`, net/netlink/af_netlink.c).
fn status(message: &NetlinkBuffer<&[u8]>, payload: &[u8]) -> Result<(), (Errno, Option<String>)> {
    let code = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
    if code == 0 {
        return Ok(());
    }
    let quoted = match (message.message_type(), message.flags() & NLM_F_CAPPED) {
        (NLMSG_DONE, _) => 0,
        (_, 0) => payload
            .get(4..)
            .and_then(|quoted| quoted.first_chunk())
            .map_or(0, |length| (u32::from_ne_bytes(*length) as usize).next_multiple_of(ALIGN)),
        _ => HEADER,
    };
    let words = (message.flags() & NLM_F_ACK_TLVS != 0)
        .then(|| find(payload.get(4 + quoted..)?, NLMSGERR_ATTR_MSG).map(text))
        .flatten();
    Err((Errno::from_raw(code.wrapping_neg()), words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::attribute;

    fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        write(kind, flags, 0, payload, &mut wire);
        wire
    }

    fn answer(bytes: &[u8]) -> Answer<'_> {
        read(&messages(bytes).next().unwrap().unwrap(), &mut false)
    }

    #[test]
    fn a_dump_that_the_kernel_calls_inconsistent_is_interrupted() {
        for (flags, expected) in [(0, false), (NLM_F_DUMP_INTR, true)] {
            for kind in [16, NLMSG_DONE] {
                let bytes = message(kind, flags, &[0; 4]);
                let mut interrupted = false;
                let _ = read(&messages(&bytes).next().unwrap().unwrap(), &mut interrupted);
                assert_eq!(interrupted, expected, "{kind}");
            }
        }
    }

    #[test]
    fn the_kernels_words_are_read_whether_it_quotes_the_whole_request_or_its_header() {
        let words = attribute(NLMSGERR_ATTR_MSG, b"no such thing\0");
        let errno = (-libc_errno(Errno::ENODEV)).to_ne_bytes();
        let mut header = vec![0; HEADER];
        header[0] = 20;
        let expected = Answer::End(Err((Errno::ENODEV, Some("no such thing".to_owned()))));
        let capped = [&errno[..], &header, &words].concat();
        assert_eq!(answer(&message(NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, &capped)), expected);
        let whole = [&errno[..], &header, &[9; 4], &words].concat();
        assert_eq!(answer(&message(NLMSG_ERROR, NLM_F_ACK_TLVS, &whole)), expected);
        let without = message(NLMSG_ERROR, 0, &whole);
        assert_eq!(answer(&without), Answer::End(Err((Errno::ENODEV, None))));
        for length in 0..whole.len() {
            let _ = answer(&message(NLMSG_ERROR, NLM_F_ACK_TLVS, &whole[..length]));
        }
    }

    fn libc_errno(errno: Errno) -> i32 {
        errno as i32
    }

    #[test]
    fn a_datagram_cut_anywhere_ends_in_an_error() {
        let bytes = [message(16, 0, &[1; 4]), message(16, 0, &[2; 8])].concat();
        assert_eq!(messages(&bytes).filter(Result::is_ok).count(), 2);
        for length in 1..bytes.len() {
            let last = messages(&bytes[..length]).last().unwrap();
            assert_eq!(last.is_ok(), length == 20, "{length}");
        }
    }
}
