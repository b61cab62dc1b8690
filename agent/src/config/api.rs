//! `[api]` in the configuration file: CNI as a service.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de};

/// How CNI is served. No client has a say in any of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ApiOptions {
    /// Where the service listens.
    #[cfg_attr(test, schemars(extend("form" = "path")))]
    pub socket: PathBuf,
    /// The group, by name or number, whose members may ask and change nothing. The agent must be a member of it itself.
    #[cfg_attr(test, schemars(extend("otherwise" = "root only")))]
    pub group: Option<String>,
    /// Where other plugins are: `CNI_PATH`.
    #[cfg_attr(test, schemars(with = "Vec<String>", extend("form" = "list of paths")))]
    #[serde(deserialize_with = "listed")]
    pub cni_path: Vec<PathBuf>,
    /// Where results are cached, in libcni's files.
    #[cfg_attr(test, schemars(with = "String", extend("form" = "path")))]
    #[serde(deserialize_with = "absolute")]
    pub cache_dir: PathBuf,
    /// The directories in which a container's namespace may be.
    #[cfg_attr(test, schemars(with = "Vec<String>", extend("form" = "list of paths")))]
    #[serde(deserialize_with = "enclosing")]
    pub netns_dirs: Vec<PathBuf>,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            socket: PathBuf::from("/run/shunt/cni.sock"),
            group: None,
            cni_path: vec![PathBuf::from("/opt/cni/bin")],
            cache_dir: PathBuf::from("/var/lib/cni"),
            netns_dirs: ["/run/netns", "/var/run/netns"].map(PathBuf::from).into(),
        }
    }
}

/// Paths that no program takes for others: it reads them from a list with colons, in a directory of its own.
fn listed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let paths = paths(deserializer)?;
    match paths.iter().find(|path| path.to_string_lossy().contains(':')) {
        Some(path) => Err(de::Error::custom(format!("{} has a colon in it", path.display()))),
        None => Ok(paths),
    }
}

/// Directories outside of which there is something.
fn enclosing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let paths = paths(deserializer)?;
    match paths.iter().find(|path| path.parent().is_none()) {
        Some(path) => Err(de::Error::custom(format!("{} has every namespace in it", path.display()))),
        None => Ok(paths),
    }
}

/// Absolute paths, one at least.
fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let paths = Vec::<PathBuf>::deserialize(deserializer)?;
    if paths.is_empty() {
        return Err(de::Error::custom("the list names no directory"));
    }
    paths.into_iter().map(checked).collect()
}

fn absolute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    checked(PathBuf::deserialize(deserializer)?)
}

fn checked<E: de::Error>(path: PathBuf) -> Result<PathBuf, E> {
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(E::custom(format!("{} is no absolute path", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ApiOptions, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn paths_are_absolute_and_can_be_listed() {
        assert_eq!(read("").unwrap(), ApiOptions::default());
        assert_eq!(read("cni_path = ['/a', '/b']").unwrap().cni_path, ["/a", "/b"].map(PathBuf::from));
        for (text, fault) in [
            ("cni_path = ['bin']", "absolute"),
            ("cni_path = ['/a:/b']", "colon"),
            ("cni_path = []", "no directory"),
            ("cache_dir = 'cache'", "absolute"),
            ("netns_dirs = ['../netns']", "absolute"),
            ("netns_dirs = []", "no directory"),
            ("netns_dirs = ['/run/netns', '/']", "every namespace"),
            ("enabled = true", "enabled"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(fault), "{text}: {error}");
        }
    }
}
