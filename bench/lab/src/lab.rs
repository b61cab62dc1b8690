//! The private directory that everything else lives in.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

use crate::bpf::BpfFs;
use crate::directory::{PREFIX, RUN, remove};
use crate::{Namespace, machine};

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A directory `/run/shunt-lab-<pid>-<n>` with a BPF file system in it. Make it first, so that it is dropped last.
#[derive(Debug)]
pub struct Lab {
    root: PathBuf,
    bpf: Option<BpfFs>,
    loads_all: bool,
}

impl Lab {
    /// Makes one, after sweeping away what processes that no longer live have left.
    ///
    /// # Errors
    /// When not root.
    pub fn new() -> Result<Self> {
        machine::sweep();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let root = Path::new(RUN).join(format!("{PREFIX}{}-{serial}", std::process::id()));
        std::fs::create_dir(&root).with_context(|| format!("create {} (are you root?)", root.display()))?;
        let mut lab = Self { root, bpf: None, loads_all: false };
        lab.bpf = Some(BpfFs::mount(&lab.root.join("bpf"))?);
        Ok(lab)
    }

    /// One whose agents load every program as they start, as on a node. Others load those of host ports with the first of these: few
    /// tests have any.
    ///
    /// # Errors
    /// As [`Lab::new`].
    pub fn with_all_programs() -> Result<Self> {
        let mut lab = Self::new()?;
        lab.loads_all = true;
        Ok(lab)
    }

    pub(crate) fn loads_all(&self) -> bool {
        self.loads_all
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A directory in the lab's BPF file system; it is the agent's to make.
    pub fn bpf_directory(&self, name: &str) -> PathBuf {
        self.root.join("bpf").join(name)
    }

    /// Makes a network namespace called `name`.
    ///
    /// # Errors
    /// See [`Namespace::create`].
    pub fn namespace(&self, name: &str) -> Result<Namespace> {
        Namespace::create(&self.root.join(format!("{name}.netns")))
    }

    /// Makes a directory called `name`.
    ///
    /// # Errors
    /// When it is there already.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        std::fs::create_dir(&path).with_context(|| format!("create {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.bpf = None;
        remove(&self.root);
    }
}
