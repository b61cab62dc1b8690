//! Loads the embedded programs: at the start, and once more for each set that the first restricted, VLAN or uplink port needs.

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::panic::resume_unwind;
use std::{fs, io, thread};

use aya::maps::{Map, MapError};
use aya::programs::{CgroupSockAddr, ProgramError, ProgramInfo, SchedClassifier, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader};
use flate2::read::GzDecoder;
use shunt_netlink::namespace_cookie;

use super::attach::cgroup::SocketProgram;
use super::attach::hook::{Program, ProgramSet};
use super::attach::xdp;
use super::decisions;
use super::layout::{self, LayoutError};
use super::maps::{Maps, MapsError};
use super::pins::Pins;
use super::room;

/// Copied by `build.rs`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/shunt.o"));

/// The build that tells what becomes of packets. Compressed by `build.rs`: few agents ever load it.
static WATCHED_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shunt-watched.o.gz"));

/// The maps of the watched build that the agent uses, by which its sets are one.
const WATCH_MAPS: [&str; 4] = ["WATCH", "WATCHED_PORTS", "WATCH_BUDGETS", "WATCHED"];

/// How often a signal may interrupt the verification of one program.
const INTERRUPTIONS: u32 = 5;

/// Why the programs cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// A pinned map is of another shape.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The object or a map was refused.
    #[error("the programs' object cannot be loaded: {0}")]
    Load(#[from] EbpfError),
    /// A map is missing or of another type.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The watched build cannot be unpacked.
    #[error("the watched programs' object cannot be unpacked: {0}")]
    Packed(io::Error),
    /// The object lacks a program.
    #[error("the programs' object has no program {0}")]
    Missing(&'static str),
    /// The verifier refused a program.
    #[error("program {name}: {source}")]
    Program {
        /// The program.
        name: &'static str,
        /// aya's word, with the verifier's log.
        source: ProgramError,
    },
}

/// Which of the builds is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// The one that packets meet.
    Plain,
    /// The one that is attached while somebody watches.
    Watched {
        /// Whether packets are told that are not dropped.
        capturing: bool,
    },
}

/// The loaded programs.
#[derive(Debug)]
pub struct Programs {
    ebpf: Ebpf,
    pins: Pins,
    set: ProgramSet,
    build: Build,
    /// The maps that are shared between agents, by their ids.
    shared: BTreeSet<u32>,
    /// Programs of an earlier agent that equal this agent's: they stay, with their ids.
    earlier: HashMap<Program, SchedClassifier>,
    ids: HashMap<Program, u32>,
}

/// Loads the embedded object. Pinned maps and equal pinned programs are reused, others are created and
/// pinned. `flows`: the number of translated connections. `late`: load the programs of host ports with the
/// first host port, unless an earlier agent has loaded them.
///
/// # Errors
/// [`ObjectError`]; attached programs are not changed.
pub fn load(pins: &Pins, flows: Option<u32>, late: bool) -> Result<(Programs, Maps), ObjectError> {
    layout::check(pins)?;
    let mut ebpf = open(pins, ProgramSet::Open, flows, Build::Plain)?;
    let maps = Maps::take(&mut ebpf)?;
    decisions::follow(&mut ebpf);
    let early = Program::OF_HOST_PORTS
        .into_iter()
        .filter(|program| !late || pins.program(ProgramSet::Open, *program).exists());
    let wanted: Vec<_> = Program::OF_NODES.into_iter().chain(early).collect();
    Ok((Programs::load(ebpf, pins, ProgramSet::Open, Build::Plain, &wanted)?, maps))
}

/// Loads the embedded object again for another set. Call [`load`] first: it creates the maps.
///
/// # Errors
/// As [`load`].
pub fn load_set(pins: &Pins, set: ProgramSet) -> Result<Programs, ObjectError> {
    let ebpf = open(pins, set, None, Build::Plain)?;
    let wanted: &[Program] = match set {
        ProgramSet::Open | ProgramSet::Members => &Program::OF_PORTS,
        ProgramSet::Restricted => &Program::OF_RESTRICTED,
        ProgramSet::Interfaces => &Program::OF_VLANS,
        ProgramSet::Uplinks => &Program::OF_UPLINKS,
    };
    Programs::load(ebpf, pins, set, Build::Plain, wanted)
}

