//! One archive with all that helps to find out what is wrong on a node.
//!
//! Each part is had by a thread of its own, within a deadline: from the agent, as far as it answers, and from the kernel and the disk
//! without it. A part that fails or comes late is named in `manifest.json`, with the reason, and keeps no other out. Secrets and what is other
//! programs' are left out ([`secrets`], [`rules`], [`links`]); names may be hashed ([`names`]).

mod archive;
mod asked;
mod command;
mod configuration;
mod gather;
mod links;
mod log;
mod manifest;
mod names;
mod part;
mod pins;
mod places;
mod rules;
mod secrets;
mod state_files;
mod system;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

pub use archive::ArchiveError;
use archive::{Archive, PackedBytes};
use gather::gather;
use manifest::Manifest;
pub use manifest::PartReport;
use names::Names;
use part::{Job, Outcome};
pub use places::Places;
use secrets::scrub;

/// How long all parts together may take; packing them takes less than a second.
const PATIENCE: Duration = Duration::from_millis(3_800);

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Order {
    /// Where everything is.
    pub places: Places,
    /// Whether names of pods, namespaces, containers and nodes are hashed.
    pub hash_names: bool,
}

/// An archive, not written yet.
#[derive(Debug)]
pub struct Packed {
    archive: PackedBytes,
    /// What is in it, and what is not.
    pub parts: Vec<PartReport>,
    /// The node's name, hashed if names are.
    pub node: String,
    /// When it was begun.
    pub time: SystemTime,
}

impl Packed {
    /// The archive's bytes: `tar`, compressed by `gzip`.
    pub fn bytes(&self) -> &[u8] {
        self.archive.bytes()
    }

    /// Writes the archive to a new file that only its owner can read. A file or a link that is there stays as it is.
    ///
    /// # Errors
    /// [`ArchiveError`]; nothing is left behind.
    pub fn write(&self, path: &Path) -> Result<PathBuf, ArchiveError> {
        self.archive.write(path)
    }
}

/// Collects every part and packs what was had.
///
/// # Errors
/// The archive cannot be made; no part's failure is one.
pub fn pack(order: &Order) -> Result<Packed, ArchiveError> {
    let (begun, time) = (Instant::now(), SystemTime::now());
    let node = places::node_name(&order.places);
    let outcomes = gather(jobs(&order.places), begun + PATIENCE);
    let names = order.hash_names.then(|| Names::of(&node, &order.places.state_dir, &outcomes));
    let mut archive = Archive::new(time);
    let mut parts = Vec::new();
    for (file, outcome) in outcomes {
        let outcome = clean(outcome, names.as_ref());
        parts.push(archive.add(file, outcome)?);
    }
    let node = names.as_ref().map_or(node.clone(), |names| names.hide(&node));
    let manifest = Manifest::new(&node, time, begun.elapsed(), names.is_some(), &parts);
    archive.add_manifest(&manifest)?;
    Ok(Packed { archive: archive.close()?, parts, node, time })
}

fn clean(outcome: Outcome, names: Option<&Names>) -> Outcome {
    let clean = |text: String| {
        let text = scrub(&text);
        names.map_or(text.clone(), |names| names.hide(&text))
    };
    outcome.map_text(&clean)
}

/// Every part.
fn jobs(places: &Places) -> Vec<Job> {
    let mut jobs = asked::jobs(&places.socket);
    jobs.extend(links::jobs(places));
    jobs.extend(rules::jobs());
    jobs.extend(pins::jobs(&places.bpffs));
    jobs.extend(system::jobs(places));
    jobs.extend(configuration::jobs(&places.config));
    jobs.extend(state_files::jobs(&places.state_dir));
    jobs.extend(log::jobs(places.log.clone()));
    jobs
}
