//! A frame in a driver, as a [`Readable`]: its bytes, without socket buffer and metadata.

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS, XDP_REDIRECT};
use aya_ebpf::programs::XdpContext;
use shunt_dataplane::Verdict;
use shunt_dataplane::wire::packet::{Header, Readable, Tag};

/// As in `context`.
const MAX_OFFSET: u32 = 1024;

/// A frame in a driver.
pub(crate) struct Frame {
    ctx: XdpContext,
}

impl Frame {
    #[inline(always)]
    pub(crate) fn new(ctx: XdpContext) -> Self {
        Self { ctx }
    }

    /// The interface that the program runs on.
    #[inline(always)]
    pub(crate) fn ifindex(&self) -> u32 {
        self.ctx.ingress_ifindex() as u32
    }
}

impl Readable for Frame {
    #[inline(always)]
    fn length(&self) -> u32 {
        (self.ctx.data_end() - self.ctx.data()) as u32
    }

    #[inline(always)]
    fn tag(&self) -> Option<Tag> {
        None
    }

    #[inline(always)]
    fn load<T: Header>(&self, offset: u32) -> Option<T> {
        const { T::FITS };
        // Verifier: a bound on the variable part of a packet pointer before it is added.
        if offset > MAX_OFFSET {
            return None;
        }
        let start = self.ctx.data() + offset as usize;
        if start + size_of::<T>() > self.ctx.data_end() {
            return None;
        }
        // SAFETY: it lies between data and data_end, any bytes make a `T`, and the kernel puts a frame where its even offsets are
        // aligned as a `T` may want (`XDP_PACKET_HEADROOM`).
        Some(unsafe { *(start as *const T) })
    }
}

/// The program's action; of a delivery the kernel has recorded the target.
#[inline(always)]
pub(crate) fn action(frame: &Frame, verdict: Option<Verdict>) -> u32 {
    #[cfg(feature = "watched")]
    if let Some(verdict) = &verdict {
        crate::watch::tell_frame(frame.ctx.ctx, frame.length(), verdict);
    }
    let _ = frame;
    match verdict {
        Some(Verdict::Deliver(_)) => XDP_REDIRECT,
        Some(Verdict::Drop(_)) => XDP_DROP,
        Some(Verdict::Pass(_) | Verdict::Flooded(_)) | None => XDP_PASS,
    }
}
