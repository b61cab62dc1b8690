//! The configuration in force as text.

use serde_json::Value;
use shunt_agent_api::{ConfigKey, ConfigOrigin, ConfigReport};

use super::escape::line;
use super::table::{Align::Left, Table};

/// A mask is read by its bits.
const MASK: &str = "mark_mask";

pub(super) fn config_text(report: &ConfigReport) -> String {
    let mut table = Table::new([("KEY", Left), ("VALUE", Left), ("FROM", Left)]);
    for ConfigKey { key, value, origin } in &report.keys {
        let from = match origin {
            ConfigOrigin::Default => "default".to_owned(),
            ConfigOrigin::File { line } => format!("file, line {line}"),
            ConfigOrigin::Flag { name } => name.clone(),
            ConfigOrigin::Environment { name } => format!("${name}"),
        };
        table.row([key.clone(), value_text(key, value), from]);
    }
    let file = report.file.as_ref().map_or("no file".to_owned(), |file| format!("file: {file}"));
    format!("{}\n{table}", line(&file))
}

fn value_text(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Object(keys) if keys.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if key == MASK => {
            number.as_u64().map_or_else(String::new, |mask| format!("{mask:#x}"))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_value_has_a_line_with_where_it_comes_from() {
        let entry = |key: &str, value, origin| ConfigKey { key: key.to_owned(), value, origin };
        let keys = vec![
            entry("socket", json!("/run/a"), ConfigOrigin::Flag { name: "--socket".into() }),
            entry(MASK, json!(0x1060), ConfigOrigin::Default),
            entry("group", Value::Null, ConfigOrigin::Default),
            entry("uplinks.eth1.networks", json!(["a"]), ConfigOrigin::File { line: 7 }),
            entry("kubernetes.node", json!("n1"), ConfigOrigin::Environment { name: "NODE_NAME".into() }),
        ];
        let text = config_text(&ConfigReport { file: Some("/etc/agent.toml".into()), keys });
        let found: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let wanted: [&[&str]; 8] = [
            &["file:", "/etc/agent.toml"],
            &[],
            &["KEY", "VALUE", "FROM"],
            &["socket", "/run/a", "--socket"],
            &["mark_mask", "0x1060", "default"],
            &["group", "-", "default"],
            &["uplinks.eth1.networks", "[\"a\"]", "file,", "line", "7"],
            &["kubernetes.node", "n1", "$NODE_NAME"],
        ];
        assert_eq!(found, wanted);
    }
}
