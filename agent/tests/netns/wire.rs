//! Frames as they are: sent past a container's own stack, and seen before anybody's.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvfrom, sendto, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};
use shunt_lab::Namespace;

/// A hardware address.
pub(crate) type Mac = [u8; 6];

pub(crate) const BROADCAST: Mac = [0xff; 6];

/// IEEE 802 "local experimental": nobody else's frames have it.
const EXPERIMENT: [u8; 2] = [0x88, 0xb5];

/// How long a frame may be on its way.
const PATIENCE: Duration = Duration::from_secs(10);

/// A packet socket on one interface of a namespace.
pub(crate) struct Wire {
    socket: OwnedFd,
    link: LinkAddr,
}

impl Wire {
    pub(crate) fn tap(namespace: &Namespace, ifname: &str) -> Self {
        namespace
            .enter(|| {
                let socket =
                    socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), SockProtocol::EthAll);
                let socket = socket.expect("root may open a packet socket");
                setsockopt(&socket, ReceiveTimeout, &TimeVal::milliseconds(50)).unwrap();
                let mut links = getifaddrs().unwrap().filter(|link| link.interface_name == ifname);
                let link = links.find_map(|link| link.address.and_then(|a| a.as_link_addr().copied()));
                Self { socket, link: link.unwrap_or_else(|| panic!("no interface {ifname}")) }
            })
            .unwrap()
    }

    /// The interface's own address.
    pub(crate) fn mac(&self) -> Mac {
        self.link.addr().unwrap()
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        sendto(self.socket.as_raw_fd(), frame, &self.link, MsgFlags::empty()).unwrap();
    }

    /// What has come in, until a frame that `is_last`, which has to come.
    pub(crate) fn until(&self, is_last: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let begun = Instant::now();
        let mut seen = Vec::new();
        let mut frame = [0; 2048];
        while begun.elapsed() < PATIENCE {
            // The socket hears every interface of its namespace.
            let Ok((length, Some(from))) = recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut frame) else {
                continue;
            };
            if from.ifindex() != self.link.ifindex() {
                continue;
            }
            if is_last(&frame[..length]) {
                return seen;
            }
            seen.push(frame[..length].to_vec());
        }
        panic!("the last frame did not come; {} others did", seen.len());
    }
}

/// A frame that carries `text`.
pub(crate) fn frame(to: Mac, from: Mac, text: &str) -> Vec<u8> {
    let mut frame = [&to[..], &from, &EXPERIMENT, text.as_bytes()].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An ARP packet in which `from` says that it has `sender`.
pub(crate) fn arp(to: Mac, from: Mac, operation: u8, sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let fixed = [0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, operation];
    let mut frame = [&to[..], &from, &fixed, &from, &sender, &[0; 6], &target].concat();
    frame.resize(60, 0);
    frame
}

/// Whether a frame carries `text`.
pub(crate) fn says(frame: &[u8], text: &str) -> bool {
    frame.windows(text.len()).any(|window| window == text.as_bytes())
}
