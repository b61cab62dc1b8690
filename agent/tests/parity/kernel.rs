//! The debug build of the programs, loaded, with the golden world in its maps.

mod driver;
mod filled;
mod loader;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData, PerCpuArray, PerCpuHashMap, RingBuf};
use aya::programs::{SchedClassifier, TestRun, TestRunOptions};
use aya::{Ebpf, Pod};
use aya_log::EbpfLogger;
use loader::{loader, object};
use log::Log;
use nix::time::{ClockId, clock_gettime};
use shunt_agent::datapath::decisions;
use shunt_agent::datapath::loader::uninterrupted;
use shunt_agent::datapath::maps::Maps;
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::policer::Policer;
use shunt_dataplane::abi::share::Share;
use shunt_dataplane::abi::translation::{Translation, TupleKey};
use shunt_dataplane::abi::{
    AcceptedFlow, AddressKey, Count, Decision, DropKey, FlowKey, HandedOn, KernelFlow, KernelShare,
    LinkLocal, Marks, Owner, Port, PortCounters, PortKey, Question, Station, StationKey,
};
use zerocopy::FromBytes as _;

use crate::golden::bytes_packet::BytesPacket;
use crate::golden::{shares as golden_shares, world};

/// Bytes of `struct __sk_buff` and where the fields are that a test run takes (`linux/bpf.h`).
const CONTEXT_BYTES: usize = 192;
const MARK: usize = 8;
const INGRESS_IFINDEX: usize = 36;
const IFINDEX: usize = 40;
const GSO_SIZE: usize = 176;

/// The bits of the mark, and what an operator has put beside them.
const MARKS: Marks = Marks { judged: 0x20, checked: 0x40, outside: 0x1000 };
const OPERATORS: u32 = 0xbeef_0002;

/// The programs and their maps.
pub(crate) struct Kernel {
    ebpf: Ebpf,
    /// A program goes to the verifier with its first packet: it takes seconds on an emulated processor, and no set has
    /// packets for all of them.
    loaded: BTreeSet<&'static str>,
    /// What was in `HANDED_ON` before the last packet, on each CPU.
    handed: HandedOn,
}

/// What one run came to.
pub(crate) struct Run {
    pub(crate) decision: Decision,
    pub(crate) left: Left,
}

/// What one run has left of its packet.
pub(crate) struct Left {
    pub(crate) action: u32,
    pub(crate) mark_left: bool,
    pub(crate) checked: bool,
    pub(crate) outside: bool,
    pub(crate) bytes: Vec<u8>,
}

/// What the maps hold after a run.
pub(crate) struct Remembered {
    pub(crate) counters: BTreeMap<u32, PortCounters>,
    pub(crate) drops: BTreeMap<DropKey, Count>,
    pub(crate) kernel_flows: BTreeSet<FlowKey>,
    pub(crate) kernel_shares: BTreeMap<u32, KernelShare>,
    pub(crate) accepted: BTreeMap<FlowKey, AcceptedFlow>,
    pub(crate) opened: Vec<Question>,
    pub(crate) incoming_flows: BTreeSet<FlowKey>,
    /// Those of who is masqueraded, and the node's own.
    pub(crate) claims: [BTreeSet<TupleKey>; 2],
    pub(crate) ports: BTreeMap<PortKey, Port>,
    pub(crate) handed: HandedOn,
    pub(crate) stations: BTreeMap<StationKey, Station>,
    pub(crate) addresses: BTreeMap<AddressKey, Owner>,
    pub(crate) assured: BTreeMap<TupleKey, Translation>,
    pub(crate) flows: BTreeMap<TupleKey, Translation>,
    pub(crate) shares: BTreeMap<u32, Share>,
    pub(crate) fragments: BTreeMap<FragmentKey, FragmentTranslation>,
    pub(crate) policers: BTreeMap<u32, Policer>,
    pub(crate) link_locals: BTreeMap<PortKey, LinkLocal>,
    pub(crate) learned: BTreeMap<StationKey, Learned>,
    pub(crate) uplinks: BTreeMap<PortKey, Learning>,
}

