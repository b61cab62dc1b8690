//! What `explain` says of a packet, in user space and over live maps, is what the loaded programs do with it.

use shunt_agent::datapath::attach::hook::{Hook, Program, ProgramSet};
use shunt_agent::explain::frame::Frame;
use shunt_agent::explain::live_tables::{LiveTables, Times};
use shunt_agent::explain::synthetic_frame::framed;
use shunt_agent::explain::{stage_order, travel};
use shunt_netlink::Connection;

use crate::golden::bytes_packet::BytesPacket;
use crate::golden::case::{Case, all};
use crate::golden::world;
use crate::kernel::{Kernel, boot_time};
use crate::world_namespace::in_world_namespace;
use crate::{SETS, can_run};

/// Those of a test run's header, which a bare packet has not.
const ETHERNET_BYTES: usize = 14;

/// What a question can say: no mark, and no segments.
fn can_be_asked(case: &Case) -> bool {
    let BytesPacket { judged, checked, outside, segment_size, full, .. } = case.packet;
    can_run(&case.packet) && segment_size == 0 && full.is_none() && !(judged || checked || outside)
}

fn hook(case: &Case, set: ProgramSet) -> Hook {
    let program = Program::from_name(case.entry.program()).expect("a program");
    Hook { program, set, ifindex: case.here, ifname: format!("w{}", case.here) }
}

#[test]
fn golden_packets_are_explained_as_they_fare_in_the_kernel() {
    in_world_namespace(|| {
        let mut kernels = SETS.map(Kernel::load);
        let now = boot_time();
        // Maps of their own, because what runs in the kernel changes its own; nothing changes these.
        let mut filled = Kernel::load(0);
        filled.fill(now);
        let maps = filled.into_maps();
        let names = world::places().map(|place| (place.ifindex, place.name.to_owned())).collect();
        let mut routes = Connection::open().expect("a netlink socket");
        let times = Times { boot: now, monotonic: 1 << 40 };
        let cases: Vec<_> = all().into_iter().filter(can_be_asked).collect();
        assert!(cases.len() >= 120, "only {} golden packets can be asked about", cases.len());
        for case in cases {
            let set = case.entry.set(case.missing) as usize;
            // What is measured from now on is measured by the kernel itself.
            kernels[set].fill(boot_time());
            let run = kernels[set].run(case.entry.program(), case.here, &case.packet);
            let hook = hook(&case, ProgramSet::ALL[set]);
            let bytes = match case.packet.bare {
                Some(_) => framed(&case.packet.bytes),
                None => case.packet.bytes.clone(),
            };
            let mut frame = Frame::new(bytes, case.packet.origin, mac(case.here));
            let tables = LiveTables::new(&maps, &names, case.here, times, &mut routes);
            let travelled = travel(&mut frame, &hook, tables).expect("maps that can be read");
            let decided = (run.decision.verdict, run.decision.target, run.decision.reason);
            assert_eq!(travelled.verdict.code(), decided, "{}: {:?}", case.name, travelled.stages);
            // Where a tag is taken off or put on, the kernel has it beside the bytes.
            let header = if frame.is_bare { ETHERNET_BYTES } else { 0 };
            let bytes = &run.left.bytes[header.min(run.left.bytes.len())..];
            if run.decision.tag == 0 && bytes.len() == frame.on_the_wire().len() {
                assert_eq!(frame.on_the_wire(), bytes, "{}: bytes", case.name);
            }
            let known = stage_order::pipeline(hook.program, hook.set).stages();
            let stages: Vec<_> = travelled.stages.iter().map(|stage| stage.stage.as_str()).collect();
            assert!(
                stages.iter().all(|stage| known.iter().any(|known| known.name() == *stage)),
                "{}: {stages:?}",
                case.name
            );
            assert!(stages.is_sorted_by_key(|stage| known.iter().position(|known| known.name() == *stage)));
            let ends = travelled.stages.iter().filter(|stage| stage.decision != "on").count();
            assert_eq!(ends, 1, "{}: {:?}", case.name, travelled.stages);
        }
    });
}

fn mac(ifindex: u32) -> shunt_dataplane::wire::address::Mac {
    shunt_dataplane::wire::address::Mac::new(world::mac(ifindex))
}
