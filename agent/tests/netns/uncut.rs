//! Sockets whose large datagrams are errors, or may be cut.

use std::net::UdpSocket;

use nix::sys::socket::{setsockopt, sockopt::SetStruct};
use nix::{libc, setsockopt_impl};

/// What becomes of packets that are larger than their path takes, of either version.
#[derive(Clone, Copy)]
struct CutV4;
setsockopt_impl!(CutV4, libc::SOL_IP, libc::IP_MTU_DISCOVER, i32, SetStruct<i32>);
#[derive(Clone, Copy)]
struct CutV6;
setsockopt_impl!(CutV6, libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, i32, SetStruct<i32>);

/// What is too large is an error, and never cut.
pub(crate) fn never_cut(socket: &UdpSocket) {
    treat(socket, libc::IP_PMTUDISC_DO, libc::IPV6_PMTUDISC_DO);
}

/// Whoever finds it too large may cut it.
pub(crate) fn may_be_cut(socket: &UdpSocket) {
    treat(socket, libc::IP_PMTUDISC_DONT, libc::IPV6_PMTUDISC_DONT);
}

/// What its own link takes is sent, whatever routers have said of theirs; they may cut it or not.
pub(crate) fn heed_no_router(socket: &UdpSocket, may_be_cut: bool) {
    if may_be_cut {
        treat(socket, libc::IP_PMTUDISC_INTERFACE, libc::IPV6_PMTUDISC_INTERFACE);
    } else {
        treat(socket, libc::IP_PMTUDISC_PROBE, libc::IPV6_PMTUDISC_PROBE);
    }
}

fn treat(socket: &UdpSocket, v4: i32, v6: i32) {
    if socket.local_addr().unwrap().is_ipv4() {
        setsockopt(socket, CutV4, &v4).unwrap();
    } else {
        setsockopt(socket, CutV6, &v6).unwrap();
    }
}
