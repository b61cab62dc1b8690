//! What links there are.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Kernel, KernelError};
use crate::netlink::link::{self, Kind, Link};

/// How long both ends of a veth may take to become operational. Before Linux 6.8 the kernel may look after an end's carrier once a second
/// only (`linkwatch_schedule_work`, net/core/link_watch.c).
const CARRIER_PATIENCE: Duration = Duration::from_millis(2500);

impl Kernel {
    /// The link with this index, if there is one.
    ///
    /// # Errors
    /// Netlink's.
    pub fn link(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        Ok(link::by_index(&mut self.route, index)?)
    }

    /// The link of this name, if there is one.
    ///
    /// # Errors
    /// Netlink's.
    pub fn link_named(&mut self, name: &str) -> Result<Option<Link>, KernelError> {
        Ok(link::by_name(&mut self.route, name)?)
    }

    /// Sets a veth's end up. Where its peer is up, waits until both are operational.
    ///
    /// # Errors
    /// Netlink's; [`KernelError::NotOperational`] where they do not become so in time.
    pub fn set_up(&mut self, host: &Link, peer_up: bool) -> Result<(), KernelError> {
        let begun = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            if link::set_up(&mut self.route, host)? || !peer_up {
                return Ok(());
            }
            if begun.elapsed() > CARRIER_PATIENCE {
                return Err(KernelError::NotOperational(host.name.clone()));
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// What a link is made of; none if there is none.
    ///
    /// # Errors
    /// Netlink's.
    pub fn kind(&mut self, index: u32) -> Result<Option<Kind>, KernelError> {
        Ok(link::kind(&mut self.route, index)?)
    }

    /// What every link is made of.
    ///
    /// # Errors
    /// Netlink's.
    pub fn kinds(&mut self) -> Result<Vec<Kind>, KernelError> {
        Ok(link::kinds(&mut self.route)?)
    }

    /// What every port of a bridge is made of.
    ///
    /// # Errors
    /// Netlink's.
    pub fn ports(&mut self, bridge: u32) -> Result<Vec<Kind>, KernelError> {
        Ok(link::ports(&mut self.route, bridge)?)
    }
}
