//! A frame in memory as a [`Packet`].

use shunt_dataplane::stages::share::Excess;
use shunt_dataplane::wire::EthernetHeader;
use shunt_dataplane::wire::address::Mac;
use shunt_dataplane::wire::checksum::Change;
use shunt_dataplane::wire::packet::{ChecksumUpdate, Header, NoRoom, PIECE_BYTES, Packet, Readable, Tag};
use zerocopy::IntoBytes;

/// Bytes of an Ethernet header.
const HEADER: usize = 14;

#[derive(Clone, Debug, Default)]
pub struct BytesPacket {
    pub bytes: Vec<u8>,
    /// Of a packet without an Ethernet header: what that would say it is, in host order.
    pub bare: Option<u16>,
    pub tag: Option<Tag>,
    pub segment_size: u32,
    /// The interface that it came in by; 0 for none.
    pub origin: u32,
    /// Only so many bytes can be read before they are made linear.
    pub readable: usize,
    pub own: bool,
    pub judged: bool,
    pub checked: bool,
    pub outside: bool,
    /// Whether somebody else has marked it.
    pub marked: bool,
    /// Whether `from_container` has handed its port on.
    pub handed: bool,
    /// The counter slot of a container that may have no more connections, and why.
    pub full: Option<(u32, Excess)>,
    /// Where copies went, and with which tags.
    pub copies: Vec<(u32, Option<u16>)>,
    /// What one of them was that came in once more.
    pub copied_in: Option<Vec<u8>>,
    /// The address of the interface that it came in by.
    pub host: [u8; 6],
    /// What one function of a program tells the next.
    pub note: u32,
    /// How often `linearize` was asked for.
    pub linearized: u32,
}

impl BytesPacket {
    pub fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), readable: bytes.len(), ..Self::default() }
    }

    /// How many bytes of an Ethernet header it lacks.
    fn lacks(&self) -> usize {
        if self.bare.is_some() { HEADER } else { 0 }
    }

    /// The same packet as an interface without a link layer has it; one that is too short is of no type.
    #[must_use]
    pub fn bared(mut self) -> Self {
        if self.bare.is_none() {
            let ether_type = self.bytes.get(12..HEADER).and_then(<[u8]>::first_chunk).copied();
            self.bare = Some(ether_type.map_or(0, u16::from_be_bytes));
            self.bytes.drain(..HEADER.min(self.bytes.len()));
            self.readable = self.readable.saturating_sub(HEADER);
        }
        self
    }

    /// The same packet as a frame between these two.
    #[must_use]
    pub fn framed(mut self, destination: [u8; 6], source: [u8; 6]) -> Self {
        if let Some(ether_type) = self.bare.take() {
            let header = [&destination[..], &source, &ether_type.to_be_bytes()].concat();
            self.bytes.splice(..0, header);
            self.readable += HEADER;
        }
        self
    }

    /// Takes the first tag out of the bytes.
    fn take_out(&mut self) -> Result<Option<Tag>, NoRoom> {
        let tag = Tag::among(&self.bytes)?;
        if tag.is_some() {
            self.bytes.drain(12..16);
            self.readable = self.readable.min(self.bytes.len());
        }
        Ok(tag)
    }
}

impl Readable for BytesPacket {
    fn ethernet(&self) -> Option<EthernetHeader> {
        let (destination, source) = (Mac::default(), Mac::default());
        let made_up = |is: u16| EthernetHeader { destination, source, ether_type: is.to_be() };
        self.bare.map(made_up).or_else(|| self.load(0))
    }

    fn is_bare(&self) -> bool {
        self.bare.is_some()
    }

    fn length(&self) -> u32 {
        (self.bytes.len() + self.lacks()) as u32
    }

    fn tag(&self) -> Option<Tag> {
        self.tag
    }

    fn load<T: Header>(&self, offset: u32) -> Option<T> {
        const { T::FITS };
        let readable = &self.bytes[..self.readable.min(self.bytes.len())];
        let at = (offset as usize).checked_sub(self.lacks())?;
        T::read_from_prefix(readable.get(at..)?).ok().map(|(header, _)| header)
    }
}

impl Packet for BytesPacket {
    fn segment_size(&self) -> u32 {
        self.segment_size
    }

    fn origin(&self) -> u32 {
        self.origin
    }

    fn linearize(&mut self, bytes: u32) -> bool {
        self.linearized += 1;
        let bytes = bytes as usize - self.lacks();
        self.readable = self.readable.max(bytes.min(self.bytes.len()));
        true
    }

    fn is_for_this_host(&self) -> bool {
        self.bare.is_some() || self.bytes.get(..6) == Some(&self.host)
    }

    fn address(&mut self, destination: Mac, source: Mac) -> bool {
        let framed = std::mem::take(self).framed(destination.octets(), source.octets());
        *self = framed;
        self.edit(0, |ends: &mut [Mac; 2]| *ends = [destination, source]);
        true
    }

    fn edit<T: Header + IntoBytes>(&mut self, offset: u32, edit: impl FnOnce(&mut T)) {
        let mut header: T = self.load(offset).expect("what is edited was loaded before");
        edit(&mut header);
        let at = offset as usize - self.lacks();
        self.bytes[at..at + size_of::<T>()].copy_from_slice(header.as_bytes());
    }

    /// As for a packet with a complete checksum.
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
        let (above, header) = (above as usize - self.lacks(), HEADER - self.lacks());
        let quoted = header..header + (pieces * PIECE_BYTES) as usize;
        let least = above + quoted.len() + past as usize;
        assert!(least <= self.bytes.len(), "{least} bytes are to be taken from {}", self.bytes.len());
        let quotation = self.bytes[quoted].to_vec();
        self.bytes.truncate(header);
        self.bytes.resize(above, 0xee);
        self.bytes.extend(&quotation);
        self.readable = self.bytes.len();
        let halves = quotation.chunks_exact(2).map(|half| [u16::from_ne_bytes([half[0], half[1]])]);
        Some(halves.fold(Change::NONE, Change::halves))
    }

    fn adjust_sum(&mut self, _change: Change) {}

    fn pop_tag(&mut self) -> bool {
        if self.tag.take().is_none() && self.take_out().is_err() {
            return false;
        }
        self.take_out().map(|next| self.tag = next).is_ok()
    }

    fn push_tag(&mut self, tci: u16) -> bool {
        if let Some(inner) = self.tag.replace(Tag::customer(tci)) {
            self.bytes.splice(12..12, inner.bytes());
            self.readable += 4;
        }
        true
    }

    fn copy_to(&mut self, ifindex: u32) -> bool {
        self.copies.push((ifindex, self.tag.map(Tag::tci)));
        true
    }

    fn copy_in(&mut self, ifindex: u32) {
        self.copies.push((ifindex, self.tag.map(Tag::tci)));
        self.copied_in = Some(self.bytes.clone());
    }

    fn become_own(&mut self) {
        self.own = true;
    }

    /// That is all of our bits of the mark.
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

    fn is_marked_by_others(&self) -> bool {
        self.marked
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
