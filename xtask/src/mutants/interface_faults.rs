//! Faults in the pipelines of VLAN interfaces.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "interface-tag-within-tag",
        file: "ebpf/src/programs/from_vlan.rs",
        find: "if let Some(tag) = wire::outermost(packet, &frame) {",
        replace: "if let Some(tag) = wire::outermost(packet, &frame).filter(|_| false) {",
        why: "a container would hide another VLAN's tag in its own",
        judge: Judge::Host,
    },
    Fault {
        name: "neighbours-of-any-vlan",
        file: "ebpf/src/programs/from_vlan.rs",
        find: "let key = StationKey { bridge: port.bridge, vid: port.vid, mac: frame.destination };",
        replace: "let key = StationKey { bridge: port.bridge, vid: 20, mac: frame.destination };",
        why: "two VLANs of one master would meet on the node",
        judge: Judge::Host,
    },
    Fault {
        name: "parents-frames-lost-to-the-wire",
        file: "ebpf/src/programs/from_vlan.rs",
        find: "return to_trunk(packet, port, Way::Into);",
        replace: "return to_trunk(packet, port, Way::Wire);",
        why: "what a chained VLAN sends would come back into its own container",
        judge: Judge::Host,
    },
    Fault {
        name: "trunk-of-any-vlan",
        file: "ebpf/src/programs/from_trunk.rs",
        find: "let key = StationKey { bridge: here, vid: tci & VID, mac: frame.destination };",
        replace: "let key = StationKey { bridge: here, vid: 10, mac: frame.destination };",
        why: "any VLAN of the wire would reach a container",
        judge: Judge::Host,
    },
    Fault {
        name: "trunk-provider-tag",
        file: "ebpf/src/stages/classify.rs",
        find: "Some(tag) if !tag.is_service() => Ok((frame, tag.tci())),",
        replace: "Some(tag) => Ok((frame, tag.tci())),",
        why: "a provider's VLAN would be taken for a customer's",
        judge: Judge::Host,
    },
    Fault {
        name: "trunk-group-untagged",
        file: "ebpf/src/programs/from_trunk.rs",
        find: "retag::tag(packet, tci)?;",
        replace: "",
        why: "the node would take a VLAN's broadcasts for its own",
        judge: Judge::Host,
    },
    Fault {
        name: "copies-for-every-vlan",
        file: "ebpf/src/stages/flood.rs",
        find: "&& receiver.vid == vid",
        replace: "",
        why: "broadcasts would reach every VLAN of a master",
        judge: Judge::Host,
    },
    Fault {
        name: "tag-counts-as-payload",
        file: "ebpf/src/stages/deliver.rs",
        find: "let mtu = if packet.tag().is_none() { station.mtu + TAG_BYTES } else { station.mtu };",
        replace: "let mtu = station.mtu;",
        why: "the largest packets of a VLAN would be lost",
        judge: Judge::Host,
    },
];
