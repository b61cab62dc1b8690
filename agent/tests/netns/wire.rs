//! Frames as they are: sent past a container's own stack, and seen before anybody's.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimeout};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, UnknownCmsg,
    recvmsg, sendto, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::{cmsg_space, libc, setsockopt_impl};
use shunt_lab::{Namespace, patience};

/// Asks for the tags, which the kernel takes out of frames.
#[derive(Clone, Copy)]
struct PacketAuxdata;
setsockopt_impl!(
    PacketAuxdata,
    libc::SOL_PACKET,
    libc::PACKET_AUXDATA,
    bool,
    nix::sys::socket::sockopt::SetBool
);

/// A hardware address.
pub(crate) type Mac = [u8; 6];

pub(crate) const BROADCAST: Mac = [0xff; 6];

/// IEEE 802 "local experimental": nobody else's frames have it.
const EXPERIMENT: [u8; 2] = [0x88, 0xb5];

/// How long a frame may be on its way.
const PATIENCE: Duration = Duration::from_secs(10);

/// When nothing comes for so long, nothing comes any more.
const SILENCE: Duration = Duration::from_millis(300);

/// What may wait to be read.
const RECEIVE_BYTES: usize = 4 << 20;

/// A packet socket on one interface of a namespace.
pub(crate) struct Wire {
    socket: OwnedFd,
    link: LinkAddr,
}

impl Wire {
    /// Waits until the interface can send: for up to a second after its carrier is there the kernel gives it a queue
    /// that swallows everything (`noop_qdisc`), and says so by the state alone.
    pub(crate) fn tap(namespace: &Namespace, ifname: &str) -> Self {
        let begun = Instant::now();
        while !namespace.command("ip", &["link", "show", "dev", ifname]).unwrap().contains("state UP") {
            assert!(begun.elapsed() < patience(PATIENCE), "{ifname} does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        namespace
            .enter(|| {
                let socket =
                    socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), SockProtocol::EthAll);
                let socket = socket.expect("root may open a packet socket");
                setsockopt(&socket, ReceiveTimeout, &TimeVal::milliseconds(50)).unwrap();
                setsockopt(&socket, RcvBufForce, &RECEIVE_BYTES).unwrap();
                setsockopt(&socket, PacketAuxdata, &true).unwrap();
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

    /// What has come in, until a frame that `is_last`, which has to come; each with its tag where it was on the wire.
    pub(crate) fn until(&self, is_last: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let begun = Instant::now();
        let mut seen = Vec::new();
        while begun.elapsed() < patience(PATIENCE) {
            let Some(frame) = self.receive() else { continue };
            if is_last(&frame) {
                return seen;
            }
            seen.push(frame);
        }
        panic!("the last frame did not come; {} others did", seen.len());
    }

    /// What has come in, until nothing does for a while.
    pub(crate) fn until_silence(&self) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        let mut heard = Instant::now();
        while heard.elapsed() < patience(SILENCE) {
            if let Some(frame) = self.receive() {
                heard = Instant::now();
                seen.push(frame);
            }
        }
        seen
    }

    /// What has come in already, up to something that is of no interest.
    pub(crate) fn at_hand(&self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.receive_by(MsgFlags::MSG_DONTWAIT)).collect()
    }

    /// Waits for a frame that `is_it`, and says whether its checksums are there: a device is to make up for none.
    pub(crate) fn is_summed(&self, is_it: impl Fn(&[u8]) -> bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < patience(PATIENCE) {
            match self.receive_with_status(MsgFlags::empty()) {
                Some((frame, status)) if is_it(&frame) => return status & libc::TP_STATUS_CSUMNOTREADY == 0,
                _ => {}
            }
        }
        panic!("the frame did not come");
    }

    /// One frame; none if none comes for a moment.
    fn receive(&self) -> Option<Vec<u8>> {
        self.receive_by(MsgFlags::empty())
    }

    fn receive_by(&self, flags: MsgFlags) -> Option<Vec<u8>> {
        self.receive_with_status(flags).map(|(frame, _)| frame)
    }

    /// The same, and what the kernel says of it (`TP_STATUS_…`).
    fn receive_with_status(&self, flags: MsgFlags) -> Option<(Vec<u8>, u32)> {
        let mut bytes = [0; 10_240];
        let mut control = cmsg_space!([u8; 64]);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let socket = self.socket.as_raw_fd();
        let message = recvmsg::<LinkAddr>(socket, &mut parts, Some(&mut control), flags).ok()?;
        // The socket hears every interface of its namespace.
        if message.address?.ifindex() != self.link.ifindex() {
            return None;
        }
        let auxdata = message.cmsgs().ok()?.find_map(|control| match control {
            ControlMessageOwned::Unknown(UnknownCmsg { data_bytes, .. }) => Some(data_bytes),
            _ => None,
        });
        let auxdata = auxdata.unwrap_or_default();
        let length = message.bytes;
        let mut frame = bytes[..length].to_vec();
        if let Some(tag) = tag_of(&auxdata) {
            frame.splice(12..12, tag);
        }
        Some((frame, auxdata.first_chunk().copied().map_or(0, u32::from_ne_bytes)))
    }
}

/// The tag that the kernel keeps beside a frame (`struct tpacket_auxdata`), as it was in it.
fn tag_of(auxdata: &[u8]) -> Option<[u8; 4]> {
    let status = u32::from_ne_bytes(*auxdata.first_chunk()?);
    let half = |at: usize| Some(u16::from_ne_bytes(*auxdata.get(at..)?.first_chunk()?).to_be_bytes());
    let ([a, b], [c, d]) = (half(18)?, half(16)?);
    (status & libc::TP_STATUS_VLAN_VALID != 0).then_some([a, b, c, d])
}

/// A frame with a tag put into it.
pub(crate) fn tagged(tci: u16, mut frame: Vec<u8>) -> Vec<u8> {
    let [high, low] = tci.to_be_bytes();
    frame.splice(12..12, [0x81, 0, high, low]);
    frame
}

/// The tag that a frame has, of the first kind.
pub(crate) fn tag(frame: &[u8]) -> Option<u16> {
    match *frame.get(12..16)? {
        [0x81, 0, high, low] => Some(u16::from_be_bytes([high, low])),
        _ => None,
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
