//! A frame in memory as a [`Packet`].

use dataplane::packet::{Header, Packet, Tag};

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
    /// How often `linearize` was asked for.
    pub linearized: u32,
}

impl BytesPacket {
    pub fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), readable: bytes.len(), ..Self::default() }
    }
}

impl Packet for BytesPacket {
    fn length(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn segment_size(&self) -> u32 {
        self.segment_size
    }

    fn origin(&self) -> u32 {
        self.origin
    }

    fn tag(&self) -> Option<Tag> {
        self.tag
    }

    fn load<T: Header>(&self, offset: u32) -> Option<T> {
        const { T::FITS };
        let readable = &self.bytes[..self.readable.min(self.bytes.len())];
        T::read_from_prefix(readable.get(offset as usize..)?).ok().map(|(header, _)| header)
    }

    fn linearize(&mut self, bytes: u32) -> bool {
        self.linearized += 1;
        self.readable = self.readable.max((bytes as usize).min(self.bytes.len()));
        true
    }

    fn become_own(&mut self) {
        self.own = true;
    }

    fn mark_judged(&mut self) {
        self.judged = true;
    }

    fn take_judged(&mut self) -> bool {
        std::mem::take(&mut self.judged)
    }
}
