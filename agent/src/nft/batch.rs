//! One transaction of nf_tables: all of its messages take effect, or none (`nfnetlink_rcv_batch`).

use std::io;

use netlink_packet_core::NetlinkBuffer;
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use nix::libc;

use super::attribute::Attributes;
use crate::netlink::socket::messages;
use crate::seams::{self, Seam};

const HEADER: usize = 16;
const SUBSYSTEM: u16 = libc::NFNL_SUBSYS_NFTABLES as u16;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const ANSWERS: usize = 64 << 10;

/// Why the kernel's rules could not be set.
#[derive(Debug, thiserror::Error)]
pub enum NftError {
    /// The socket failed: the kernel may lack nf_tables.
    #[error("nf_tables: {0}")]
    Socket(#[from] io::Error),
    /// The kernel refused a message, and with it all of them.
    #[error("nf_tables refused {step}: {source}")]
    Refused {
        /// Which.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Messages that are sent together.
#[derive(Debug)]
pub(super) struct Batch {
    wire: Vec<u8>,
    steps: Vec<&'static str>,
}

/// A transaction that is in force.
///
/// The kernel frees what was there before a grace period later, and whoever closes the socket waits for that
/// (`nft_rcv_nl_event`, net/netfilter/nf_tables_api.c): milliseconds, but beside many busy processes an agent's start was
/// seen to wait a minute. So this is to be dropped where nobody waits.
#[derive(Debug)]
#[must_use = "to drop it is to wait for a grace period"]
pub struct Committed {
    _socket: Socket,
}

impl Batch {
    /// An empty one.
    pub(super) fn new() -> Self {
        let mut batch = Self { wire: Vec::new(), steps: Vec::new() };
        batch.message(BATCH_BEGIN, libc::NLM_F_REQUEST as u16, libc::AF_UNSPEC as u8, SUBSYSTEM, &[]);
        batch
    }

    /// Adds a message of the `inet` family; `step` names it in errors.
    pub(super) fn add(&mut self, step: &'static str, kind: i32, flags: i32, attributes: &Attributes) {
        let kind = SUBSYSTEM << 8 | kind as u16;
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        self.steps.push(step);
        self.message(kind, flags, libc::NFPROTO_INET as u8, 0, attributes.as_bytes());
    }

    /// Sends all of them and waits for the kernel's word on each.
    ///
    /// # Errors
    /// [`NftError::Refused`] with the first that the kernel refused; nothing was changed then.
    pub(super) fn commit(mut self) -> Result<Committed, NftError> {
        self.message(BATCH_END, libc::NLM_F_REQUEST as u16, libc::AF_UNSPEC as u8, SUBSYSTEM, &[]);
        seams::pass(Seam::Netlink)?;
        let socket = Socket::new(NETLINK_NETFILTER)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.send(&self.wire, 0)?;
        let mut answered = 0;
        while answered < self.steps.len() {
            let mut buffer = Vec::with_capacity(ANSWERS);
            match socket.recv(&mut buffer, 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            for answer in messages(&buffer).map_while(Result::ok) {
                let errno = answer.payload().first_chunk().copied().map_or(0, i32::from_ne_bytes);
                if errno != 0 {
                    // The first message of a batch is its begin, which has no step.
                    let at = (answer.sequence_number() as usize).checked_sub(1);
                    let step = at.and_then(|at| self.steps.get(at)).copied().unwrap_or("the transaction");
                    return Err(NftError::Refused { step, source: io::Error::from_raw_os_error(-errno) });
                }
                answered += 1;
            }
        }
        Ok(Committed { _socket: socket })
    }

    /// A netlink header, `struct nfgenmsg` (family, version 0, resource in network order), attributes.
    fn message(&mut self, kind: u16, flags: u16, family: u8, resource: u16, attributes: &[u8]) {
        let [high, low] = resource.to_be_bytes();
        let payload = [&[family, 0, high, low], attributes].concat();
        let mut message = vec![0; HEADER + payload.len()];
        message[HEADER..].copy_from_slice(&payload);
        let mut header = NetlinkBuffer::new(&mut message);
        header.set_length((HEADER + payload.len()) as u32);
        header.set_message_type(kind);
        header.set_flags(flags);
        header.set_sequence_number(self.steps.len() as u32);
        self.wire.extend_from_slice(&message);
    }
}
