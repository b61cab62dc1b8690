//! The test binaries that run in the guest, as cargo built them on the host: paths are the same there.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{process, workspace};

/// One of the agent's suites, and what of it is run in a guest: every test whose name contains one of these, or all of them.
struct Kind {
    name: &'static str,
    /// With all the time in the world; a filter comes in place of it.
    whole: &'static [&'static str],
    /// What of it is not run on other kernels, and why not.
    left_out: &'static [(&'static str, &'static str)],
    /// With `--quick`: one test at least of each way onto the ladder of kernels. None where that is not worth its time.
    quick: Option<&'static [&'static str]>,
}

const USER_SPACE: &str = "the plugin's and the agent's own doing, the same on every kernel";

/// What depends on the kernel below, the quick ones first.
const SUITES: [Kind; 6] = [
    Kind { name: "verifier", whole: &[], left_out: &[], quick: Some(&[]) },
    Kind {
        name: "parity",
        whole: &[],
        left_out: &[
            ("said::", "the debug build's log; what else that build says is compared"),
            ("explained::", "the pure code in user space; with what the kernel does that is compared"),
        ],
        quick: Some(&[]),
    },
    Kind {
        name: "interfaces",
        whole: &[],
        left_out: &[("by_the_programs_lease_addresses", USER_SPACE)],
        quick: Some(&["two_vlans_by_the_kernel"]),
    },
    Kind { name: "oracle", whole: &[], left_out: &[], quick: None },
    Kind {
        name: "netns",
        whole: &[
            "ladder::",
            "fast_path::",
            "restrictions::",
            "intruder::",
            "ingress::",
            "vlans::",
            "watched::",
            "uplinks::",
            "native::",
            "learned::",
            "storms::",
            "masquerade::",
            "kept_addresses::",
            "pinged::",
            "agent_restart::",
            "bridged_host_ports::",
            "answered::",
            "suppressed::",
            "apart::",
            "duplicates::",
            "small_links::",
            "spoofed::",
            "authority::",
            "occupied::",
            "relocated::",
            "vlan_gateways::",
            "vlan_gateways_kept::",
            "moved::",
            "settings::",
            "own_xdp::",
            "reverse_path::",
            "heeded::",
            "heeded_modes::",
            "heeded_tracking::",
            "heeded_uplink::",
            "opened::",
            "masqueraded_carried::",
            "opened_carried::",
            "opened_changes::",
            "routers::",
        ],
        left_out: &[
            ("account::", USER_SPACE),
            ("dashboard::", USER_SPACE),
            ("admission::", USER_SPACE),
            ("bad_input::", USER_SPACE),
            ("bugreport::", USER_SPACE),
            ("bypassed::", USER_SPACE),
            ("flooded::", RATES),
            ("figures::", USER_SPACE),
            ("collected::", USER_SPACE),
            ("container_end::", USER_SPACE),
            ("delete::", USER_SPACE),
            ("documented::", USER_SPACE),
            ("dhcp::", USER_SPACE),
            ("top::", USER_SPACE),
            ("node_test::", USER_SPACE),
            ("killed::", USER_SPACE),
            ("masses::", USER_SPACE),
            ("unrecorded::", USER_SPACE),
            ("unwritable::", USER_SPACE),
            ("bandwidth::", RATES),
            ("big_tcp::", "older kernels have no packets of more than 64 KiB"),
            ("evasion::", RATES),
            ("subnets::", RATES),
            ("soak::", RATES),
            ("five_thousand_addresses", "thousands of frames, for which an emulated processor takes minutes"),
            ("not_heard_for_long", "waits until the machine has run for five minutes"),
            ("a_rule_lives_as_long", USER_SPACE),
            ("check_compares_what", USER_SPACE),
            ("containers_come_and_go_after_a_restart", USER_SPACE),
            ("forgets_the_containers_that_were_deleted", USER_SPACE),
            ("a_machine_that_is_started_again", USER_SPACE),
            ("takes_restricted_ports_over", USER_SPACE),
            ("a_restricted_port_whose_entry_is_lost", USER_SPACE),
            ("an_uplink_is_given_back_by_its_last_container", RESTARTS),
            ("a_new_agent_takes_vlans_over", RESTARTS),
            ("guarded::", RESTARTS),
            ("spanning_tree::", "over a minute, most of it the bridge's own timers; passed there"),
            ("an_echo_never_meets_netfilter", LONG),
            ("two_containers_that_ask_under_one_identifier", LONG),
            ("a_large_echo", LONG),
            ("hears_what_routers_say_of_its_echoes", LONG),
            ("an_echo_leaves_the_programs", LONG),
            ("heeded_hostile::", LONG),
            ("opened_crowded::", LONG),
            ("opened_errors::", LONG),
            ("heeded_policies::", LONG),
            ("heeded_tracking::a_thousand_changes", LONG),
            ("rules_that_change_are_heeded", LONG),
            ("by_itself_it_heeds", LONG),
            ("rules_of_the_bridges_family_are_heeded", LONG),
            ("claimed::", LONG),
            ("masqueraded::", LONG),
            ("by_programs::", LONG),
            ("source_addresses::", LONG),
            ("advertised::", LONG),
        ],
        quick: Some(&["ladder::"]),
    },
    Kind {
        name: "portmap",
        // The development kernel has no SCTP of its own, and no tunnels but tun.
        whole: &["sockets_of_the_kernels_own_sctp", "tunnels_of_every_kind"],
        left_out: &[],
        quick: None,
    },
];

