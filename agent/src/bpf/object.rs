//! The programs that this agent was built with, loaded into the kernel once at its start.

use std::collections::HashMap;

use aya::programs::{ProgramError, SchedClassifier};
use aya::{Ebpf, EbpfError, EbpfLoader};

use super::hook::Program;
use super::layout::{self, LayoutError};
use super::maps::{Maps, MapsError};
use super::pins::Pins;

/// `build.rs` puts it there.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/shunt.o"));

/// Why the programs are not in the kernel.
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

/// The loaded programs.
#[derive(Debug)]
pub struct Programs {
    ebpf: Ebpf,
    ids: HashMap<Program, u32>,
}

/// Loads the embedded object. Maps that are pinned are used again, the others are made and pinned.
///
/// # Errors
/// [`ObjectError`]; nothing that serves already is touched.
pub fn load(pins: &Pins) -> Result<(Programs, Maps), ObjectError> {
    layout::check(pins)?;
    let mut loader = EbpfLoader::new();
    for (name, _) in layout::MAPS {
        loader.map_pin_path(name, pins.map(name));
    }
    let mut ebpf = loader.load(OBJECT)?;
    let maps = Maps::take(&mut ebpf)?;
    let mut programs = Programs { ebpf, ids: HashMap::new() };
    for program in Program::ALL {
        let refused = |source| ObjectError::Program { name: program.name(), source };
        let classifier = programs.get(program)?;
        classifier.load().map_err(refused)?;
        let id = classifier.info().map_err(refused)?.id();
        programs.ids.insert(program, id);
    }
    Ok((programs, maps))
}

impl Programs {
    /// The loaded program.
    ///
    /// # Errors
    /// [`ObjectError::Missing`]: the object is not of this version.
    pub fn get(&mut self, program: Program) -> Result<&mut SchedClassifier, ObjectError> {
        let name = program.name();
        self.ebpf
            .program_mut(name)
            .and_then(|program| <&mut SchedClassifier>::try_from(program).ok())
            .ok_or(ObjectError::Missing(name))
    }

    /// The kernel's id of the loaded program.
    pub fn id(&self, program: Program) -> u32 {
        self.ids.get(&program).copied().unwrap_or_default()
    }
}
