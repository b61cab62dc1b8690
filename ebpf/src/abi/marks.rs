//! `MARKS`: the bits of a packet's mark that are shunt's; all others are the operator's.

use zerocopy::{Immutable, IntoBytes};

/// The mask unless the agent is told another one: not in what Calico (the upper half), kube-proxy (0xc000), portmap (0x2000), Cilium
/// (0xf00) and the AWS plugin (0x80) use by default.
pub const DEFAULT_MARK_MASK: u32 = 0x1060;

/// Value of `MARKS`, whose only key is 0: one bit each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Marks {
    /// A program has judged the frame: from its redirect to the tc egress behind that.
    pub judged: u32,
    /// A restricted port's program has seen the frame: up to the port's guard.
    pub checked: u32,
    /// An uplink has brought the frame into its bridge: up to the bridge's program.
    pub outside: u32,
}

impl Marks {
    /// The three lowest bits of a mask; none where it has fewer.
    pub const fn of(mask: u32) -> Option<Self> {
        let judged = mask & mask.wrapping_neg();
        let mask = mask & !judged;
        let checked = mask & mask.wrapping_neg();
        let mask = mask & !checked;
        let outside = mask & mask.wrapping_neg();
        if outside == 0 { None } else { Some(Self { judged, checked, outside }) }
    }
}

const _: () = assert!(size_of::<Marks>() == 12);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bits_of_the_mask_are_taken_and_three_are_needed() {
        assert_eq!(
            Marks::of(DEFAULT_MARK_MASK),
            Some(Marks { judged: 0x20, checked: 0x40, outside: 0x1000 })
        );
        assert_eq!(Marks::of(u32::MAX), Some(Marks { judged: 1, checked: 2, outside: 4 }));
        assert_eq!(Marks::of(0x8000_0001), None);
    }
}
