//! Faults in delivering and counting.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    // deliver
    Fault {
        name: "target-wrong",
        file: "ebpf/src/stages/deliver.rs",
        find: "Delivery { ifindex: station.ifindex, slot: station.slot, way: Way::Peer }",
        replace: "Delivery { ifindex: station.slot, slot: station.slot, way: Way::Peer }",
        why: "a packet would reach another container",
        judge: Judge::Host,
    },
    Fault {
        name: "container-takes-it-for-its-own",
        file: "ebpf/src/stages/deliver.rs",
        find: "packet.address(macs.destination, macs.source)",
        replace: "packet.address(macs.source, macs.destination)",
        why: "nothing that comes by a host port would be for its container",
        judge: Judge::Host,
    },
    Fault {
        name: "packet-type-kept",
        file: "ebpf/src/stages/deliver.rs",
        find: "    packet.become_own();\n",
        replace: "",
        why: "before Linux 6.15 the receiver would drop every packet as another host's",
        judge: Judge::Host,
    },
    Fault {
        name: "mtu-off-by-one",
        file: "ebpf/src/stages/deliver.rs",
        find: "station.mtu + ETHERNET_BYTES",
        replace: "station.mtu + ETHERNET_BYTES - 1",
        why: "a full-sized frame would take the slow path",
        judge: Judge::Host,
    },
    Fault {
        name: "segments-measured-whole",
        file: "ebpf/src/stages/deliver.rs",
        find: "packet.segment_size() == 0 && ",
        replace: "",
        why: "every large TCP packet would take the slow path",
        judge: Judge::Host,
    },
    Fault {
        name: "peer-taken-for-up",
        file: "ebpf/src/stages/deliver.rs",
        find: "station.flags & (STATION_PEER_UP | STATION_QUEUED) != STATION_PEER_UP",
        replace: "false",
        why: "packets for a container whose link is down would be lost",
        judge: Judge::Host,
    },
    Fault {
        name: "mark-forgotten",
        file: "ebpf/src/stages/deliver.rs",
        find: "    packet.mark_judged();\n",
        replace: "",
        why: "a packet would be counted twice, and its flow taken for the kernel's",
        judge: Judge::Host,
    },
    Fault {
        name: "judged-again",
        file: "ebpf/src/programs/to_container.rs",
        find: "if packet.take_judged()",
        replace: "if false",
        why: "a delivered packet would make its own flow the kernel's",
        judge: Judge::Host,
    },
    // count
    Fault {
        name: "receiver-uncounted",
        file: "ebpf/src/stages/count.rs",
        find: "tables.count(delivery.slot, Lane::ToFast, bytes);",
        replace: "tables.count(port.slot, Lane::ToFast, bytes);",
        why: "the sender would be said to receive what it sends",
        judge: Judge::Host,
    },
    Fault {
        name: "drop-reason-lost",
        file: "ebpf/src/stages/count.rs",
        find: "            tables.count(port.slot, Lane::FromDropped, bytes);\n",
        replace: "",
        why: "drops would be missing from a port's counters",
        judge: Judge::Host,
    },
];
