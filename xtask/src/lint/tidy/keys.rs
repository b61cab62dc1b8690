//! Every key that a person may set is in the operator's manual.

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::Finding;
use super::markdown::quoted;
use super::source::Source;

const MANUAL: &str = "docs/operations.md";
const SCHEMA: &str = "cni-plugin/schema/config.json";
/// Where the agent's keys are fields: a file, and the type in it.
const OPTIONS: [(&str, &str); 3] = [
    ("agent/src/config/options.rs", "Options"),
    ("agent/src/capacity/uplink.rs", "UplinkOptions"),
    ("agent/src/config/kubernetes.rs", "KubernetesOptions"),
];

pub(super) fn undocumented(sources: &[Source]) -> Vec<Finding> {
    let text = |path: &str| sources.iter().find(|source| source.path == path).map(|source| &*source.text);
    let Some(manual) = text(MANUAL) else { return Vec::new() };
    let told = words(manual);
    let schema = text(SCHEMA).map(|text| (SCHEMA, properties(text)));
    let options = OPTIONS.iter().map(|(path, name)| (*path, fields(text(path).unwrap_or_default(), name)));
    let mut findings = Vec::new();
    for (place, keys) in schema.into_iter().chain(options) {
        let untold = keys.iter().filter(|key| !told.contains(key.as_str()));
        let untold = untold.map(|key| format!("the key `{key}` is not in {MANUAL}"));
        let empty = keys.is_empty().then(|| "has no keys: is the rule out of date?".to_owned());
        findings.extend(untold.chain(empty).map(|message| Finding { place: place.to_owned(), message }));
    }
    findings
}

/// What is in backticks: `a.b` stands for itself and for `a`.
fn words(manual: &str) -> BTreeSet<&str> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let words = quoted(manual).flat_map(|(_, text)| text.split(move |c| !is_of_word(c)));
    words.flat_map(|word| [Some(word), word.split_once('.').map(|(first, _)| first)]).flatten().collect()
}

/// The keys of a JSON Schema's object.
fn properties(schema: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    schema["properties"].as_object().map(|keys| keys.keys().cloned().collect()).unwrap_or_default()
}

/// The public fields of a struct.
fn fields(text: &str, name: &str) -> Vec<String> {
    let header = format!("pub struct {name} {{");
    let lines = text.lines().skip_while(|line| *line != header).skip(1).take_while(|line| *line != "}");
    let fields = lines.filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'));
    fields.map(|(field, _)| field.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::source;
    use super::*;

    #[test]
    fn a_key_that_the_manual_does_not_name_is_found() {
        let files = [
            (MANUAL, "`told`, `also.of`, untold\n"),
            (SCHEMA, r#"{"properties": {"told": {}, "also": {}, "untold": {}}}"#),
            (OPTIONS[0].0, "pub struct Options {\n    /// A key.\n    pub hidden: u32,\n}\n"),
            (OPTIONS[1].0, "pub struct UplinkOptions {\n    pub told: u32,\n}\n"),
        ];
        let sources: Vec<_> = files.into_iter().flat_map(|(path, text)| source(path, text)).collect();
        let findings = undocumented(&sources);
        let messages: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[0].contains("`untold`") && messages[1].contains("`hidden`"));
        // A file that has moved takes its keys along.
        assert!(messages[2].contains("out of date") && findings[2].place == OPTIONS[2].0, "{messages:?}");
    }
}
