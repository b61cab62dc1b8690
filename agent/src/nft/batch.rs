//! One transaction of nf_tables: all of its messages take effect, or none (`nfnetlink_rcv_batch`).

use nix::errno::Errno;
use nix::libc;
use shunt_netlink::message::{Answer, messages, read};
use shunt_netlink::{NetlinkError, Socket, message};

use super::attribute::Attributes;

const SUBSYSTEM: u16 = libc::NFNL_SUBSYS_NFTABLES as u16;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;

/// Why the kernel's rules could not be set.
#[derive(Debug, thiserror::Error)]
pub enum NftError {
    /// The socket failed: the kernel may lack nf_tables.
    #[error("nf_tables: {0}")]
    Socket(#[from] NetlinkError),
    /// The kernel refused a message, and with it all of them.
    #[error("nf_tables refused {step}: {}{}", errno.desc(), detail.as_deref().map(|words| format!(" ({words})")).unwrap_or_default())]
    Refused {
        /// Which.
        step: &'static str,
        /// Why.
        errno: Errno,
        /// The kernel's own words, where it has any.
        detail: Option<String>,
    },
}

impl NftError {
    /// Whether the kernel has no nf_tables, or lacks a part of it: a kind of chains or of expressions, or the family `inet`.
    pub(crate) fn is_lack(&self) -> bool {
        let errno = match self {
            Self::Refused { errno, .. } => *errno,
            Self::Socket(NetlinkError::Socket(error)) => {
                // No netlink of netfilter.
                return error.raw_os_error() == Some(Errno::EPROTONOSUPPORT as i32);
            }
            Self::Socket(_) => return false,
        };
        matches!(errno, Errno::ENOENT | Errno::EOPNOTSUPP)
    }
}

/// Messages that are sent together.
#[derive(Debug)]
pub(super) struct Batch {
    wire: Vec<u8>,
    steps: Vec<&'static str>,
    contents: Contents,
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
    contents: Contents,
}

impl Committed {
    /// What it has put into the table.
    pub fn contents(&self) -> Contents {
        self.contents
    }
}

/// How much a transaction puts into the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Chains.
    pub(super) chains: usize,
    /// Rules of all chains.
    pub(super) rules: usize,
}

impl Batch {
    /// An empty one.
    pub(super) fn new() -> Self {
        let mut batch = Self { wire: Vec::new(), steps: Vec::new(), contents: Contents::default() };
        batch.message(BATCH_BEGIN, libc::NLM_F_REQUEST as u16, libc::AF_UNSPEC as u8, SUBSYSTEM, &[]);
        batch
    }

    /// Adds a message of the `inet` family; `step` names it in errors.
    pub(super) fn add(&mut self, step: &'static str, kind: i32, flags: i32, attributes: &Attributes) {
        self.contents.chains += usize::from(kind == libc::NFT_MSG_NEWCHAIN);
        self.contents.rules += usize::from(kind == libc::NFT_MSG_NEWRULE);
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
        let mut socket = Socket::open(libc::NETLINK_NETFILTER)?;
        socket.send(&self.wire)?;
        let mut answered = 0;
        while answered < self.steps.len() {
            for answer in messages(socket.receive()?).map_while(Result::ok) {
                if let Answer::End(Err((errno, detail))) = read(&answer, &mut false) {
                    // The first message of a batch is its begin, which has no step.
                    let at = (answer.sequence_number() as usize).checked_sub(1);
                    let step = at.and_then(|at| self.steps.get(at)).copied().unwrap_or("the transaction");
                    return Err(NftError::Refused { step, errno, detail });
                }
                answered += 1;
            }
        }
        Ok(Committed { _socket: socket, contents: self.contents })
    }

    /// A netlink header, `struct nfgenmsg` (family, version 0, resource in network order), attributes.
    fn message(&mut self, kind: u16, flags: u16, family: u8, resource: u16, attributes: &[u8]) {
        let [high, low] = resource.to_be_bytes();
        let payload = [&[family, 0, high, low], attributes].concat();
        message::write(kind, flags, self.steps.len() as u32, &payload, &mut self.wire);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_the_kernel_lacks_is_told_from_what_it_refuses() {
        let refused = |errno| NftError::Refused { step: "a chain", errno, detail: None };
        let socket = |errno: Errno| NftError::Socket(io::Error::from(errno).into());
        for error in [refused(Errno::ENOENT), refused(Errno::EOPNOTSUPP), socket(Errno::EPROTONOSUPPORT)] {
            assert!(error.is_lack(), "{error}");
        }
        for error in [refused(Errno::EPERM), refused(Errno::EBUSY), socket(Errno::ENOBUFS)] {
            assert!(!error.is_lack(), "{error}");
        }
    }
}
