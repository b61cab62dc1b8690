//! Why a value or a key cannot be read, and what to do about that.

/// From this likeness on (Jaro-Winkler) an unknown key is taken for a slip.
const LIKE: f64 = 0.8;

/// What serde calls what it expects, and how that is written in a file.
const WRITTEN: [(&str, &str); 11] = [
    ("path string", "a path in quotes"),
    ("a string", "a text in quotes"),
    ("socket address", "an address and a port in quotes, as \"127.0.0.1:9477\""),
    ("a boolean", "true or false"),
    ("u32", "a whole number from 0 on, without quotes"),
    ("u64", "a whole number from 0 on, without quotes"),
    ("i64", "a whole number without quotes"),
    ("f64", "a number without quotes"),
    ("a sequence", "a list, as [\"…\"]"),
    ("a map", "a section, as [uplinks.NAME]"),
    ("struct", "a section in square brackets"),
];

/// For whatever has no better one.
const OTHERWISE: &str = "write another value, or take the key out: then its default is in force";

/// An error of serde without what it knows, which the cure has.
pub(super) fn reason(message: &str) -> &str {
    let unknown = message.starts_with("unknown ").then(|| message.rsplit_once(", expected")).flatten();
    unknown.map_or(message, |(reason, _)| reason).trim()
}

/// What to do about an error of serde.
pub(super) fn cure(message: &str) -> String {
    if let Some(nearest) = nearest(message) {
        return format!("did you mean `{nearest}`?");
    }
    if message.starts_with("unknown field") {
        return format!("take the key out, or write one of {}", known(message).join(", "));
    }
    if message.starts_with("unknown variant") {
        return format!("write one of {}", known(message).join(", "));
    }
    if message.starts_with("duplicate key") {
        return "take one of the two out".to_owned();
    }
    let expected = message.split_once("expected ").map_or("", |(_, expected)| expected);
    let written = WRITTEN.iter().find(|(name, _)| expected.starts_with(name));
    let is_address = message.contains("socket address");
    let written =
        written.or_else(|| WRITTEN.iter().find(|(name, _)| is_address && *name == "socket address"));
    written.map_or_else(|| OTHERWISE.to_owned(), |(_, how)| format!("write {how}"))
}

/// The names that serde knows, in the order of the types. It puts the unknown one, and then all that it knows, between backticks.
fn known(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).skip(1).collect()
}

/// The known key or value that is most like an unknown one; none where none is like it.
pub(super) fn nearest(message: &str) -> Option<&str> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let unknown = message.split('`').nth(1)?;
    let likeness = |word: &str| strsim::jaro_winkler(unknown, word);
    let nearest = known(message).into_iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    nearest.filter(|word| likeness(word) > LIKE)
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    #[test]
    fn a_reason_is_one_line_without_what_is_known() {
        for (text, wanted) in [
            ("zzz = 1", "unknown field `zzz`"),
            ("attach = 'zzz'", "unknown variant `zzz`"),
            ("'a, expected one of' = 1", "unknown field `a, expected one of`"),
            ("[uplinks.a]\negress = 'G'", "\"G\" has no number, as 10G has"),
        ] {
            let error = toml::from_str::<Options>(text).unwrap_err();
            assert_eq!(reason(error.message()), wanted);
        }
    }

    #[test]
    fn every_error_has_a_cure_of_its_kind() {
        for (text, wanted) in [
            ("sokcet = '/run/x'", "did you mean `socket`?"),
            ("[uplinks.eth1]\negres = '1G'", "did you mean `egress`?"),
            ("masquerade = 'kernal'", "did you mean `kernel`?"),
            ("zzz = 1", "write one of socket, group,"),
            ("attach = 'zzz'", "write one of auto, tcx, clsact"),
            ("socket = 5", "a path in quotes"),
            ("group = 5", "a text in quotes"),
            ("max_flows = '5'", "a whole number from 0 on"),
            ("max_flows = -5", "a whole number from 0 on"),
            ("kubernetes.dra = 'yes'", "true or false"),
            ("metrics = '9477'", "as \"127.0.0.1:9477\""),
            ("kubernetes = 5", "a section"),
            ("uplinks = 5", "a section"),
            ("cluster.pod_cidrs = '10.0.0.0/8'", "a list"),
            ("cluster.vxlan.id = 0", "its default is in force"),
        ] {
            let error = toml::from_str::<Options>(text).unwrap_err();
            let cure = cure(error.message());
            assert!(cure.contains(wanted), "{text}: {cure} ({error})");
        }
    }
}
