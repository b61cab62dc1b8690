//! A frame in memory as a [`Packet`], as the kernel would hand it to a program.

use shunt_dataplane::wire::address::Mac;
use shunt_dataplane::wire::checksum::Change;
use shunt_dataplane::wire::packet::{ChecksumUpdate, Header, NoRoom, PIECE_BYTES, Packet, Readable, Tag};
use zerocopy::IntoBytes;

/// Where the first tag is in a frame's bytes.
const TAG: std::ops::Range<usize> = 12..16;

const ETHERNET_BYTES: usize = 14;

/// A frame, with what the kernel knows of it beside its bytes.
#[derive(Clone, Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    tag: Option<Tag>,
    origin: u32,
    /// The address of the interface that it came in by.
    host: Mac,
    judged: bool,
    checked: bool,
    outside: bool,
    /// What one function tells the next.
    note: u32,
    /// Whether its Ethernet header is made up: it came in by an interface that has none.
    pub is_bare: bool,
    /// Where copies went.
    pub copies: Vec<u32>,
    /// Whether the node's own stack gets one, too.
    pub is_nodes_too: bool,
}

impl Frame {
    /// A frame that comes in by the interface `origin`, which has the address `host`. The kernel takes the outermost tag
    /// out of its bytes (`skb_vlan_untag`).
    pub fn new(bytes: Vec<u8>, origin: u32, host: Mac) -> Self {
        let mut frame = Self {
            bytes,
            tag: None,
            origin,
            host,
            judged: false,
            checked: false,
            outside: false,
            note: 0,
            is_bare: false,
            copies: Vec::new(),
            is_nodes_too: false,
        };
        frame.tag = frame.take_out().ok().flatten();
        frame
    }

    /// Takes the first tag out of the bytes.
    fn take_out(&mut self) -> Result<Option<Tag>, NoRoom> {
        let tag = Tag::among(&self.bytes)?;
        if tag.is_some() {
            self.bytes.drain(TAG);
        }
        Ok(tag)
    }

    /// All of it that is on the wire, the tag where it is there.
    pub fn on_the_wire(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if self.is_bare {
            bytes.drain(..ETHERNET_BYTES.min(bytes.len()));
        }
        if let (Some(tag), true) = (self.tag, bytes.len() >= TAG.start) {
            bytes.splice(TAG.start..TAG.start, tag.bytes());
        }
        bytes
    }
}

impl Readable for Frame {
    fn is_bare(&self) -> bool {
        self.is_bare
    }

    fn length(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn tag(&self) -> Option<Tag> {
        self.tag
    }

    fn load<T: Header>(&self, offset: u32) -> Option<T> {
        const { T::FITS };
        T::read_from_prefix(self.bytes.get(offset as usize..)?).ok().map(|(header, _)| header)
    }
}

impl Packet for Frame {
    fn segment_size(&self) -> u32 {
        0
    }

    fn origin(&self) -> u32 {
        self.origin
    }

    fn linearize(&mut self, _bytes: u32) -> bool {
        true
    }

    fn is_for_this_host(&self) -> bool {
        self.is_bare || self.load::<Mac>(0).is_some_and(|destination| destination.is(self.host))
    }

    fn edit<T: Header + IntoBytes>(&mut self, offset: u32, edit: impl FnOnce(&mut T)) {
        let Some(mut header) = self.load::<T>(offset) else { return };
        edit(&mut header);
        let at = offset as usize;
        self.bytes[at..at + size_of::<T>()].copy_from_slice(header.as_bytes());
    }

    fn address(&mut self, destination: Mac, source: Mac) -> bool {
        self.is_bare = false;
        self.edit(0, |ends: &mut [Mac; 2]| *ends = [destination, source]);
        true
    }

    /// As for a packet with a complete checksum, which is what comes by a wire.
    fn update_checksum(&mut self, update: ChecksumUpdate) {
        self.edit(update.field, |sum: &mut u16| *sum = update.updated(*sum));
    }

    fn leave_note(&mut self, number: u32) {
        self.note = number;
    }

    fn note(&self) -> u32 {
        self.note
    }

    fn embed(&mut self, above: u32, pieces: u32, past: u32) -> Option<Change> {
        let above = above as usize;
        let quoted = ETHERNET_BYTES..ETHERNET_BYTES + (pieces * PIECE_BYTES) as usize;
        if self.bytes.len() < above + quoted.len() + past as usize {
            return None;
        }
        let quotation = self.bytes[quoted].to_vec();
        self.bytes.truncate(ETHERNET_BYTES);
        self.bytes.resize(above, 0xee);
        self.bytes.extend(&quotation);
        let halves = quotation.chunks_exact(2).map(|half| [u16::from_ne_bytes([half[0], half[1]])]);
        Some(halves.fold(Change::NONE, Change::halves))
    }

    /// No device has summed it.
    fn adjust_sum(&mut self, _change: Change) {}

    fn pop_tag(&mut self) -> bool {
        if self.tag.take().is_none() && self.take_out().is_err() {
            return false;
        }
        self.take_out().map(|next| self.tag = next).is_ok()
    }

    fn push_tag(&mut self, tci: u16) -> bool {
        if let Some(inner) = self.tag.replace(Tag::customer(tci)) {
            self.bytes.splice(TAG.start..TAG.start, inner.bytes());
        }
        true
    }

    fn copy_to(&mut self, ifindex: u32) -> bool {
        self.copies.push(ifindex);
        true
    }

    fn copy_in(&mut self, _ifindex: u32) {
        self.is_nodes_too = true;
    }

    fn become_own(&mut self) {}

    /// That is all of the mark.
    fn mark_judged(&mut self) {
        (self.judged, self.checked, self.outside) = (true, false, false);
    }

    fn take_judged(&mut self) -> bool {
        std::mem::take(&mut self.judged)
    }

    fn mark_outside(&mut self) {
        self.outside = true;
    }

    fn is_outside(&self) -> bool {
        self.outside
    }

    fn unmark_outside(&mut self) {
        self.outside = false;
    }

    // Nobody knows what marks it would have by then.
    fn is_marked_by_others(&self) -> bool {
        false
    }

    fn mark_checked(&mut self) {
        self.checked = true;
    }

    fn is_checked(&self) -> bool {
        self.checked
    }

    fn take_checked(&mut self) -> bool {
        std::mem::take(&mut self.checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_tag_is_beside_the_bytes_and_leaves_among_them() {
        let ends = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for (kind, is_service) in [([0x81, 0], false), ([0x88, 0xa8], true)] {
            let bytes = [&ends[..], &kind, &[0x60, 5], &[0x88, 0xb5, 1]].concat();
            let frame = Frame::new(bytes.clone(), 7, Mac::default());
            assert_eq!(frame.tag().map(|tag| (tag.tci(), tag.is_service())), Some((0x6005, is_service)));
            assert_eq!((frame.length(), frame.on_the_wire()), (15, bytes));
        }
    }
}
