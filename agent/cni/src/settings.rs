//! What the agent's configuration decides; no client has a say in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::{Failure, codes};

/// Where things are.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the agent listens, which the plugin's procedure asks.
    pub agent_socket: PathBuf,
    /// `CNI_PATH`: where other plugins are.
    pub cni_path: Vec<PathBuf>,
    /// The cache of results, in libcni's format.
    pub cache_dir: PathBuf,
    /// Where registered networks are stored.
    pub networks_dir: PathBuf,
    /// The directories in which a sandbox's namespace may be.
    pub netns_dirs: Vec<PathBuf>,
    /// How long another plugin's program may take.
    pub program_limit: Duration,
}

impl Settings {
    /// The path of a namespace, without links and dots in its directory. `None` if that is gone.
    ///
    /// # Errors
    /// Code 8: it is in none of the allowed directories, or it is a link itself, which may lead out of them.
    pub(crate) fn namespace(&self, path: &str) -> Result<Option<PathBuf>, Failure> {
        let found = self.place(path)?;
        if found.as_ref().is_some_and(|found| found.is_symlink()) {
            let why = format!("{path} is a symbolic link: name the namespace's own file");
            return Err(Failure::new(codes::INVALID_NETNS, why));
        }
        Ok(found)
    }

    /// The same for DEL, which does what can be done without a namespace: a link is none.
    ///
    /// # Errors
    /// Code 8: it is in none of the allowed directories.
    pub(crate) fn namespace_to_leave(&self, path: &str) -> Result<Option<PathBuf>, Failure> {
        Ok(self.place(path)?.filter(|found| !found.is_symlink()))
    }

    fn place(&self, path: &str) -> Result<Option<PathBuf>, Failure> {
        let path = Path::new(path);
        let refused = || {
            let allowed: Vec<_> = self.netns_dirs.iter().map(|folder| folder.display().to_string()).collect();
            let why = format!("{} is in none of the allowed directories {allowed:?}", path.display());
            Failure::new(codes::INVALID_NETNS, format!("{why} (`netns_dirs` of the agent's `[api]`)"))
        };
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(refused()) };
        if !path.is_absolute() {
            return Err(refused());
        }
        let Ok(folder) = folder.canonicalize() else { return Ok(None) };
        let allowed = self.netns_dirs.iter().filter_map(|folder| folder.canonicalize().ok());
        if !allowed.into_iter().any(|allowed| folder.starts_with(allowed)) {
            return Err(refused());
        }
        Ok(Some(folder.join(name)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_namespace_is_in_an_allowed_directory_or_refused() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["netns/pods", "other"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink(root.join("other"), root.join("netns/out")).unwrap();
        symlink(root.join("netns"), root.join("linked")).unwrap();
        symlink(root.join("other/a"), root.join("netns/link")).unwrap();
        let settings = Settings {
            agent_socket: PathBuf::new(),
            cni_path: Vec::new(),
            cache_dir: PathBuf::new(),
            networks_dir: PathBuf::new(),
            netns_dirs: vec![root.join("linked"), root.join("missing")],
            program_limit: Duration::ZERO,
        };
        let of = |path: &str| settings.namespace(root.join(path).to_str().unwrap());
        assert_eq!(of("netns/a").unwrap(), Some(root.join("netns/a")));
        assert_eq!(of("linked/pods/a").unwrap(), Some(root.join("netns/pods/a")));
        assert_eq!(of("netns/gone/a").unwrap(), None);
        for outside in ["other/a", "netns/../other/a", "netns/out/a", "netns/..", "netns/link", "linked/link"]
        {
            assert_eq!(of(outside).unwrap_err().code, codes::INVALID_NETNS, "{outside}");
        }
        let to_leave = |path: &str| settings.namespace_to_leave(root.join(path).to_str().unwrap());
        assert_eq!(to_leave("netns/a").unwrap(), Some(root.join("netns/a")));
        assert_eq!(to_leave("netns/link").unwrap(), None, "DEL goes without it");
        assert_eq!(to_leave("other/a").unwrap_err().code, codes::INVALID_NETNS);
        for odd in ["", "/", "netns/a", "."] {
            assert_eq!(settings.namespace(odd).unwrap_err().code, codes::INVALID_NETNS, "{odd}");
        }
    }
}
