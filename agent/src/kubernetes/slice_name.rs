//! The name of a node's slice.

use shunt_agent_api::fnv;

use crate::capacity::slice::DRIVER;

/// Bytes of an object's name.
const LONGEST: usize = 253;

/// Bytes that are kept of a node's name that is too long, so that the hash of all of it and a number fit behind it.
const KEPT: usize = LONGEST - DRIVER.len() - 24;

/// The name where so many names were found taken by somebody else. Two nodes never have the same first one, but by a collision of hashes.
pub(super) fn slice_name(node: &str, taken: usize) -> String {
    let node = match node.get(..KEPT).filter(|kept| kept.len() < node.len()) {
        Some(kept) => {
            format!("{}-{:08x}", kept.trim_end_matches(['-', '.']), fnv::of_32_bits(node.as_bytes()))
        }
        None => node.to_owned(),
    };
    match taken {
        0 => format!("{node}-{DRIVER}"),
        taken => format!("{node}-{}-{DRIVER}", taken + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_each_time_and_another_where_it_is_taken() {
        assert_eq!(slice_name("node-1", 0), "node-1-bandwidth.shunt.dev");
        assert_eq!(slice_name("node-1", 1), "node-1-2-bandwidth.shunt.dev");
        assert_eq!(slice_name("node-1", 7), "node-1-8-bandwidth.shunt.dev");
    }

    #[test]
    fn long_names_of_nodes_make_names_that_fit_and_differ() {
        let [one, other] = ["a", "b"].map(|last| format!("{}.{last}", "x.".repeat(125)));
        for name in [slice_name(&one, 0), slice_name(&other, 0), slice_name(&one, 7)] {
            assert!(crate::capacity::slice::check_node_name(&name).is_ok(), "{name}");
        }
        assert_ne!(slice_name(&one, 0), slice_name(&other, 0));
    }
}
