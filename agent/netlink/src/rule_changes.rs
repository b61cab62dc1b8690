//! Changes of nf_tables' rules and sets, as the kernel tells them to everybody.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::libc;

use crate::error::NetlinkError;
use crate::message::messages;
use crate::socket::Socket;

/// `NFNLGRP_NFTABLES` (linux/netfilter/nfnetlink.h).
const GROUP: u32 = 7;

/// Bytes that may wait in the kernel. What finds no room counts as a change.
const BACKLOG: usize = 1 << 20;

/// The end of each transaction.
const NEW_GENERATION: u16 = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | libc::NFT_MSG_NEWGEN as u16;

/// Datagrams that are read at a time.
const MOST: usize = 4096;

/// Hears of changes in the network namespace that it was opened in.
#[derive(Debug)]
pub struct RuleChanges(Socket);

impl AsFd for RuleChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl RuleChanges {
    /// Subscribes.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn open() -> Result<Self, NetlinkError> {
        Socket::listen(libc::NETLINK_NETFILTER, &[GROUP], Some(BACKLOG), |_| Ok(())).map(Self)
    }

    /// Reads all that has been told by now, and does not wait. Whether anybody has committed a transaction, or may have.
    ///
    /// # Errors
    /// The kernel's, other than that it dropped messages.
    pub fn have_come(&mut self) -> io::Result<bool> {
        let mut have = false;
        for _ in 0..MOST {
            match self.0.receive() {
                Ok(datagram) => {
                    have |= messages(datagram)
                        .any(|message| message.is_ok_and(|it| it.message_type() == NEW_GENERATION));
                }
                Err(NetlinkError::Socket(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(NetlinkError::Socket(error)) if error.raw_os_error() != Some(libc::ENOBUFS) => {
                    return Err(error);
                }
                // Messages were lost, or one is larger than any end of a transaction.
                Err(_) => have = true,
            }
        }
        Ok(have)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::*;

    fn nft(command: &str) {
        assert!(Command::new("nft").arg(command).status().expect("nft runs").success());
    }

    #[test]
    fn each_transaction_is_heard_of_and_nothing_else() {
        std::thread::scope(|scope| {
            let hearer = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
                let mut changes = RuleChanges::open().unwrap();
                assert!(!changes.have_come().unwrap());
                for command in [
                    "add table inet one",
                    "add set inet one some { type ipv4_addr; }",
                    "add element inet one some { 10.0.0.1 }",
                    "flush ruleset",
                ] {
                    nft(command);
                    assert!(changes.have_come().unwrap(), "{command}");
                    assert!(!changes.have_come().unwrap(), "{command}");
                }
                nft("list ruleset");
                assert!(!changes.have_come().unwrap(), "who only asks changes nothing");
            });
            hearer.join().unwrap();
        });
    }
}
