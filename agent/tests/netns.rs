//! End to end: the release binaries in network namespaces, three containers by real CNI ADDs. Needs root and
//! `cargo xtask build`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests, and their figures")]

#[path = "netns/account.rs"]
mod account;
#[path = "netns/admission.rs"]
mod admission;
#[path = "netns/advertised.rs"]
mod advertised;
#[path = "netns/agent_restart.rs"]
mod agent_restart;
#[path = "netns/answered.rs"]
mod answered;
#[path = "netns/apart.rs"]
mod apart;
#[path = "netns/authority.rs"]
mod authority;
#[path = "netns/bad_input.rs"]
mod bad_input;
#[path = "netns/bandwidth.rs"]
mod bandwidth;
#[path = "netns/big_tcp.rs"]
mod big_tcp;
#[path = "netns/bridged_host_ports.rs"]
mod bridged_host_ports;
#[path = "netns/bugreport.rs"]
mod bugreport;
#[path = "netns/by_programs.rs"]
mod by_programs;
#[path = "netns/bypassed.rs"]
mod bypassed;
#[path = "netns/claimed.rs"]
mod claimed;
#[path = "netns/collected.rs"]
mod collected;
#[path = "netns/container_end.rs"]
mod container_end;
#[path = "netns/dashboard.rs"]
mod dashboard;
#[path = "netns/datagram.rs"]
mod datagram;
#[path = "netns/delete.rs"]
mod delete;
#[path = "netns/dhcp.rs"]
mod dhcp;
#[path = "netns/dhcp_service.rs"]
mod dhcp_service;
#[path = "netns/documented.rs"]
mod documented;
#[path = "netns/duplicates.rs"]
mod duplicates;
#[path = "netns/entries.rs"]
mod entries;
#[path = "netns/estate.rs"]
mod estate;
#[path = "netns/evasion.rs"]
mod evasion;
#[path = "netns/fast_path.rs"]
mod fast_path;
#[path = "netns/figures.rs"]
mod figures;
#[path = "netns/flooded.rs"]
mod flooded;
#[path = "netns/guarded.rs"]
mod guarded;
#[path = "netns/heeded.rs"]
mod heeded;
#[path = "netns/heeded_hostile.rs"]
mod heeded_hostile;
#[path = "netns/heeded_modes.rs"]
mod heeded_modes;
#[path = "netns/heeded_policies.rs"]
mod heeded_policies;
#[path = "netns/heeded_tracking.rs"]
mod heeded_tracking;
#[path = "netns/heeded_uplink.rs"]
mod heeded_uplink;
#[path = "services/hooks.rs"]
mod hooks;
#[path = "netns/ingress.rs"]
mod ingress;
#[path = "netns/intruder.rs"]
mod intruder;
#[path = "netns/kept_addresses.rs"]
mod kept_addresses;
#[path = "netns/killed.rs"]
mod killed;
#[path = "netns/ladder.rs"]
mod ladder;
#[path = "netns/learned.rs"]
mod learned;
#[path = "netns/masquerade.rs"]
mod masquerade;
#[path = "netns/masqueraded.rs"]
mod masqueraded;
#[path = "netns/masqueraded_carried.rs"]
mod masqueraded_carried;
#[path = "netns/masses.rs"]
mod masses;
#[path = "netns/moved.rs"]
mod moved;
#[path = "netns/native.rs"]
mod native;
#[path = "netns/node_test.rs"]
mod node_test;
#[path = "netns/occupied.rs"]
mod occupied;
#[path = "netns/opened.rs"]
mod opened;
#[path = "netns/opened_carried.rs"]
mod opened_carried;
#[path = "netns/opened_changes.rs"]
mod opened_changes;
#[path = "netns/opened_crowded.rs"]
mod opened_crowded;
#[path = "netns/opened_errors.rs"]
mod opened_errors;
#[path = "netns/own_xdp.rs"]
mod own_xdp;
#[path = "netns/pinged.rs"]
mod pinged;
#[path = "netns/relocated.rs"]
mod relocated;
#[path = "netns/restrictions.rs"]
mod restrictions;
#[path = "netns/reverse_path.rs"]
mod reverse_path;
#[path = "netns/routers.rs"]
mod routers;
#[path = "netns/settings.rs"]
mod settings;
#[path = "netns/small_links.rs"]
mod small_links;
#[path = "netns/soak.rs"]
mod soak;
#[path = "netns/source_addresses.rs"]
mod source_addresses;
#[path = "netns/spanning_tree.rs"]
mod spanning_tree;
#[path = "netns/spoofed.rs"]
mod spoofed;
#[path = "netns/stage.rs"]
mod stage;
#[path = "netns/storms.rs"]
mod storms;
#[allow(dead_code, reason = "the chains time bursts with it too")]
#[path = "chains/stream.rs"]
mod stream;
#[path = "netns/subnets.rs"]
mod subnets;
#[path = "netns/suppressed.rs"]
mod suppressed;
#[path = "netns/top.rs"]
mod top;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "netns/uncut.rs"]
mod uncut;
#[path = "netns/unrecorded.rs"]
mod unrecorded;
#[path = "netns/unwritable.rs"]
mod unwritable;
#[path = "netns/uplinks.rs"]
mod uplinks;
#[path = "netns/vlan_gateways.rs"]
mod vlan_gateways;
#[path = "netns/vlan_gateways_kept.rs"]
mod vlan_gateways_kept;
#[path = "netns/vlans.rs"]
mod vlans;
#[path = "netns/watched.rs"]
mod watched;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "netns/wire.rs"]
mod wire;
