//! An object file: its programs, linked, and its maps.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::instruction::Instruction;
use crate::map::Map;

/// The object cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no object of programs, or lacks a constant.
    #[error(transparent)]
    Parse(#[from] aya_obj::ParseError),
    /// Its parts do not fit together.
    #[error(transparent)]
    Relocate(#[from] aya_obj::relocation::EbpfRelocationError),
}

/// Programs by name, and the maps that all of them use.
#[derive(Debug)]
pub struct Object {
    pub(crate) programs: BTreeMap<String, Vec<Instruction>>,
    /// A map's place here is what programs have in place of its file descriptor.
    pub(crate) maps: Vec<Map>,
    /// What is in sections of data from the beginning, by map.
    pub(crate) data: Vec<(usize, Vec<u8>)>,
}

impl Object {
    /// Reads an object and links its programs. `constants` are put in place of those of their names, as a loader would.
    ///
    /// # Errors
    /// The file cannot be read, is no such object, or has no such constant.
    pub fn read(path: &Path, constants: &[(&str, u32)]) -> Result<Self, ObjectError> {
        let bytes =
            std::fs::read(path).map_err(|error| ObjectError::Read { path: path.to_owned(), error })?;
        let mut object = aya_obj::Object::parse(&bytes)?;
        let values: Vec<(&str, [u8; 4])> =
            constants.iter().map(|(name, value)| (*name, value.to_ne_bytes())).collect();
        let globals: HashMap<&str, (&[u8], bool)> =
            values.iter().map(|(name, value)| (*name, (value.as_slice(), true))).collect();
        object.patch_map_data(globals)?;

        let text: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
        let shapes: Vec<(String, aya_obj::Map)> = object.maps.clone().into_iter().collect();
        let places = shapes.iter().zip(0..).map(|((name, map), place)| (name.as_str(), place, map));
        object.relocate_maps(places, &text)?;
        object.relocate_calls(&text)?;

        let mut programs = BTreeMap::new();
        for (name, program) in &object.programs {
            if let Some(function) = object.functions.get(&program.function_key()) {
                programs.insert(name.clone(), function.instructions.iter().map(Instruction::from).collect());
            }
        }
        let data = shapes.iter().enumerate().filter(|(_, (_, map))| !map.data().is_empty());
        let data = data.map(|(place, (_, map))| (place, map.data().to_vec())).collect();
        let maps = shapes.into_iter().map(|(name, map)| Map::new(name, &map)).collect();
        Ok(Self { programs, maps, data })
    }

    /// The programs' names.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(String::as_str)
    }
}
