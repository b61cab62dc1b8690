//! Answers in parts: a list that has grown beyond one message comes in several, for an asker that takes them.

use crate::message::{Collected, Reply};

/// Entries of a list in one part: a few megabytes of the longest ones.
pub const PART: usize = 2048;

impl Reply {
    /// Cuts a list into parts of `most` entries; what is no list, or a short one, is one part.
    pub fn into_parts(self, most: usize) -> Vec<Self> {
        match self {
            Self::Ports(all) => cut(all, most, Self::Ports),
            Self::Fdb(all) => cut(all, most, Self::Fdb),
            Self::Flows(all) => cut(all, most, Self::Flows),
            Self::Mappings(all) => cut(all, most, Self::Mappings),
            Self::Drops(all) => cut(all, most, Self::Drops),
            Self::Account(all) => cut(all, most, Self::Account),
            Self::Collected(all) => cut(all.removed, most, |removed| Self::Collected(Collected { removed })),
            other => vec![other],
        }
    }

    /// Adds the next part of the same list. What is no part of it takes its place: a refusal ends a list.
    pub(crate) fn append(&mut self, part: Self) {
        match (self, part) {
            (Self::Ports(all), Self::Ports(more)) => all.extend(more),
            (Self::Fdb(all), Self::Fdb(more)) => all.extend(more),
            (Self::Flows(all), Self::Flows(more)) => all.extend(more),
            (Self::Mappings(all), Self::Mappings(more)) => all.extend(more),
            (Self::Drops(all), Self::Drops(more)) => all.extend(more),
            (Self::Account(all), Self::Account(more)) => all.extend(more),
            (Self::Collected(all), Self::Collected(more)) => all.removed.extend(more.removed),
            (all, other) => *all = other,
        }
    }
}

fn cut<T>(mut all: Vec<T>, most: usize, part: impl Fn(Vec<T>) -> Reply) -> Vec<Reply> {
    let mut parts = Vec::new();
    while all.len() > most {
        let rest = all.split_off(most);
        parts.push(part(std::mem::replace(&mut all, rest)));
    }
    parts.push(part(all));
    parts
}

#[cfg(test)]
mod tests {
    use crate::report::DropReport;

    use super::*;

    fn drops(count: u64) -> Reply {
        let port = |packets| DropReport {
            stage: "port".to_owned(),
            reason: "isolated".to_owned(),
            port: "veth0".to_owned(),
            packets,
            bytes: 0,
        };
        Reply::Drops((0..count).map(port).collect())
    }

    #[test]
    fn the_parts_of_a_list_are_the_list() {
        for (count, parts) in [(0, 1), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)] {
            let mut cut = drops(count).into_parts(4).into_iter();
            assert_eq!(cut.len(), parts, "{count}");
            let mut whole = cut.next().unwrap();
            cut.for_each(|part| whole.append(part));
            assert_eq!(whole, drops(count));
        }
        assert_eq!(Reply::Checked.into_parts(1), [Reply::Checked]);
    }
}
