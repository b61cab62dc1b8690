//! `mark_mask`.

use serde::{Deserialize, Serialize};
use shunt_dataplane::abi::{DEFAULT_MARK_MASK, Marks};

/// The bits of packets' marks that are shunt's: at least three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct MarkMask(Marks);

impl MarkMask {
    /// The bits.
    pub const fn marks(self) -> Marks {
        self.0
    }
}

impl Default for MarkMask {
    fn default() -> Self {
        Self(Marks::of(DEFAULT_MARK_MASK).unwrap_or_default())
    }
}

impl TryFrom<u32> for MarkMask {
    type Error = String;

    fn try_from(mask: u32) -> Result<Self, String> {
        let marks = Marks::of(mask);
        marks.map(Self).ok_or_else(|| format!("mark_mask has fewer than three bits: {mask:#x}"))
    }
}

impl From<MarkMask> for u32 {
    fn from(MarkMask(Marks { judged, checked, outside }): MarkMask) -> Self {
        judged | checked | outside
    }
}
