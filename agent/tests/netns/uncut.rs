//! Sockets that look for what their path takes: whatever is larger is an error.

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
    if socket.local_addr().unwrap().is_ipv4() {
        setsockopt(socket, CutV4, &libc::IP_PMTUDISC_DO).unwrap();
    } else {
        setsockopt(socket, CutV6, &libc::IPV6_PMTUDISC_DO).unwrap();
    }
}
