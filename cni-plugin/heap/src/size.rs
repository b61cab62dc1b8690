//! The sizes that blocks come in.

use std::alloc::Layout;

/// Every block of the region begins at a multiple of this many bytes, which is what anything but vectors of the processor's wants.
const ALIGNMENT: usize = 16;

/// Up to here there is a size for each multiple of the alignment, and from there on for each power of two.
const FINE: usize = 128;
const FINE_SIZES: usize = FINE / ALIGNMENT;

/// The largest: what the kernel may say at a time fits.
const LARGEST: usize = 64 << 10;

/// How many sizes there are.
pub(crate) const SIZES: usize = FINE_SIZES + (LARGEST.ilog2() - FINE.ilog2()) as usize;

/// One of them, by its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(usize);

impl Size {
    /// The least that does for what was asked for; none where that is too large, or aligned to more than blocks are.
    pub(crate) fn of(layout: Layout) -> Option<Self> {
        let (size, is_aligned) = (layout.size(), layout.align() <= ALIGNMENT);
        match size {
            _ if !is_aligned => None,
            0..=FINE => Some(Self(size.saturating_sub(1) / ALIGNMENT)),
            _ if size > LARGEST => None,
            _ => Some(Self(FINE_SIZES + (size - 1).ilog2() as usize - FINE.ilog2() as usize)),
        }
    }

    /// Its place among all.
    pub(crate) fn place(self) -> usize {
        self.0
    }

    /// In bytes.
    pub(crate) fn bytes(self) -> usize {
        match self.0 {
            fine @ 0..FINE_SIZES => (fine + 1) * ALIGNMENT,
            coarse => FINE << (coarse - FINE_SIZES + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(bytes: usize, align: usize) -> Option<Size> {
        Size::of(Layout::from_size_align(bytes, align).unwrap())
    }

    #[test]
    fn a_size_holds_what_it_is_for_and_the_one_before_would_not() {
        for bytes in 1..=LARGEST {
            let size = size(bytes, 8).unwrap();
            assert!(size.bytes() >= bytes && size.bytes().is_multiple_of(ALIGNMENT), "{bytes}: {size:?}");
            assert!(size.0 == 0 || Size(size.0 - 1).bytes() < bytes, "{bytes}: {size:?}");
        }
        assert_eq!(size(LARGEST, 1), Some(Size(SIZES - 1)));
    }

    #[test]
    fn what_is_too_large_or_aligned_to_too_much_has_none() {
        assert_eq!(size(LARGEST + 1, 1), None);
        assert_eq!(size(1, ALIGNMENT * 2), None);
        assert!(size(1, ALIGNMENT).is_some());
    }
}
