//! Packages for a node: a `.deb`, an `.rpm` and a tar file, of the same files.
//!
//! In: the statically linked programs, the pages and completions that `shunt-pages` has written, and what is in `deploy/package`. Out: three
//! files, with the same bytes for the same programs. A package brings its files and starts the agent; what else is done on a node, the agent's
//! own verbs do: `upgrade --check`, `install-plugin` and `uninstall`.

mod about;
mod deb;
mod files;
mod rpm;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use self::about::{CONFIGURATION, PACKAGE, PLUGIN};
use self::files::Files;
use crate::origin::Origin;

/// What packages are made of.
#[derive(Clone, Debug)]
pub struct Package<'a> {
    /// The directory of the statically linked programs `shunt` and `shunt-agent`.
    pub programs: &'a Path,
    /// The directory that `shunt-pages` has written.
    pub pages: &'a Path,
    /// The checkout: its licences.
    pub checkout: &'a Path,
    /// Which version of it.
    pub origin: Origin,
}

/// The files that were made.
#[derive(Clone, Debug)]
pub struct Packages {
    /// For Debian and what is made of it.
    pub deb: PathBuf,
    /// For Fedora, RHEL, SUSE and what is made of them.
    pub rpm: PathBuf,
    /// For any other distribution.
    pub tarball: PathBuf,
}

impl Package<'_> {
    /// Makes the packages in `out`.
    ///
    /// # Errors
    /// A program or a page is missing, a program is linked dynamically, or a file cannot be written.
    pub fn make(&self, out: &Path) -> Result<Packages> {
        let files = Files::read(self.programs, self.pages, self.checkout)?;
        let version = version(&self.origin.version);
        let architecture = files.architecture;
        fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
        let names = [
            deb::file_name(&version, architecture),
            rpm::file_name(&version, architecture),
            tarball::file_name(&version, architecture),
        ];
        let [deb, rpm, tarball] = names.map(|name| out.join(name));
        write(&deb, &deb::pack(&files, &version, &self.origin)?)?;
        write(&rpm, &rpm::pack(&files, &version, &self.origin)?)?;
        write(&tarball, &tarball::pack(&files, &self.origin)?)?;
        Ok(Packages { deb, rpm, tarball })
    }
}

/// A version as Debian and RPM order them: what comes before a release has a tilde.
fn version(cargo: &str) -> String {
    cargo.replacen('-', "~", 1).replace('-', ".")
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_comes_before_its_release() {
        assert_eq!(version("1.2.3"), "1.2.3");
        assert_eq!(version("1.2.3-rc-1"), "1.2.3~rc.1");
    }
}
