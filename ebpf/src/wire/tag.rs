//! A VLAN tag (IEEE 802.1Q, 802.1ad).

use core::num::NonZeroU32;

/// The least length of a frame out of which the kernel takes a tag (`VLAN_ETH_HLEN`).
const TAGGED: usize = 18;

/// The frame ends inside the tag, or right behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// A frame's tag. Verifier: one number, never zero, so that no tag is a number too; of a larger `Option` the compiler may store
/// uninitialized bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(NonZeroU32);

impl Tag {
    const SERVICE: u32 = 2;

    /// A customer's tag (802.1Q) with this control information: priority (3 bits), drop eligible (1), VLAN id (12).
    #[inline(always)]
    pub fn customer(tci: u16) -> Self {
        Self(NonZeroU32::MIN | u32::from(tci) << 16)
    }

    /// A service tag (802.1ad).
    #[inline(always)]
    pub fn service(tci: u16) -> Self {
        Self(Self::customer(tci).0 | Self::SERVICE)
    }

    /// The inline tag of a frame.
    ///
    /// # Errors
    /// [`NoRoom`] for a frame out of which the kernel does not take it.
    pub fn among(frame: &[u8]) -> Result<Option<Self>, NoRoom> {
        let tag = match frame.get(12..16) {
            Some(&[0x81, 0x00, high, low]) => Self::customer(u16::from_be_bytes([high, low])),
            Some(&[0x88, 0xa8, high, low]) => Self::service(u16::from_be_bytes([high, low])),
            _ => return Ok(None),
        };
        if frame.len() < TAGGED { Err(NoRoom) } else { Ok(Some(tag)) }
    }

    /// As it stands in a frame.
    pub fn bytes(self) -> [u8; 4] {
        let [high, low] = self.tci().to_be_bytes();
        if self.is_service() { [0x88, 0xa8, high, low] } else { [0x81, 0x00, high, low] }
    }

    /// The control information.
    #[inline(always)]
    pub const fn tci(self) -> u16 {
        (self.0.get() >> 16) as u16
    }

    /// Whether it is a service tag.
    #[inline(always)]
    pub const fn is_service(self) -> bool {
        self.0.get() & Self::SERVICE != 0
    }
}
