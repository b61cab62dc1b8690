//! A frame in memory as a [`Packet`].

use dataplane::packet::{Header, Mending, NoRoom, Packet, Readable, Tag};
use dataplane::translate::checksum::Change;
use zerocopy::IntoBytes;

#[derive(Clone, Debug, Default)]
pub struct BytesPacket {
    pub bytes: Vec<u8>,
    pub tag: Option<Tag>,
    pub segment_size: u32,
    /// The interface that it came in by; 0 for none.
    pub origin: u32,
    /// Only so many bytes can be read before they are made linear.
    pub readable: usize,
    pub own: bool,
    pub judged: bool,
    pub checked: bool,
    /// Where copies went, and with which tags.
    pub copies: Vec<(u32, Option<u16>)>,
    /// What one of them was that came in once more.
    pub copied_in: Option<Vec<u8>>,
    /// The address of the interface that it came in by.
    pub host: [u8; 6],
    /// How often `linearize` was asked for.
    pub linearized: u32,
}

impl BytesPacket {
    pub fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), readable: bytes.len(), ..Self::default() }
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
    fn length(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn tag(&self) -> Option<Tag> {
        self.tag
    }

    fn load<T: Header>(&self, offset: u32) -> Option<T> {
        const { T::FITS };
        let readable = &self.bytes[..self.readable.min(self.bytes.len())];
        T::read_from_prefix(readable.get(offset as usize..)?).ok().map(|(header, _)| header)
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
        self.readable = self.readable.max((bytes as usize).min(self.bytes.len()));
        true
    }

    fn is_for_this_host(&self) -> bool {
        self.bytes.get(..6) == Some(&self.host)
    }

    fn edit<T: Header + IntoBytes>(&mut self, offset: u32, edit: impl FnOnce(&mut T)) {
        let mut header: T = self.load(offset).expect("what is edited was loaded before");
        edit(&mut header);
        let at = offset as usize;
        self.bytes[at..at + size_of::<T>()].copy_from_slice(header.as_bytes());
    }

    /// As for a packet with a complete checksum.
    fn mend(&mut self, mending: Mending) {
        self.edit(mending.field, |sum: &mut u16| *sum = mending.mended(*sum));
    }

    fn tell_sum(&mut self, _change: Change) {}

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

    /// That is all of the mark.
    fn mark_judged(&mut self) {
        (self.judged, self.checked) = (true, false);
    }

    fn take_judged(&mut self) -> bool {
        std::mem::take(&mut self.judged)
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
