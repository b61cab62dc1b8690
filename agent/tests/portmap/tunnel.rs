//! A link without a link layer: a tun device at each end, and a thread that hands the packets across.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use shunt_lab::Namespace;
use tun_rs::DeviceBuilder;

/// The longest packet, with what is said of its segments in front (`struct virtio_net_hdr`).
const MOST: usize = (64 << 10) + 10;

/// How long it takes at most until the thread sees that it is not needed any more.
const ROUND: u16 = 50;

/// The link. Both devices go with it.
pub(crate) struct Tunnel {
    is_over: Arc<AtomicBool>,
    pump: Option<JoinHandle<()>>,
}

impl Tunnel {
    /// Joins two namespaces, each by a device of this name, which is up. With `segments` large packets cross it as they are and
    /// checksums are left out; else all is cut and summed, as on a wire.
    pub(crate) fn dig(one: &Namespace, other: &Namespace, ifname: &str, segments: bool) -> Self {
        let ends = [one, other].map(|namespace| {
            let end = namespace.enter(|| end(ifname, segments)).unwrap();
            namespace.command("ip", &["link", "set", ifname, "up"]).unwrap();
            end
        });
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let pump = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                carry(&ends);
            }
        });
        Self { is_over, pump: Some(pump) }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(pump) = self.pump.take() {
            pump.join().unwrap();
        }
    }
}

/// A new device in this thread's namespace. With `segments` each packet has a `struct virtio_net_hdr` in front, which goes across
/// as it is.
fn end(ifname: &str, segments: bool) -> File {
    let device = DeviceBuilder::new().name(ifname).enable(false).offload(segments).build_sync();
    let device = device.unwrap_or_else(|error| panic!("{ifname}: {error}"));
    device.set_nonblocking(true).unwrap();
    device.as_fd().try_clone_to_owned().unwrap().into()
}

/// Waits for packets, and hands on what there is. What a device does not take is lost.
fn carry(ends: &[File; 2]) {
    let mut waiting = ends.each_ref().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
    let _ = poll(&mut waiting, PollTimeout::from(ROUND));
    let mut packet = [0; MOST];
    for (mut from, mut to) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        while let Ok(bytes) = from.read(&mut packet) {
            let _ = to.write(&packet[..bytes]);
        }
    }
}