const RATES: &str = "rates: not tried on an emulated processor";
const RESTARTS: &str = "a minute for an agent that starts again; others are run";
const LONG: &str = "half a minute of verifying each; one of the kind is run";

/// A test binary, and the package's folder in which cargo would start it.
pub(super) struct Suite {
    pub(super) binary: PathBuf,
    pub(super) folder: PathBuf,
    /// For the test harness: parts of names, and what it wants to be told besides.
    pub(super) words: Vec<String>,
}

/// What is to be run.
pub(super) struct Choice<'a> {
    pub(super) quick: bool,
    /// Suites by name; none are all.
    pub(super) suites: &'a [String],
    /// Words for the test harness in place of the selection.
    pub(super) filter: &'a [String],
}

impl Choice<'_> {
    /// What of the suites a whole run does not run, with the reasons, a line each.
    pub(super) fn left_out(&self) -> Vec<String> {
        if self.quick || !self.filter.is_empty() {
            return Vec::new();
        }
        let kinds = SUITES.iter().filter(|kind| self.words(kind).is_some());
        let parts = kinds.flat_map(|kind| kind.left_out.iter().map(move |part| (kind.name, part)));
        parts.map(|(suite, (tests, why))| format!("{suite} {tests} ({why})")).collect()
    }

    /// The words for a suite's test harness, unless it is not to be run.
    fn words(&self, kind: &Kind) -> Option<Vec<String>> {
        let is_wanted = self.suites.is_empty() || self.suites.iter().any(|name| name == kind.name);
        let selection = match (self.filter, self.quick) {
            ([], true) => kind.quick.filter(|_| is_wanted)?.iter().map(ToString::to_string).collect(),
            ([], false) => kind.whole.iter().map(ToString::to_string).collect(),
            (filter, _) => filter.to_vec(),
        };
        // Of a module that is run one test may be left out.
        let left_out = if self.filter.is_empty() { kind.left_out } else { &[] };
        let skipped = left_out.iter().flat_map(|(tests, _)| ["--skip", tests]);
        let options = skipped.chain(["--color", "never"]).map(ToString::to_string);
        is_wanted.then(|| selection.into_iter().chain(options).collect())
    }
}

