//! Keys that cannot all be meant. The agent starts with them and does not do what one of them says.

use super::cluster::Routes;
use super::fault::Fault;
use super::key::Key;
use super::kubernetes::Publish;
use super::options::{MOST_FLOWS, Options};
use super::origins::Origins;
use crate::capacity::Quantity;

/// What of the options contradicts other options, or bounds.
pub fn contradictions(options: &Options, origins: &Origins) -> Vec<Fault> {
    let rules = [flows, metrics, uplinks, kubernetes, cluster];
    rules.iter().flat_map(|rule| rule(options, origins)).collect()
}

fn fault(origins: &Origins, key: &str, reason: String, cure: &str) -> Fault {
    Fault::ignored(key, origins.line(key), reason, cure.to_owned())
}

fn flows(options: &Options, origins: &Origins) -> Vec<Fault> {
    let Options { max_flows, max_flows_per_container: each, .. } = *options;
    let is_outside = |most: &u32| !(1..=MOST_FLOWS).contains(most);
    let bounds = format!("write 1 to {MOST_FLOWS}");
    let all = max_flows.filter(is_outside).map(|most| {
        fault(
            origins,
            "max_flows",
            format!("{most} is out of bounds, the nearest bound is in force"),
            &bounds,
        )
    });
    let of_one = each.filter(|each| *each == 0 || max_flows.is_some_and(|most| *each > most)).map(|each| {
        let room = max_flows.map_or_else(String::new, |most| format!(" of {most}"));
        let reason = format!("{each} is no share of the room{room} for connections");
        fault(origins, "max_flows_per_container", reason, "write 1 or more, and not more than max_flows")
    });
    all.into_iter().chain(of_one).collect()
}

fn metrics(options: &Options, origins: &Origins) -> Vec<Fault> {
    let is_idle = options.metrics.is_none() && options.metrics_labels.is_some();
    let reason = || "no metrics are served, so their labels change nothing".to_owned();
    is_idle.then(|| fault(origins, "metrics_labels", reason(), "set metrics as well")).into_iter().collect()
}

fn uplinks(options: &Options, origins: &Origins) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut claimed: Vec<(&str, &str)> = Vec::new();
    for (name, uplink) in &options.uplinks {
        let key = |last: &str| Key::default().child("uplinks").child(name).child(last).to_string();
        for network in &uplink.networks {
            match claimed.iter().find(|(known, _)| known == network) {
                Some((_, first)) if first != name => {
                    let reason =
                        format!("the network {network} is the uplink {first}'s already, which it uses");
                    faults.push(fault(origins, &key("networks"), reason, "name a network at one uplink"));
                }
                Some(_) => {}
                None => claimed.push((network, name)),
            }
        }
        let least = [uplink.egress, uplink.ingress].into_iter().flatten().min();
        let Some(least) = least.filter(|least| uplink.reserve > Quantity(0) && uplink.reserve >= *least)
        else {
            continue;
        };
        let reason =
            format!("{} of {least} are kept for the node: nothing can be handed out", uplink.reserve);
        faults.push(fault(origins, &key("reserve"), reason, "keep less than egress and ingress"));
    }
    faults
}

fn kubernetes(options: &Options, origins: &Origins) -> Vec<Fault> {
    let Some(kubernetes) = &options.kubernetes else { return Vec::new() };
    let is_idle = kubernetes.publish == Publish::Node && kubernetes.dra && origins.is_given("kubernetes.dra");
    let reason = || "there are no claims of a node's capacity: none are prepared".to_owned();
    let cure = "set publish to \"slice\" or \"auto\", or dra to false";
    is_idle.then(|| fault(origins, "kubernetes.dra", reason(), cure)).into_iter().collect()
}

fn cluster(options: &Options, origins: &Origins) -> Vec<Fault> {
    let Some(cluster) = &options.cluster else { return Vec::new() };
    if !cluster.enabled && !origins.is_given("cluster.enabled") {
        let reason = "the section does nothing without enabled = true".to_owned();
        return vec![fault(origins, "cluster", reason, "set enabled, to true or to false")];
    }
    let is_idle = cluster.enabled
        && matches!(cluster.routes, Routes::Host | Routes::Off)
        && origins.is_given("cluster.vxlan");
    let reason = || "no node is reached through a VXLAN device by these routes".to_owned();
    let cure = "set routes to \"vxlan\" or \"auto\", or take the section out";
    is_idle.then(|| fault(origins, "cluster.vxlan", reason(), cure)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{Config, ConfigFile};
    use super::*;

    /// The faults of a file, as keys and lines; its agent starts, and says them all.
    fn told(text: &str) -> Vec<(String, Option<usize>)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        fs::write(&path, text).unwrap();
        let file = ConfigFile::open(&path).unwrap();
        let options = file.options().unwrap();
        let faults = contradictions(&options, &Origins::of(Some(&file), &Options::default()));
        let config = Config::resolve(Some(&file), Options::default()).unwrap();
        for fault in &faults {
            assert!(!fault.is_refused && config.warnings.contains(&fault.to_string()), "{fault}");
        }
        faults.into_iter().map(|fault| (fault.key.unwrap(), fault.line)).collect()
    }

    #[test]
    fn what_cannot_all_be_meant_is_told_by_key_and_line() {
        for (text, key, line) in [
            ("max_flows = 0", "max_flows", 1),
            ("max_flows = 524289", "max_flows", 1),
            ("max_flows = 10\nmax_flows_per_container = 11", "max_flows_per_container", 2),
            ("max_flows_per_container = 0", "max_flows_per_container", 1),
            ("metrics_labels = 'node'", "metrics_labels", 1),
            ("[uplinks.a]\nnetworks = ['x']\n[uplinks.b]\nnetworks = ['x']", "uplinks.b.networks", 4),
            ("[uplinks.a]\negress = '1G'\nreserve = '1G'", "uplinks.a.reserve", 3),
            ("[kubernetes]\ndra = true\npublish = 'node'", "kubernetes.dra", 2),
            ("[cluster]\nroutes = 'host'", "cluster", 1),
            ("[cluster]\nenabled = true\nroutes = 'off'\nvxlan.id = 5", "cluster.vxlan", 4),
        ] {
            assert_eq!(told(text), [(key.to_owned(), Some(line))], "{text}");
        }
    }

    #[test]
    fn what_goes_together_is_left_alone() {
        for text in [
            "",
            "max_flows = 524288\nmax_flows_per_container = 524288",
            "metrics = '127.0.0.1:1'\nmetrics_labels = 'node'",
            "[uplinks.a]\nnetworks = ['x', 'x']\negress = '1G'\nreserve = '500M'\n[uplinks.b]\nnetworks = ['y']",
            "[kubernetes]\npublish = 'node'",
            "[cluster]\nenabled = false\nvxlan.id = 5",
            "[cluster]\nenabled = true\nvxlan.id = 5",
        ] {
            assert_eq!(told(text), [], "{text}");
        }
    }
}
