//! Container runtimes as Debian ships them, podman 4.3 and containerd 1.6, with our plugin and agent: containers start on a
//! shunt network, talk over the fast path, go, and leave nothing. And shunt's own image, run by podman as the DaemonSet runs it. Needs
//! root and `cargo xtask build`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "runtimes/containerd.rs"]
mod containerd;
#[path = "runtimes/daemonset.rs"]
mod daemonset;
#[path = "runtimes/host.rs"]
mod host;
#[path = "runtimes/netavark.rs"]
mod netavark;
#[path = "runtimes/pod.rs"]
mod pod;
#[path = "runtimes/podman.rs"]
mod podman;
#[path = "runtimes/rootfs.rs"]
mod rootfs;
#[path = "runtimes/site.rs"]
mod site;
