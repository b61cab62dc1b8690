//! Maps: hash tables and arrays. One CPU is all there is, so what is per CPU has one value, and what forgets the least recently
//! used never has to.

use std::collections::BTreeMap;

use crate::memory::Memory;

/// Map types of `linux/bpf.h` whose keys are indexes.
const ARRAY: u32 = 2;
const PER_CPU_ARRAY: u32 = 6;

/// The one whose keys are prefixes: bits, in the machine's order, and bytes.
const PREFIX_TRIE: u32 = 11;

/// Errors as the kernel's helpers return them.
const ENOENT: i64 = -2;
const E2BIG: i64 = -7;
const EEXIST: i64 = -17;
const EINVAL: i64 = -22;

/// Flags of an update: only where there is no entry, only where there is one.
const NOEXIST: u64 = 1;
const EXIST: u64 = 2;

/// A map cannot be filled like that.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The object has no such map.
    #[error("the object has no map {0}")]
    Unknown(String),
    /// The map took it no better than this.
    #[error("map {name}: error {error} for an entry")]
    Refused {
        /// Which map.
        name: String,
        /// The errno, negative.
        error: i64,
    },
}

/// One map.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) name: String,
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
    pub(crate) room: usize,
    pub(crate) is_array: bool,
    pub(crate) is_trie: bool,
    /// Where the values are.
    pub(crate) entries: BTreeMap<Vec<u8>, u64>,
}

impl Map {
    pub(crate) fn new(name: String, map: &aya_obj::Map) -> Self {
        Self {
            name,
            key_bytes: map.key_size() as usize,
            value_bytes: map.value_size() as usize,
            room: map.max_entries() as usize,
            is_array: matches!(map.map_type(), ARRAY | PER_CPU_ARRAY),
            is_trie: map.map_type() == PREFIX_TRIE,
            entries: BTreeMap::new(),
        }
    }

    /// Where the value is, or 0. All of an array's values are there from the beginning.
    pub(crate) fn look_up(&mut self, key: &[u8], memory: &mut Memory) -> u64 {
        if let Some(&address) = self.entries.get(key) {
            return address;
        }
        if self.is_trie {
            return self.longest(key);
        }
        if !self.is_array || !self.has_index(key) {
            return 0;
        }
        let address = memory.push_value(vec![0; self.value_bytes]);
        self.entries.insert(key.to_vec(), address);
        address
    }

    /// Where the value of the longest prefix of `key` is, or 0.
    fn longest(&self, key: &[u8]) -> u64 {
        let prefixes = self.entries.iter().filter(|(prefix, _)| is_prefix(prefix, key));
        prefixes.max_by_key(|(prefix, _)| bits(prefix)).map_or(0, |(_, &address)| address)
    }

    /// 0, or the errno.
    pub(crate) fn update(&mut self, key: &[u8], value: &[u8], flags: u64, memory: &mut Memory) -> i64 {
        if key.len() != self.key_bytes || value.len() != self.value_bytes {
            return EINVAL;
        }
        let address = match self.is_trie {
            true => self.entries.get(key).copied().unwrap_or_default(),
            false => self.look_up(key, memory),
        };
        match (address, flags) {
            (0, EXIST) => ENOENT,
            (1.., NOEXIST) => EEXIST,
            (0, _) if self.is_array || self.entries.len() >= self.room => E2BIG,
            (0, _) => {
                let address = memory.push_value(value.to_vec());
                self.entries.insert(key.to_vec(), address);
                0
            }
            (address, _) => match memory.bytes_mut(address, value.len()) {
                Ok(bytes) => {
                    bytes.copy_from_slice(value);
                    0
                }
                Err(_) => EINVAL,
            },
        }
    }

    /// 0, or the errno. A value that somebody still points to stays where it is.
    pub(crate) fn delete(&mut self, key: &[u8]) -> i64 {
        if self.is_array {
            return EINVAL;
        }
        if self.entries.remove(key).is_some() { 0 } else { ENOENT }
    }

    fn has_index(&self, key: &[u8]) -> bool {
        let Some(bytes) = key.first_chunk() else { return false };
        (u32::from_le_bytes(*bytes) as usize) < self.room
    }
}

/// The bits of a prefix.
fn bits(prefix: &[u8]) -> u32 {
    prefix.first_chunk().copied().map_or(0, u32::from_ne_bytes)
}

/// Whether a key begins with a prefix, and says so many bits.
fn is_prefix(prefix: &[u8], key: &[u8]) -> bool {
    let bit = |bytes: &[u8], at: u32| bytes[4 + at as usize / 8] >> (7 - at % 8) & 1;
    bits(prefix) <= bits(key) && (0..bits(prefix)).all(|at| bit(prefix, at) == bit(key, at))
}