/// Loads the watched object for a set; its programs are loaded as they are wanted, and are never pinned. Call [`load`] and
/// [`Pins::create_watch`] first.
///
/// # Errors
/// As [`load`].
pub fn load_watched(pins: &Pins, set: ProgramSet, capturing: bool) -> Result<Programs, ObjectError> {
    let build = Build::Watched { capturing };
    Programs::load(open(pins, set, None, build)?, pins, set, build, &[])
}

fn open(pins: &Pins, set: ProgramSet, flows: Option<u32>, build: Build) -> Result<Ebpf, ObjectError> {
    let mut loader = EbpfLoader::new();
    // The programs read no structure of the kernel's: its types are parsed, and not kept.
    loader.btf(None);
    for (name, _) in layout::MAPS {
        loader.map_pin_path(name, pins.map(name));
    }
    // Every set of the debug build writes to this map, and so may an earlier agent's.
    loader.map_pin_path(decisions::MAP, pins.map(decisions::MAP));
    let restricted = match set {
        ProgramSet::Open | ProgramSet::Interfaces | ProgramSet::Uplinks => 0u32,
        ProgramSet::Restricted => 1,
        ProgramSet::Members => 2,
    };
    // Without a cookie the programs on sockets treat no socket as the node's.
    for name in ["ASSURED", "FLOWS"] {
        loader.map_max_entries(name, room::flow_entries(flows));
    }
    let netns = namespace_cookie::own().unwrap_or_default();
    loader.override_global("RESTRICTED", &restricted, true).override_global("NETNS", &netns, true);
    let Build::Watched { capturing } = build else { return Ok(loader.load(OBJECT)?) };
    for name in WATCH_MAPS {
        loader.map_pin_path(name, pins.watch(name));
    }
    let capturing = u32::from(capturing);
    let mut object = Vec::new();
    GzDecoder::new(WATCHED_OBJECT).read_to_end(&mut object).map_err(ObjectError::Packed)?;
    Ok(loader.override_global("CAPTURING", &capturing, true).load(&object)?)
}

impl Programs {
    fn load(
        ebpf: Ebpf,
        pins: &Pins,
        set: ProgramSet,
        build: Build,
        wanted: &[Program],
    ) -> Result<Self, ObjectError> {
        let shared = layout::ids(pins)?.into_iter().map(|(_, id)| id).collect();
        let (earlier, ids) = (HashMap::new(), HashMap::new());
        let mut programs = Self { ebpf, pins: pins.clone(), set, build, shared, earlier, ids };
        verify(&mut programs.ebpf, wanted)?;
        for program in wanted {
            programs.load_one(*program)?;
        }
        Ok(programs)
    }

