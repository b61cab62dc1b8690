//! What the result says of the attachment beyond the specification, under `shunt.dev/`, where the configuration asks for it.

use serde_json::{Map, Value, json};
use shunt_agent_api::{Attached, Bandwidth, Reply};

use crate::config::Config;

/// The facts of an attachment: by which way it came to its programs (`mode`), which these are, and its limits in bits a
/// second.
pub(crate) fn of(config: &Config, mode: &str, limits: &Bandwidth, attached: &Reply) -> Map<String, Value> {
    let mut facts = Map::new();
    let Reply::Attached(Attached { programs, .. }) = attached else { return facts };
    if config.network.metadata {
        facts.insert("shunt.dev/mode".to_owned(), json!(mode));
        facts.insert("shunt.dev/programs".to_owned(), serde_json::to_value(programs).unwrap_or_default());
        for (name, limit) in [("ingress", limits.ingress), ("egress", limits.egress)] {
            facts.extend(limit.map(|limit| (format!("shunt.dev/{name}Rate"), json!(limit.rate))));
        }
    }
    facts
}
