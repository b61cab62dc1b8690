//! What is in force in an agent and has no key in its file: how it logs, and what tests have it leave out.

use clap::ValueEnum as _;
use shunt_agent::logging::{self, FILTER, LogFormat};
use shunt_agent_api::{ConfigKey, ConfigOrigin};

/// The log's format and lines, and the flags for tests that are given.
pub(super) fn keyless(format: Option<LogFormat>, of_tests: [(&str, bool); 2]) -> Vec<ConfigKey> {
    let flag = |key: &str| ConfigOrigin::Flag { name: format!("--{}", key.replace('_', "-")) };
    let named = format.unwrap_or_default().to_possible_value();
    let (lines, are_said) = logging::lines();
    let by_variable = || ConfigOrigin::Environment { name: FILTER.to_owned() };
    let of_log = [
        ConfigKey {
            key: "log_format".to_owned(),
            value: named.map(|value| value.get_name().to_owned()).into(),
            origin: if format.is_some() { flag("log_format") } else { ConfigOrigin::Default },
        },
        ConfigKey {
            key: "log_lines".to_owned(),
            value: lines.into(),
            origin: if are_said { by_variable() } else { ConfigOrigin::Default },
        },
    ];
    let given = of_tests.into_iter().filter(|(_, is_given)| *is_given);
    let given =
        given.map(|(key, _)| ConfigKey { key: key.to_owned(), value: true.into(), origin: flag(key) });
    of_log.into_iter().chain(given).collect()
}
