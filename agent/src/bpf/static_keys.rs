//! The kernel's hooks for programs like ours, kept switched on while the agent runs.
//!
//! The first program of a node on tc ingress, on egress or on tcx at all has the kernel write a jump into its own code, and the last
//! one that goes has it taken out again (`tcx_skeys_inc`, include/net/tcx.h; `net_inc_ingress_queue`, net/core/dev.c). Each time every
//! processor is interrupted, several times for each of the three, under the lock of all network configuration; one that sleeps has to
//! be woken for it. With two processors an ADD on a node that has no other container takes 0.2 to 0.3 ms longer. So the agent has a
//! program each way where no packet ever comes: on the loopback device, which is down, of a network namespace of its own.

use std::io;

use aya::programs::links::{FdLink, LinkError, LinkOrder};
use aya::programs::tc::{TcAttachOptions, qdisc_add_clsact};
use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use nix::errno::Errno;
use nix::libc;
use nix::sched::{CloneFlags, unshare};

use crate::netlink::sandbox::apart;
use crate::netlink::{NetlinkError, RequestSocket};

const LOOPBACK: &str = "lo";

/// Why they go on and off with the containers.
#[derive(Debug, thiserror::Error)]
pub enum StaticKeysError {
    /// There is no thread, or it did not end well.
    #[error("a thread for it: {0}")]
    Thread(#[from] io::Error),
    /// The kernel refused a network namespace.
    #[error("a network namespace for it: {0}")]
    Namespace(#[from] Errno),
    /// The namespace cannot be held.
    #[error(transparent)]
    Hold(#[from] NetlinkError),
    /// The kernel refused the program or the qdisc.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The kernel refused the link.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// Keeps them on until it is dropped, or the process ends.
#[derive(Debug)]
pub struct StaticKeys {
    /// In this order: a link goes before its device does.
    _links: Vec<FdLink>,
    /// Without a process or a name the namespace lives as long as a socket of it.
    _namespace: RequestSocket,
}

impl StaticKeys {
    /// Those of tcx, which are also those of filters. Which program it is matters to nobody.
    ///
    /// # Errors
    /// [`StaticKeysError`].
    pub fn of_tcx(program: &mut SchedClassifier) -> Result<Self, StaticKeysError> {
        Self::hold(|| {
            let attach = |direction| {
                let options = TcAttachOptions::TcxOrder(LinkOrder::default());
                let id = program.attach_with_options(LOOPBACK, direction, options)?;
                Ok(FdLink::try_from(program.take_link(id)?)?)
            };
            [TcAttachType::Ingress, TcAttachType::Egress].into_iter().map(attach).collect()
        })
    }

    /// Those of filters.
    ///
    /// # Errors
    /// [`StaticKeysError`].
    pub fn of_clsact() -> Result<Self, StaticKeysError> {
        Self::hold(|| {
            qdisc_add_clsact(LOOPBACK).map_err(ProgramError::from)?;
            Ok(Vec::new())
        })
    }

    /// A thread makes the namespace and ends; the caller stays where it is.
    fn hold(
        attach: impl FnOnce() -> Result<Vec<FdLink>, StaticKeysError> + Send,
    ) -> Result<Self, StaticKeysError> {
        apart("static-keys", || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let namespace = RequestSocket::open(libc::NETLINK_ROUTE)?;
            Ok(Self { _links: attach()?, _namespace: namespace })
        })?
    }
}
