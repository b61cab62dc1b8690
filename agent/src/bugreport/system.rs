//! Versions of agent, plugin and kernel, and what of the kernel's configuration and settings matters.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};
use shunt_dataplane::abi::ABI_VERSION;

use super::command;
use super::part::{Had, Job, Lack};
use super::places::Places;
use crate::uninstall::{PLUGIN, is_ours};

/// Bytes of a kernel's configuration.
const LONGEST: u64 = 4 << 20;

/// What the options begin with that matter to shunt.
const OPTIONS: [&str; 22] = [
    "BPF",
    "BRIDGE",
    "CGROUP_BPF",
    "DEBUG_INFO_BTF",
    "HZ",
    "INET_DIAG",
    "INFINIBAND",
    "IPV6",
    "IP_ADVANCED",
    "IP_MULTIPLE",
    "IP_SCTP",
    "NETFILTER",
    "NETKIT",
    "NET_ACT",
    "NET_CLS",
    "NET_SCH",
    "NET_XGRESS",
    "NF_",
    "NFT_",
    "PREEMPT",
    "VETH",
    "VLAN_8021Q",
];

/// Settings of the node that decide which way packets take.
const SETTINGS: [&str; 12] = [
    "kernel/unprivileged_bpf_disabled",
    "net/bridge/bridge-nf-call-arptables",
    "net/bridge/bridge-nf-call-ip6tables",
    "net/bridge/bridge-nf-call-iptables",
    "net/core/bpf_jit_enable",
    "net/core/bpf_jit_harden",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/conf/default/rp_filter",
    "net/ipv4/ip_forward",
    "net/ipv4/ip_local_port_range",
    "net/ipv6/conf/all/forwarding",
    "net/netfilter/nf_conntrack_max",
];

pub(super) fn jobs(places: &Places) -> Vec<Job> {
    let bin_dir = places.bin_dir.clone();
    vec![
        Job::new("versions.json", move |by| Had::json(versions(&bin_dir, by))),
        Job::new("kernel.config", |_| configuration()),
        Job::new("settings.json", |_| Had::json(settings())),
    ]
}

fn versions(bin_dir: &Path, by: Instant) -> Value {
    let kernel = |name: &str| setting(&format!("kernel/{name}")).ok();
    json!({
        "agent": { "version": env!("CARGO_PKG_VERSION"), "abi": ABI_VERSION },
        "plugin": plugin(bin_dir, by),
        "kernel": { "release": kernel("osrelease"), "version": kernel("version"), "architecture": std::env::consts::ARCH },
    })
}

/// What the plugin says of itself when no runtime calls it, and the names by which it is there.
fn plugin(bin_dir: &Path, by: Instant) -> Value {
    let about = match command::run(&bin_dir.join(PLUGIN), &[], by) {
        Ok(printed) => printed.errors.lines().next().unwrap_or_default().to_owned(),
        Err(Lack::Absent(why) | Lack::Failed(why)) => why,
    };
    let entries = fs::read_dir(bin_dir).into_iter().flatten().flatten();
    let links = entries.map(|entry| entry.path()).filter(|path| is_ours(path));
    let mut links: Vec<_> = links.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    links.sort();
    json!({ "about": about, "links": links })
}

/// The options that matter, from `/proc/config.gz` or the file that distributions install.
fn configuration() -> Result<Had, Lack> {
    let release = setting("kernel/osrelease").unwrap_or_default();
    let installed = PathBuf::from(format!("/boot/config-{release}"));
    let read = |from: &mut dyn Read| {
        let mut text = String::new();
        from.take(LONGEST).read_to_string(&mut text).map(|_| text)
    };
    let text = File::open("/proc/config.gz")
        .and_then(|file| read(&mut GzDecoder::new(file)))
        .or_else(|_| File::open(&installed).and_then(|mut file| read(&mut file)));
    let text = text.map_err(|error| {
        Lack::of(&format!("the kernel's configuration, /proc/config.gz or {}", installed.display()), &error)
    })?;
    Ok(Had::text(
        text.lines().filter(|line| matters(line)).map(|line| format!("{line}\n")).collect::<String>(),
    ))
}

fn matters(line: &str) -> bool {
    let option = line.strip_prefix("# ").unwrap_or(line).strip_prefix("CONFIG_");
    option.is_some_and(|option| OPTIONS.iter().any(|begin| option.starts_with(begin)))
}

fn settings() -> Map<String, Value> {
    SETTINGS.into_iter().map(|name| (name.replace('/', "."), setting(name).ok().into())).collect()
}

fn setting(name: &str) -> io::Result<String> {
    Ok(fs::read_to_string(Path::new("/proc/sys").join(name))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_matter_are_kept_whether_they_are_set_or_not() {
        assert!(matters("CONFIG_BPF_SYSCALL=y") && matters("# CONFIG_NFT_FIB is not set"));
        assert!(!matters("CONFIG_SOUND=m") && !matters("# Networking"));
    }
}
