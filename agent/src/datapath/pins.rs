//! The agent's directory on bpffs: `<bpffs>/v<ABI>/maps/<MAP>`, `…/programs/<program>`, `…/restricted/<program>`,
//! `…/members/<program>`, `…/interfaces/<program>`, `…/uplinks/<program>`, `…/links/<program>-<ifindex>`,
//! `…/nics/<ifindex>` and `…/sockets/<program>` (links, too); `…/watch/<MAP>` while somebody watches.
//! (bpffs takes no name with a dot.)

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use shunt_dataplane::abi::ABI_VERSION;

use super::attach::cgroup::SocketProgram;
use super::attach::hook::{Program, ProgramSet};
use super::exclusive::NOTE;
use crate::owned::{self, Own};

/// The directories of one version that are there as long as it is.
const FOLDERS: [&str; 9] =
    ["maps", "programs", "restricted", "members", "interfaces", "uplinks", "links", "nics", "sockets"];

/// The directory that is there while somebody watches.
const WATCH: &str = "watch";

/// What agents pin: of each in its own directory, by names that an older version may have had.
const PINNED: &[Own] = &[Own::file(|_| true)];

/// What agents make below the directory of one version.
pub(crate) const OF_VERSION: &[Own] =
    &[Own::directory(|name| name == WATCH || FOLDERS.contains(&name), PINNED)];

/// What agents of every version make in their directory on bpffs.
pub(crate) const OWN: &[Own] = &[
    Own::directory(|name| is_number_behind("v", name), OF_VERSION),
    Own::directory(|name| is_number_behind(NOTE, name), &[]),
];

/// Paths below the directory of one ABI version.
#[derive(Clone, Debug)]
pub struct Pins {
    root: PathBuf,
}

/// A pinned link, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedHook {
    /// The program.
    pub program: Program,
    /// The interface that it was attached to.
    pub ifindex: u32,
    /// Its pin.
    pub path: PathBuf,
}

impl Pins {
    /// Makes the directories below `bpffs`, open to root only.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(bpffs: &Path) -> io::Result<Self> {
        let pins = Self { root: bpffs.join(format!("v{ABI_VERSION}")) };
        make(bpffs)?;
        pins.recreate()?;
        fs::set_permissions(bpffs, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(pins)
    }

    /// The pins below an existing directory of any version.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Creates missing directories.
    ///
    /// # Errors
    /// The file system's.
    pub fn recreate(&self) -> io::Result<()> {
        make(&self.root)?;
        FOLDERS.into_iter().try_for_each(|name| make(&self.root.join(name)))
    }

    /// The directory of this ABI version.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a map is pinned.
    pub fn map(&self, name: &str) -> PathBuf {
        self.root.join("maps").join(name)
    }

    /// Where a program is pinned.
    pub fn program(&self, set: ProgramSet, program: Program) -> PathBuf {
        let folder = match set {
            ProgramSet::Open => "programs",
            ProgramSet::Restricted => "restricted",
            ProgramSet::Members => "members",
            ProgramSet::Interfaces => "interfaces",
            ProgramSet::Uplinks => "uplinks",
        };
        self.root.join(folder).join(program.name())
    }

    /// Where a link is pinned.
    pub fn link(&self, program: Program, ifindex: u32) -> PathBuf {
        self.root.join("links").join(format!("{}-{ifindex}", program.name()))
    }

    /// Where the link of an uplink's driver is pinned.
    pub fn nic(&self, ifindex: u32) -> PathBuf {
        self.root.join("nics").join(ifindex.to_string())
    }

