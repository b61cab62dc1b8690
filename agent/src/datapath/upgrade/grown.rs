//! Connections of an earlier layout: `FLOWS` has grown at its end, so that an older entry is one of today's whose last bytes are
//! zero.

use std::path::Path;

use aya::maps::{HashMap, Map, MapData, MapError, MapInfo};
use shunt_dataplane::abi::translation::{Shown, Translation, TupleKey};
use zerocopy::FromBytes as _;

/// Bytes of a value until ABI 1: it did not know what has been acknowledged.
const BYTES: usize = 88;

/// Update flag: whether there is an entry or not (`BPF_ANY`, linux/bpf.h).
const ANY: u64 = 0;

/// Whether the map that is pinned there has the earlier layout.
pub(super) fn is_earlier(pin: &Path) -> bool {
    MapInfo::from_pin(pin).is_ok_and(|info| info.value_size() as usize == BYTES)
}

/// Copies the connections of the earlier map that is pinned there and that `flows` lacks, or has from an earlier copy of what its tuple was
/// before. Returns how many entries. To be called before the first program is replaced, and again after the last, for those that the older
/// programs have begun meanwhile.
///
/// # Errors
/// The kernel's; what has been copied by then stays.
pub(super) fn copy(
    pin: &Path,
    flows: &mut HashMap<MapData, TupleKey, Translation>,
) -> Result<usize, MapError> {
    let earlier = Map::LruHashMap(MapData::from_pin(pin)?);
    let earlier = HashMap::<MapData, TupleKey, [u8; BYTES]>::try_from(earlier)?;
    let room = MapInfo::from_pin(pin)?.max_entries() as usize;
    let mut copied = 0;
    // An entry that goes while it is looked at makes the kernel's walk begin again.
    for entry in earlier.iter().take(2 * room) {
        let (key, value) = match entry {
            Ok(entry) => entry,
            Err(MapError::KeyNotFound) => continue,
            Err(error) => return Err(error),
        };
        let mut flow = today(&value);
        if flows.get(&key, 0).is_ok_and(|known| known.begun >= flow.begun) {
            continue;
        }
        let other = earlier.get(&flow.becomes.reversed(flow.becomes.domain), 0);
        if other.is_ok_and(|other| Shown(today(&other).shown).has(Shown::FINISHED)) {
            // Until ABI 1 a FIN counted by itself.
            flow.shown |= Shown::AGREED.0;
        }
        copied += usize::from(flows.insert(key, flow, ANY).is_ok());
    }
    Ok(copied)
}

fn today(earlier: &[u8; BYTES]) -> Translation {
    let mut bytes = [0; size_of::<Translation>()];
    for (byte, earlier) in bytes.iter_mut().zip(earlier) {
        *byte = *earlier;
    }
    Translation::read_from_bytes(&bytes).unwrap_or_default()
}
