//! Where the programs under test are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The environment variable that names the directory of `shunt` and `shunt-agent`.
const DIRECTORY_ENV: &str = "SHUNT_BIN_DIR";

/// What the programs are called in their directory.
const PLUGIN: &str = "shunt";
const AGENT: &str = "shunt-agent";

/// Debian's directory of the reference plugins.
pub(crate) const REFERENCE: &str = "/usr/lib/cni";

/// The built programs.
#[derive(Debug, Clone)]
pub struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    /// Looks in `SHUNT_BIN_DIR`, else beside the running program, else in `release` beside its build directory.
    ///
    /// # Errors
    /// When they are not built; the error says what builds them.
    pub fn find() -> Result<Self> {
        if let Some(directory) = std::env::var_os(DIRECTORY_ENV) {
            return Self::in_directory(Path::new(&directory));
        }
        let ours = std::env::current_exe().context("find the running program")?;
        let candidates = ours.ancestors().skip(1).flat_map(|up| [up.to_path_buf(), up.join("release")]);
        for candidate in candidates {
            if let Ok(found) = Self::in_directory(&candidate) {
                return Ok(found);
            }
        }
        bail!(
            "`shunt` and `shunt-agent` are not built: run `cargo xtask build` first, or set {DIRECTORY_ENV}"
        )
    }

    /// Those in a directory.
    ///
    /// # Errors
    /// When one of them is not there.
    pub fn in_directory(directory: &Path) -> Result<Self> {
        for program in [PLUGIN, AGENT].map(|name| directory.join(name)) {
            if !program.is_file() {
                bail!("there is no {}: run `cargo xtask build` first", program.display());
            }
        }
        // A link to a relative path would be relative to the link.
        let directory = directory.canonicalize().with_context(|| format!("find {}", directory.display()))?;
        Ok(Self { directory })
    }

    /// Copies them into another directory.
    ///
    /// # Errors
    /// When one of them cannot be read, or written there.
    pub fn copy_to(&self, directory: &Path) -> Result<Self> {
        for name in [PLUGIN, AGENT] {
            let from = self.directory.join(name);
            std::fs::copy(&from, directory.join(name)).with_context(|| format!("copy {}", from.display()))?;
        }
        Self::in_directory(directory)
    }

    /// The CNI plugin.
    pub fn plugin(&self) -> PathBuf {
        self.directory.join(PLUGIN)
    }

    /// The agent.
    pub fn agent(&self) -> PathBuf {
        self.directory.join(AGENT)
    }
}
