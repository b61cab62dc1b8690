//! Attaching by name while names move between interfaces.

use aya::programs::{SchedClassifier, TcAttachType};
use shunt_agent::datapath::attach::hook::{Hook, Program, ProgramSet};
use shunt_agent::datapath::attach::tcx::{self, TcxError};
use shunt_agent::datapath::pins::Pins;
use shunt_agent::datapath::probe;

use crate::kernel;
use crate::rig::Rig;

#[test]
fn a_name_that_another_interface_has_taken_gets_no_program() {
    let mut rig = Rig::start("auto");
    let (named, meant) = (rig.container(2), rig.container(3));
    if !probe::has_tcx() {
        return;
    }
    let (program, set) = (Program::FromContainer, ProgramSet::Open);
    let hook = Hook { program, set, ifindex: meant.host.index, ifname: named.host.name.clone() };
    let pins = Pins::at(rig.pin(""));
    let attached = rig.node.enter(|| {
        let mut program = SchedClassifier::from_pin(pins.program(set, program)).unwrap();
        tcx::attach(&mut program, &hook, &pins, |_| false)
    });
    let refused = attached.unwrap().unwrap_err();
    let is_both = |expected, found| (expected, found) == (meant.host.index, named.host.index);
    assert!(
        matches!(&refused, TcxError::Renamed { expected, found, .. } if is_both(*expected, *found)),
        "{refused}"
    );
    for port in [&named, &meant] {
        assert_eq!(kernel::tcx(&rig, &port.host.name, TcAttachType::Ingress), Vec::<u32>::new());
    }
    assert_eq!(rig.files(rig.pin("links")), Vec::<String>::new());
}