    fn load_one(&mut self, program: Program) -> Result<(), ObjectError> {
        let refused = |source| ObjectError::Program { name: program.name(), source };
        let ours = classifier(&mut self.ebpf, program)?;
        if ours.fd().is_err() {
            uninterrupted(|| ours.load()).map_err(refused)?;
        }
        let info = ours.info().map_err(refused)?;
        if self.build != Build::Plain {
            self.ids.insert(program, info.id());
            return Ok(());
        }
        let pin = self.pins.program(self.set, program);
        if let Ok(earlier) = SchedClassifier::from_pin(&pin)
            && let found = earlier.info().map_err(refused)?
            && is_same(&found, &info, &self.shared).map_err(refused)?
        {
            self.ids.insert(program, found.id());
            self.earlier.insert(program, earlier);
            return Ok(());
        }
        match fs::remove_file(&pin) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error.into())),
            _ => {}
        }
        ours.pin(&pin).map_err(|error| refused(io::Error::other(error).into()))?;
        self.ids.insert(program, info.id());
        Ok(())
    }

    /// A program, loaded now if it is not yet.
    ///
    /// # Errors
    /// [`ObjectError::Missing`]: the object is not of this version; [`ObjectError::Program`].
    pub fn get(&mut self, program: Program) -> Result<&mut SchedClassifier, ObjectError> {
        if !self.ids.contains_key(&program) {
            self.load_one(program)?;
        }
        match self.earlier.get_mut(&program) {
            Some(earlier) => Ok(earlier),
            None => classifier(&mut self.ebpf, program),
        }
    }

    /// The program of uplinks' drivers and its id, loaded now if it is not yet.
    ///
    /// # Errors
    /// [`ObjectError::Missing`], [`ObjectError::Program`].
    pub fn native(&mut self) -> Result<(&mut Xdp, u32), ObjectError> {
        let refused = |source| ObjectError::Program { name: xdp::NAME, source };
        let found = self.ebpf.program_mut(xdp::NAME).ok_or(ObjectError::Missing(xdp::NAME))?;
        let loaded: &mut Xdp = found.try_into().map_err(refused)?;
        if loaded.fd().is_err() {
            uninterrupted(|| loaded.load()).map_err(refused)?;
        }
        let id = loaded.info().map_err(refused)?.id();
        Ok((loaded, id))
    }

    /// A program on sockets and its id, loaded now if it is not yet.
    ///
    /// # Errors
    /// [`ObjectError::Missing`], [`ObjectError::Program`].
    pub fn socket(&mut self, program: SocketProgram) -> Result<(&mut CgroupSockAddr, u32), ObjectError> {
        let name = program.name();
        let refused = |source| ObjectError::Program { name, source };
        let found = self.ebpf.program_mut(name).ok_or(ObjectError::Missing(name))?;
        let loaded: &mut CgroupSockAddr = found.try_into().map_err(refused)?;
        if loaded.fd().is_err() {
            uninterrupted(|| loaded.load()).map_err(refused)?;
        }
        let id = loaded.info().map_err(refused)?.id();
        Ok((loaded, id))
    }

    /// Takes a map out of the object.
    ///
    /// # Errors
    /// [`MapsError`]: the object is not of this version.
    pub fn map<M: TryFrom<Map, Error = MapError>>(&mut self, name: &'static str) -> Result<M, MapsError> {
        let map = self.ebpf.take_map(name).ok_or(MapsError::Missing(name))?;
        M::try_from(map).map_err(|source| MapsError::Map { name, source })
    }

    /// The kernel's id of the loaded program.
    pub fn id(&self, program: Program) -> u32 {
        self.ids.get(&program).copied().unwrap_or_default()
    }
}

/// Loads a program again where a signal has interrupted its verification (`bpf_check`, kernel/bpf/verifier.c).
///
/// # Errors
/// The kernel's, and [`io::ErrorKind::WouldBlock`] after too many signals.
pub fn uninterrupted(mut load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), ProgramError> {
    let is_interrupted = |error: &ProgramError| match error {
        ProgramError::LoadError { io_error, .. } => io_error.kind() == io::ErrorKind::WouldBlock,
        _ => false,
    };
    for _ in 0..INTERRUPTIONS {
        match load() {
            Err(error) if is_interrupted(&error) => {}
            loaded => return loaded,
        }
    }
    load()
}

/// Has the kernel verify programs, all at a time: that is most of what the start of an agent takes. Those for which there is no thread
/// are left to [`Programs::load_one`].
///
/// # Errors
/// [`ObjectError::Program`].
fn verify(ebpf: &mut Ebpf, wanted: &[Program]) -> Result<(), ObjectError> {
    thread::scope(|scope| {
        let mut begun = Vec::new();
        for (name, found) in ebpf.programs_mut() {
            let program = Program::from_name(name).filter(|program| wanted.contains(program));
            let (Some(program), Ok(ours)) = (program, <&mut SchedClassifier>::try_from(found)) else {
                continue;
            };
            let refused = move |source| ObjectError::Program { name: program.name(), source };
            let load = move || uninterrupted(|| ours.load()).map_err(refused);
            begun.extend(thread::Builder::new().name("verifier".into()).spawn_scoped(scope, load).ok());
        }
        begun.into_iter().try_for_each(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn classifier(ebpf: &mut Ebpf, program: Program) -> Result<&mut SchedClassifier, ObjectError> {
    let missing = ObjectError::Missing(program.name());
    ebpf.program_mut(program.name()).and_then(|found| found.try_into().ok()).ok_or(missing)
}

/// Whether two programs have the same instructions and the same maps, as far as maps are shared between agents.
fn is_same(one: &ProgramInfo, other: &ProgramInfo, shared: &BTreeSet<u32>) -> Result<bool, ProgramError> {
    let maps = |info: &ProgramInfo| -> Result<BTreeSet<u32>, ProgramError> {
        Ok(info.map_ids()?.unwrap_or_default().into_iter().filter(|id| shared.contains(id)).collect())
    };
    Ok(one.tag() == other.tag() && maps(one)? == maps(other)?)
}
