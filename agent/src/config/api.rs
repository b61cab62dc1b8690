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
    #[cfg_attr(test, schemars(extend("form" = "path")))]
    pub cache_dir: PathBuf,
    /// The directories in which a container's namespace may be.
    #[cfg_attr(test, schemars(with = "Vec<String>", extend("form" = "list of paths")))]
    #[serde(deserialize_with = "absolute")]
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
    let paths = absolute(deserializer)?;
    match paths.iter().find(|path| path.to_string_lossy().contains(':')) {
        Some(path) => Err(de::Error::custom(format!("{} has a colon in it", path.display()))),
        None => Ok(paths),
    }
}

fn absolute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let paths = Vec::<PathBuf>::deserialize(deserializer)?;
    match paths.iter().find(|path| !path.is_absolute()) {
        Some(path) => Err(de::Error::custom(format!("{} is no absolute path", path.display()))),
        None => Ok(paths),
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
            ("netns_dirs = ['../netns']", "absolute"),
            ("enabled = true", "enabled"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(fault), "{text}: {error}");
        }
    }
}
