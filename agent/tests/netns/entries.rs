//! Entries of others' connections in connection tracking.

use std::fs;
use std::path::Path;

use shunt_lab::Namespace;

/// As many as it has room for, by the file at this path; all are assured, so the kernel drops none of them for a new one
/// (`early_drop`, net/netfilter/nf_conntrack_core.c).
pub(crate) fn fill(namespace: &Namespace, file: &Path) {
    let room = fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_max").unwrap();
    load(namespace, file, room.trim().parse().unwrap());
    let count = namespace.command("conntrack", &["-C"]).unwrap();
    assert_eq!(count.trim(), room.trim());
}

/// So many. Those that find no room are left out.
pub(crate) fn load(namespace: &Namespace, file: &Path, entries: u32) {
    let entry = |number: u32| {
        let [_, a, b, c] = number.to_be_bytes();
        format!(
            "-A -t 600 -u SEEN_REPLY,ASSURED -s 11.{a}.{b}.{c} -d 192.0.2.1 -r 192.0.2.1 -q 11.{a}.{b}.{c} -p udp \
             --sport 1 --dport 2 --reply-port-src 2 --reply-port-dst 1\n"
        )
    };
    fs::write(file, (0..entries).map(entry).collect::<String>()).unwrap();
    let load = format!("conntrack -R {} >/dev/null 2>&1; true", file.display());
    namespace.command("sh", &["-c", &load]).unwrap();
}
