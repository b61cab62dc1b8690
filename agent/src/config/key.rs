//! Keys of the configuration file by their full names, and the lines that they are in.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use toml::de::DeTable;

/// A key's name from the root of the file: `uplinks.eth1.egress`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Vec<String>);

impl Key {
    /// The key `name` in the section that this key is.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        let mut names = self.0.clone();
        names.push(name.to_owned());
        Self(names)
    }

    /// The key that an error at these bytes of the file is about: the smallest one that has them in its name or its value.
    pub fn at(table: &DeTable<'_>, bytes: &Range<usize>) -> Option<Self> {
        find(table, bytes, &Self::default())
    }

    /// Takes the key and its value out of the file's table; whether it was there.
    pub fn take_out(&self, table: &mut DeTable<'_>) -> bool {
        let Some((last, sections)) = self.0.split_last() else { return false };
        let mut section = Some(table);
        for name in sections {
            section = section.and_then(|table| match table.get_mut(name.as_str())?.get_mut() {
                toml::de::DeValue::Table(inner) => Some(inner),
                _ => None,
            });
        }
        section.is_some_and(|table| table.remove(last.as_str()).is_some())
    }
}

fn find(table: &DeTable<'_>, bytes: &Range<usize>, section: &Key) -> Option<Key> {
    table.iter().find_map(|(name, value)| {
        let key = section.child(name.get_ref());
        let below = value.get_ref().as_table().and_then(|inner| find(inner, bytes, &key));
        let is_here = name.span() == *bytes || value.span().contains(&bytes.start) || value.span() == *bytes;
        below.or_else(|| is_here.then_some(key))
    })
}

impl fmt::Display for Key {
    /// As TOML has it: a part that is no bare key is in quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            let is_bare = part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
            if is_bare && !part.is_empty() { f.write_str(part)? } else { write!(f, "{part:?}")? }
        }
        Ok(())
    }
}

/// The lines of a text, found by the bytes in them.
#[derive(Debug)]
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// The number of the line with this byte, from 1 on.
    pub(super) fn number(&self, byte: usize) -> usize {
        self.0.partition_point(|end| *end < byte) + 1
    }

    /// The line of each key and of each section of a file.
    pub(super) fn of_keys(&self, table: &DeTable<'_>) -> BTreeMap<Key, usize> {
        let mut known = BTreeMap::new();
        self.collect(table, &Key::default(), &mut known);
        known
    }

    fn collect(&self, table: &DeTable<'_>, section: &Key, known: &mut BTreeMap<Key, usize>) {
        for (name, value) in table {
            let key = section.child(name.get_ref());
            if let Some(inner) = value.get_ref().as_table() {
                self.collect(inner, &key, known);
            }
            known.insert(key, self.number(name.span().start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "socket = '/a'\n\n[uplinks.\"eth0.5\"]\negress = '1G'\nnetworks = ['a']\n[cluster]\nvxlan.id = 5\n";

    #[test]
    fn a_key_is_found_by_what_stands_in_its_value_and_taken_out() {
        let mut table = DeTable::parse(FILE).unwrap().into_inner();
        for (text, name) in [
            ("/a", "socket"),
            ("'1G'", "uplinks.\"eth0.5\".egress"),
            ("'a'", "uplinks.\"eth0.5\".networks"),
            ("5\n", "cluster.vxlan.id"),
        ] {
            let at = FILE.rfind(text).unwrap();
            let key = Key::at(&table, &(at..at + 1)).unwrap();
            assert_eq!(key.to_string(), name);
            assert!(key.take_out(&mut table) && !key.take_out(&mut table), "{name}");
        }
        assert_eq!(Key::at(&table, &(FILE.len()..FILE.len())), None);
    }

    #[test]
    fn keys_and_sections_have_lines() {
        let lines = Lines::of(FILE).of_keys(&DeTable::parse(FILE).unwrap().into_inner());
        let found: Vec<_> = lines.iter().map(|(key, line)| (key.to_string(), *line)).collect();
        for wanted in [
            ("socket", 1),
            ("uplinks.\"eth0.5\"", 3),
            ("uplinks.\"eth0.5\".egress", 4),
            ("cluster", 6),
            ("cluster.vxlan.id", 7),
        ] {
            assert!(found.contains(&(wanted.0.to_owned(), wanted.1)), "{wanted:?}: {found:?}");
        }
    }

    #[test]
    fn control_characters_of_a_name_are_escaped() {
        assert_eq!(Key::default().child("a\u{1b}[1m").child("").to_string(), "\"a\\u{1b}[1m\".\"\"");
    }
}
