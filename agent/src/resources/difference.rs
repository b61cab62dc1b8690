//! What keeps a map from having the entries that are wanted.

use std::collections::BTreeMap;

/// The entries to be written, and the keys of those to be erased.
#[derive(Debug)]
pub(crate) struct Difference<K, V> {
    pub(crate) written: Vec<(K, V)>,
    pub(crate) erased: Vec<K>,
}

impl<K: Ord + Copy, V: PartialEq + Copy> Difference<K, V> {
    pub(crate) fn between(known: &BTreeMap<K, V>, wanted: &BTreeMap<K, V>) -> Self {
        let written = wanted.iter().filter(|(key, value)| known.get(key) != Some(value));
        let erased = known.keys().filter(|key| !wanted.contains_key(key));
        Self {
            written: written.map(|(key, value)| (*key, *value)).collect(),
            erased: erased.copied().collect(),
        }
    }
}
