//! Looks at tracked connections as the kernel tells them, without keeping them: there may be millions.

use std::ops::ControlFlow;
use std::time::Instant;

use netlink_packet_core::NLM_F_DUMP;
use nix::libc::{AF_UNSPEC, NETLINK_NETFILTER};

use super::{GET, TrackedConnection};
use crate::attribute::attribute;
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::nfnetlink;
use crate::request::Request;

const CTA_STATUS: u16 = 3;

/// `IPS_DST_NAT` (linux/netfilter/nf_conntrack_common.h).
const DESTINATION_TRANSLATED: u32 = 0x20;

/// Which connections are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// Those whose destination is translated. The kernel picks them out since Linux 5.15 (`ctnetlink_filter_parse_status`); an older one tells all.
    Redirected,
}

/// Hands tracked connections to `each`, IPv4 and IPv6, until it has enough or the time is over. Returns whether that were all; one that begins or ends
/// meanwhile may be missed.
///
/// # Errors
/// The kernel has no ctnetlink, or every kind of [`NetlinkError`].
pub fn walk(
    which: Which,
    until: Instant,
    mut each: impl FnMut(TrackedConnection) -> ControlFlow<()>,
) -> Result<bool, NetlinkError> {
    let mut payload = nfnetlink::header(AF_UNSPEC as u8);
    if which == Which::Redirected {
        payload.extend(attribute(CTA_STATUS, &DESTINATION_TRANSLATED.to_be_bytes()));
    }
    let request = Request::raw("look at the tracked connections", GET, NLM_F_DUMP, payload);
    Connection::of(NETLINK_NETFILTER)?.walk(request, |connection: TrackedConnection| {
        if Instant::now() > until {
            return ControlFlow::Break(());
        }
        each(connection)
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::process::Command;
    use std::time::Duration;

    use nix::sched::{CloneFlags, unshare};

    use super::*;

    /// The ports that connections were for first, and whether that were all, of those that were looked at.
    fn looked_at(which: Which, until: Instant, most: usize) -> (Vec<u16>, bool) {
        let mut ports = Vec::new();
        let is_all = walk(which, until, |connection| {
            ports.push(connection.original.destination.port());
            if ports.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let is_all = is_all.unwrap();
        ports.sort_unstable();
        (ports, is_all)
    }

    #[test]
    fn the_kernel_picks_out_what_it_has_translated_and_a_look_ends_where_it_is_to() {
        std::thread::scope(|scope| {
            let looker = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
                let rules = "table ip t { chain out { type nat hook output priority -100; udp dport 9 dnat to 127.0.0.1:10; }; }";
                for (program, arguments) in
                    [("ip", &["link", "set", "lo", "up"][..]), ("nft", &[rules])]
                {
                    let done = Command::new(program).args(arguments).status();
                    assert!(done.expect("it runs").success(), "{program}");
                }
                let _servers = [10, 11, 12].map(|port| UdpSocket::bind(("127.0.0.1", port)).unwrap());
                let client = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
                for port in [9, 11, 12] {
                    client.send_to(b"word", ("127.0.0.1", port)).unwrap();
                }
                let later = Instant::now() + Duration::from_secs(60);
                assert_eq!(looked_at(Which::All, later, 9), (vec![9, 11, 12], true));
                assert_eq!(looked_at(Which::Redirected, later, 9), (vec![9], true));
                let (some, is_all) = looked_at(Which::All, later, 2);
                assert_eq!((some.len(), is_all), (2, false));
                let past = Instant::now();
                std::thread::sleep(Duration::from_millis(1));
                assert_eq!(looked_at(Which::All, past, 9), (Vec::new(), false));
            });
            looker.join().unwrap();
        });
    }
}