    /// The interfaces whose drivers' links are pinned.
    ///
    /// # Errors
    /// The file system's.
    pub fn nics(&self) -> io::Result<Vec<u32>> {
        let mut ifindexes = Vec::new();
        let entries = match fs::read_dir(self.root.join("nics")) {
            // An older version has no such directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ifindexes),
            entries => entries?,
        };
        for entry in entries {
            ifindexes.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        Ok(ifindexes)
    }

    /// Where the link of a program on sockets is pinned.
    pub fn socket(&self, program: SocketProgram) -> PathBuf {
        self.root.join("sockets").join(program.name())
    }

    /// Where a map of the watched programs is pinned, from the first watcher to the last.
    pub fn watch(&self, name: &str) -> PathBuf {
        self.root.join(WATCH).join(name)
    }

    /// Makes the directory of those maps, without what an agent has left there that was killed.
    ///
    /// # Errors
    /// As [`Pins::remove_watch`], or the file system's.
    pub fn create_watch(&self) -> io::Result<()> {
        self.remove_watch()?;
        make(&self.root.join(WATCH))
    }

    /// Removes it; the maps go with the programs that use them.
    ///
    /// # Errors
    /// What stays: another's, or what the file system does not remove.
    pub fn remove_watch(&self) -> io::Result<()> {
        owned::remove(&self.root.join(WATCH), PINNED).all_gone()
    }

    /// Removes the directory of this version with all that agents pin there.
    ///
    /// # Errors
    /// As [`Pins::remove_watch`].
    pub fn remove(&self) -> io::Result<()> {
        owned::remove(&self.root, OF_VERSION).all_gone()
    }

    /// Whether anything of an agent's is there.
    pub fn are_there(&self) -> bool {
        owned::is_in(&self.root, OF_VERSION)
    }

    /// Every pinned link; files with other names belong to others.
    ///
    /// # Errors
    /// The file system's.
    pub fn links(&self) -> io::Result<Vec<PinnedHook>> {
        let mut hooks = Vec::new();
        for entry in fs::read_dir(self.root.join("links"))? {
            let path = entry?.path();
            let named = path.file_name().and_then(|name| name.to_str()).and_then(read_name);
            hooks.extend(named.map(|(program, ifindex)| PinnedHook { program, ifindex, path }));
        }
        Ok(hooks)
    }
}

fn make(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn is_number_behind(prefix: &str, name: &str) -> bool {
    let number = name.strip_prefix(prefix);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn read_name(name: &str) -> Option<(Program, u32)> {
    let (program, ifindex) = name.rsplit_once('-')?;
    Some((Program::from_name(program)?, ifindex.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_make_on_bpffs_is_theirs_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        Pins::create(dir.path()).unwrap().create_watch().unwrap();
        for path in ["v1/links", "netns-4026531840", "vmlinux/maps", "v2x", "cilium"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        for path in ["v1/links/from_container-7", "note"] {
            fs::write(dir.path().join(path), "").unwrap();
        }
        let mut stays = owned::sweep(dir.path(), OWN).foreign;
        stays.sort();
        assert_eq!(stays, ["cilium", "note", "v2x", "vmlinux"].map(|name| dir.path().join(name)));
        assert!(!owned::is_in(dir.path(), OWN), "all of theirs is gone");
    }

    #[test]
    fn what_is_anothers_among_watched_maps_stays_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let pins = Pins::create(dir.path()).unwrap();
        pins.create_watch().unwrap();
        fs::write(pins.watch("WATCH"), "").unwrap();
        let anothers = pins.watch("backup");
        fs::create_dir(&anothers).unwrap();
        let why = pins.remove_watch().unwrap_err().to_string();
        assert!(why.starts_with(&format!("{}: not shunt's", anothers.display())), "{why}");
        assert!(anothers.exists() && !pins.watch("WATCH").exists());
        fs::remove_dir(&anothers).unwrap();
        pins.create_watch().unwrap();
    }

    #[test]
    fn a_links_pin_names_its_program_and_interface() {
        let pins = Pins { root: "/pins/v2".into() };
        let path = pins.link(Program::ToContainer, 17);
        assert_eq!(path, Path::new("/pins/v2/links/to_container-17"));
        assert_eq!(read_name(path.file_name().unwrap().to_str().unwrap()), Some((Program::ToContainer, 17)));
        assert_eq!(read_name("somebody_elses-17"), None);
        assert_eq!(read_name("to_container-x"), None);
    }
}
