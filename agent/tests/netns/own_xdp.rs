//! A container with an XDP program of its own on its `eth0`: the program sees all that comes.

use aya::maps::HashMap;
use aya::programs::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::{Port, PortKey, StationKey};
use shunt_dataplane::wire::address::Mac;
use shunt_lab::{Protocol, Sandbox};

use crate::restrictions::tap;
use crate::stage::Stage;

/// An L2 domain that is nobody's.
const DOMAIN: u32 = 99;

/// The uplinks' program with maps of its own: it notes from whom frames have come in, and passes them on.
struct Witness {
    ebpf: Ebpf,
}

impl Witness {
    fn attach(sandbox: &Sandbox) -> Self {
        let object = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bpf/shunt.o");
        let mut ebpf = EbpfLoader::new().load_file(object).unwrap();
        let shown = sandbox.namespace().command("ip", &["-oneline", "link", "show", "dev", "eth0"]).unwrap();
        let ifindex = shown.split(':').next().unwrap().parse().unwrap();
        let key = PortKey { ifindex };
        let mut ports: HashMap<_, PortKey, Port> = ebpf.map_mut("PORTS").unwrap().try_into().unwrap();
        ports.insert(key, Port { bridge: DOMAIN, ..Port::default() }, 0).unwrap();
        let mut uplinks: HashMap<_, PortKey, Learning> = ebpf.map_mut("UPLINKS").unwrap().try_into().unwrap();
        uplinks.insert(key, Learning { mtu: 1500, ..Learning::default() }, 0).unwrap();
        sandbox
            .namespace()
            .enter(|| {
                let program: &mut Xdp = ebpf.program_mut("from_nic").unwrap().try_into().unwrap();
                program.load().unwrap();
                program.attach("eth0", XdpMode::Driver).unwrap();
            })
            .unwrap();
        Self { ebpf }
    }

    fn has_seen(&self, mac: [u8; 6]) -> bool {
        let learned: HashMap<_, StationKey, Learned> = self.ebpf.map("LEARNED").unwrap().try_into().unwrap();
        learned.get(&StationKey { bridge: DOMAIN, vid: 0, mac: Mac::new(mac) }, 0).is_ok()
    }
}

#[test]
fn an_xdp_program_of_the_containers_own_sees_what_neighbours_send() {
    let stage = Stage::set();
    let others = [1, 2].map(|index| tap(&stage.sandboxes[index]).mac());
    stage.assert_talk(1, 0);
    let witness = Witness::attach(&stage.sandboxes[0]);
    stage.node.settle().unwrap();
    stage.assert_talk(1, 0);
    assert!(witness.has_seen(others[0]));
    // Whom it asks for, too.
    let address = stage.sandboxes[2].addresses()[0];
    let echo = stage.sandboxes[2].echo(address, 7300).unwrap();
    stage.sandboxes[0].talk_to(Protocol::Udp, &echo).unwrap().chat(3, 100).unwrap();
    assert!(witness.has_seen(others[1]));
    drop(witness);
    stage.node.settle().unwrap();
    stage.assert_talk(1, 0);
}