/// The programs' clock.
pub(crate) fn boot_time() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("every kernel has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

impl Kernel {
    /// One that only writes its decisions down.
    pub(crate) fn load(restricted: u32) -> Self {
        Self::load_at_level(restricted, 0)
    }

    /// One that says them, too.
    pub(crate) fn talkative(restricted: u32) -> Self {
        Self::load_at_level(restricted, u8::MAX)
    }

    fn load_at_level(restricted: u32, level: u8) -> Self {
        let mut loader = loader();
        loader.override_global("RESTRICTED", &restricted, true);
        loader.override_global(aya_log::LEVEL, &level, true);
        let ebpf = loader.load_file(object("shunt-decisions.o")).expect("the debug build loads");
        Self { ebpf, loaded: BTreeSet::new(), handed: HandedOn::default() }
    }

    /// The programs as they are shipped, for open ports. They write no decision down, so they cannot be [`Kernel::run`].
    pub(crate) fn shipped() -> Self {
        let ebpf = loader().load_file(object("shunt.o")).expect("the shipped build loads");
        Self { ebpf, loaded: BTreeSet::new(), handed: HandedOn::default() }
    }

    /// What a program answers to a packet that it does not change, and how long it takes, by the mean of `repeat` times.
    pub(crate) fn time(
        &mut self,
        program: &'static str,
        here: u32,
        packet: &BytesPacket,
        repeat: u32,
    ) -> (u32, Duration) {
        self.ensure_loaded(program);
        let mut context = [0u8; CONTEXT_BYTES];
        context[IFINDEX..IFINDEX + 4].copy_from_slice(&here.to_ne_bytes());
        let mut options = TestRunOptions::new();
        options.data_in = Some(&packet.bytes);
        options.ctx_in = Some(&context);
        options.repeat = repeat;
        let run = classifier(&mut self.ebpf, program).test_run(options);
        let run = run.unwrap_or_else(|error| panic!("{program}: {error:?}"));
        (run.return_value, run.duration)
    }

    pub(crate) fn ensure_loaded(&mut self, program: &'static str) {
        if self.loaded.insert(program) {
            let classifier = classifier(&mut self.ebpf, program);
            let loaded = uninterrupted(|| classifier.load());
            loaded.unwrap_or_else(|error| panic!("{program}: {error:?}"));
        }
    }

    /// Hears what the programs say.
    pub(crate) fn listen<T: Log>(&mut self, logger: T) -> EbpfLogger<T> {
        decisions::listen(&mut self.ebpf, logger).expect("a ring buffer").expect("the debug build")
    }

    /// Its maps, as the agent has them.
    pub(crate) fn into_maps(mut self) -> Maps {
        Maps::take(&mut self.ebpf).expect("every map")
    }

    /// Loads the one that runs in a program's place.
    pub(crate) fn ready(&mut self, program: &'static str) -> &'static str {
        // A test run has frames only.
        let program = match program {
            "from_tunnel" => "tested_tunnel",
            "to_tunnel" => "tested_way_out",
            program => program,
        };
        self.ensure_loaded(program);
        program
    }

    /// Runs one packet through a program on the interface `here`.
    pub(crate) fn run(&mut self, program: &'static str, here: u32, packet: &BytesPacket) -> Run {
        let program = self.ready(program);
        let before = self.decision().serial;
        let left = self.test(program, here, packet);
        let decision = self.decision();
        assert_eq!(decision.serial, before + 1, "{program} decided once");
        Run { decision, left }
    }

    /// The same, whatever it says of its decision.
    fn test(&mut self, program: &'static str, here: u32, packet: &BytesPacket) -> Left {
        let mut context = [0u8; CONTEXT_BYTES];
        let mark = OPERATORS
            | if packet.judged { MARKS.judged } else { 0 }
            | if packet.checked { MARKS.checked } else { 0 }
            | if packet.outside { MARKS.outside } else { 0 };
        for (at, value) in
            [(MARK, mark), (INGRESS_IFINDEX, packet.origin), (IFINDEX, here), (GSO_SIZE, packet.segment_size)]
        {
            context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let mut context_out = context;
        self.hand_on(here, packet.handed);
        let frame = packet.clone().framed(world::mac(here), [0; 6]).bytes;
        let mut bytes = vec![0u8; frame.len() + 64];
        let mut options = TestRunOptions::new();
        options.data_in = Some(&frame);
        options.data_out = Some(&mut bytes);
        options.ctx_in = Some(&context);
        options.ctx_out = Some(&mut context_out);
        let run = classifier(&mut self.ebpf, program)
            .test_run(options)
            .unwrap_or_else(|error| panic!("{program} on {} bytes: {error:?}", packet.bytes.len()));
        bytes.truncate(run.data_size_out as usize);
        let mark = context_out[MARK..].first_chunk().copied().map(u32::from_ne_bytes).unwrap_or_default();
        let ours = MARKS.judged | MARKS.checked | MARKS.outside;
        assert_eq!(mark & !ours, OPERATORS, "{program} leaves the operator's bits of the mark alone");
        let [mark_left, checked, outside] =
            [MARKS.judged, MARKS.checked, MARKS.outside].map(|bit| mark & bit != 0);
        Left { action: run.return_value, mark_left, checked, outside, bytes }
    }

    pub(crate) fn remembered(&mut self) -> Remembered {
        let counters: PerCpuArray<_, PortCounters> = self.map("COUNTERS").try_into().expect("COUNTERS");
        let counters = (0..=world::places().count() as u32)
            .map(|slot| (slot, sum(counters.get(&slot, 0).expect("a slot").iter())))
            .filter(|(_, counters)| *counters != PortCounters::default())
            .collect();
        let drops: PerCpuHashMap<_, DropKey, Count> = self.map("DROPS").try_into().expect("DROPS");
        let drops = drops
            .iter()
            .map(|entry| entry.expect("an entry of DROPS"))
            .map(|(key, values)| {
                let total = values.iter().fold(Count::default(), |total, count| plus(total, *count));
                (key, total)
            })
            .collect();
        let mut keys =
            |map| self.entries::<FlowKey, KernelFlow>(map).into_iter().map(|(key, _)| key).collect();
        let [kernel_flows, incoming_flows] = ["KERNEL_FLOWS", "INCOMING_FLOWS"].map(&mut keys);
        let claims = ["CLAIMS", "OWN_CLAIMS"]
            .map(|map| self.entries::<TupleKey, KernelFlow>(map).into_iter().map(|(key, _)| key).collect());
        let ports = self.entries::<PortKey, Port>("PORTS").into_iter().collect();
        let place: PerCpuArray<_, HandedOn> = self.map("HANDED_ON").try_into().expect("HANDED_ON");
        let places = place.get(&0, 0).expect("the one entry");
        // The one CPU that ran the packet may have taken it, or put it there.
        let handed = places.iter().copied().find(|now| *now != self.handed).unwrap_or(self.handed);
        let stations = self.entries::<StationKey, Station>("FDB").into_iter().collect();
        let addresses = self.entries::<AddressKey, Owner>("ADDRESSES").into_iter().collect();
        let flows = self.entries::<TupleKey, Translation>("FLOWS").into_iter().collect();
        let assured = self.entries::<TupleKey, Translation>("ASSURED").into_iter().collect();
        let shares: Array<_, Share> = self.map("SHARES").try_into().expect("SHARES");
        let shares = golden_shares::shares(0)
            .into_iter()
            .map(|(slot, _)| (slot, shares.get(&slot, 0).expect("a slot")))
            .collect();
        let kernel_shares: Array<_, KernelShare> =
            self.map("KERNEL_SHARES").try_into().expect("KERNEL_SHARES");
        let kernel_shares = golden_shares::of_kernel_flows()
            .into_iter()
            .map(|(slot, _)| (slot, kernel_shares.get(&slot, 0).expect("a slot")))
            .collect();
        let accepted = self.entries::<FlowKey, AcceptedFlow>("ACCEPTED").into_iter().collect();
        let opened = self.opened();
        let fragments = self.entries::<FragmentKey, FragmentTranslation>("FRAGMENTS").into_iter().collect();
        let policers: Array<_, Policer> = self.map("POLICERS").try_into().expect("POLICERS");
        let read = |(slot, _): (u32, Policer)| (slot, policers.get(&slot, 0).expect("a slot"));
        let policers = world::policers().into_iter().map(read).collect();
        let link_locals = self.entries::<PortKey, LinkLocal>("LINK_LOCALS").into_iter().collect();
        let learned = self.entries::<StationKey, Learned>("LEARNED").into_iter().collect();
        let uplinks = self.entries::<PortKey, Learning>("UPLINKS").into_iter().collect();
        Remembered {
            counters,
            drops,
            kernel_flows,
            kernel_shares,
            accepted,
            opened,
            incoming_flows,
            claims,
            ports,
            handed,
            stations,
            addresses,
            assured,
            flows,
            shares,
            fragments,
            policers,
            link_locals,
            learned,
            uplinks,
        }
    }

    /// What `OPENED` has, which is read once.
    fn opened(&mut self) -> Vec<Question> {
        let mut ring: RingBuf<_> = self.map("OPENED").try_into().expect("OPENED");
        let mut opened = Vec::new();
        while let Some(record) = ring.next() {
            opened.push(Question::read_from_bytes(&record).expect("a question"));
        }
        opened
    }

    fn decision(&mut self) -> Decision {
        let decisions: Array<_, Decision> = self.map("DECISIONS").try_into().expect("DECISIONS");
        decisions.get(&0, 0).expect("the one decision")
    }

    fn map(&mut self, name: &str) -> &mut aya::maps::Map {
        self.ebpf.map_mut(name).unwrap_or_else(|| panic!("no map {name}"))
    }

    fn entries<K: Pod, V: Pod>(&mut self, name: &str) -> Vec<(K, V)> {
        let map: HashMap<&mut MapData, K, V> =
            self.map(name).try_into().unwrap_or_else(|e| panic!("{name}: {e}"));
        map.iter().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn replace<K: Pod, V: Pod>(&mut self, name: &str, entries: Vec<(K, V)>) {
        let old = self.entries::<K, V>(name);
        let mut map: HashMap<&mut MapData, K, V> =
            self.map(name).try_into().unwrap_or_else(|e| panic!("{name}: {e}"));
        for (key, _) in old {
            map.remove(&key).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for (key, value) in entries {
            map.insert(key, value, 0).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

fn classifier<'a>(ebpf: &'a mut Ebpf, name: &str) -> &'a mut SchedClassifier {
    let program = ebpf.program_mut(name).unwrap_or_else(|| panic!("no program {name}"));
    program.try_into().expect("a classifier")
}

fn plus(one: Count, other: Count) -> Count {
    Count { packets: one.packets + other.packets, bytes: one.bytes + other.bytes }
}

fn sum<'a>(values: impl Iterator<Item = &'a PortCounters>) -> PortCounters {
    values.fold(PortCounters::default(), |total, next| PortCounters {
        from_fast: plus(total.from_fast, next.from_fast),
        from_kernel: plus(total.from_kernel, next.from_kernel),
        from_dropped: plus(total.from_dropped, next.from_dropped),
        to_fast: plus(total.to_fast, next.to_fast),
        to_kernel: plus(total.to_kernel, next.to_kernel),
        to_dropped: plus(total.to_dropped, next.to_dropped),
    })
}