/// Builds those that are to be run.
///
/// # Errors
/// A suite that nobody knows, and what cargo says.
pub(super) fn build(choice: &Choice<'_>) -> Result<Vec<Suite>> {
    if let Some(unknown) = choice.suites.iter().find(|name| SUITES.iter().all(|kind| kind.name != **name)) {
        bail!("there is no suite {unknown} for other kernels, but {:?}", SUITES.map(|kind| kind.name));
    }
    let wanted: Vec<_> =
        SUITES.iter().filter_map(|kind| choice.words(kind).map(|words| (kind.name, words))).collect();
    let mut cargo = workspace::cargo();
    cargo.args([
        "test",
        "--no-run",
        "--package",
        "shunt-agent",
        "--message-format",
        "json-render-diagnostics",
    ]);
    for (suite, _) in &wanted {
        cargo.args(["--test", suite]);
    }
    let messages = messages(&mut cargo)?;
    wanted.into_iter().map(|(name, words)| find(name, words, &messages)).collect()
}

fn messages(cargo: &mut Command) -> Result<Vec<Value>> {
    let output = process::output(cargo)?;
    output.lines().map(|line| serde_json::from_str(line).context("cargo's messages are JSON")).collect()
}

fn find(name: &str, words: Vec<String>, messages: &[Value]) -> Result<Suite> {
    for message in messages.iter().filter(|message| message["target"]["name"] == name) {
        let Some(binary) = message["executable"].as_str() else { continue };
        let manifest = PathBuf::from(message["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().context("a manifest lies in a folder")?.to_path_buf();
        return Ok(Suite { binary: binary.into(), folder, words });
    }
    bail!("cargo has built no test binary {name}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_binary_is_the_message_with_an_executable() {
        let library =
            json!({"target": {"name": "parity"}, "executable": null, "manifest_path": "/a/Cargo.toml"});
        let test =
            json!({"target": {"name": "parity"}, "executable": "/t/p", "manifest_path": "/a/Cargo.toml"});
        let suite = find("parity", Vec::new(), &[library.clone(), test]).unwrap();
        assert_eq!((suite.binary, suite.folder), ("/t/p".into(), "/a".into()));
        assert!(find("parity", Vec::new(), &[library]).is_err());
    }

    #[test]
    fn every_module_of_the_tests_in_namespaces_is_run_or_left_out_with_a_reason() {
        let text = std::fs::read_to_string(workspace::root().join("agent/tests/netns.rs")).unwrap();
        let kind = SUITES.iter().find(|kind| kind.name == "netns").unwrap();
        let named: Vec<_> =
            kind.whole.iter().copied().chain(kind.left_out.iter().map(|(tests, _)| *tests)).collect();
        let modules = text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        let helpers =
            ["entries", "stage", "estate", "hooks", "stream", "wire", "datagram", "dhcp_service", "uncut"];
        let forgotten: Vec<_> = modules
            .filter(|module| !helpers.contains(module) && !named.contains(&format!("{module}::").as_str()))
            .collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
    }

    #[test]
    fn a_filter_comes_in_place_of_the_selection_and_a_suite_by_name_leaves_the_others_out() {
        let kind =
            Kind { name: "netns", whole: &["vlans::"], left_out: &[("one_of_them", RATES)], quick: None };
        let words = |quick, suites: &[&str], filter: &[&str]| {
            let [suites, filter] =
                [suites, filter].map(|words| words.iter().map(ToString::to_string).collect());
            let (suites, filter): (Vec<_>, Vec<_>) = (suites, filter);
            Choice { quick, suites: &suites, filter: &filter }.words(&kind)
        };
        assert_eq!(words(false, &[], &[]).unwrap(), ["vlans::", "--skip", "one_of_them", "--color", "never"]);
        assert_eq!(words(true, &[], &["one"]).unwrap(), ["one", "--color", "never"]);
        assert_eq!(words(true, &[], &[]), None);
        assert_eq!(words(false, &["parity"], &["one"]), None);
    }
}
