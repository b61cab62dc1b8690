//! The agent's configuration: a TOML file, and flags that override it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Deserialize;

use shunt_dataplane::abi::{DEFAULT_MARK_MASK, Marks};

use crate::capacity::UplinkOptions;
use crate::kubernetes::KubernetesOptions;

/// The default state directory.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/shunt";

/// The file that is read unless another one is named; it may be absent.
pub const DEFAULT_FILE: &str = "/etc/shunt/agent.toml";

/// The default directory for pins.
pub const DEFAULT_BPFFS: &str = "/sys/fs/bpf/shunt";

/// From this likeness on (Jaro-Winkler) an unknown key is taken for a slip.
const LIKE: f64 = 0.8;

/// How programs are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum AttachMode {
    /// tcx where the kernel has it, else clsact.
    #[default]
    Auto,
    /// tcx links only.
    Tcx,
    /// Filters of the clsact qdisc only.
    Clsact,
}

/// What admission does about a reservation that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Admission {
    /// Nothing.
    #[default]
    Off,
    /// A warning.
    Warn,
    /// The ADD fails.
    Enforce,
}

/// Who begins masqueraded connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Masquerading {
    /// The programs, unless there are external filters for forwarded packets; else the kernel.
    #[default]
    Auto,
    /// The kernel.
    Kernel,
    /// The programs, even with external filters.
    Programs,
}

/// Whether grace periods are expedited while programs are attached and detached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GracePeriodMode {
    /// Unless processors are isolated, or `rcu_normal` is set.
    #[default]
    Auto,
    /// Never.
    Normal,
    /// Always.
    Expedite,
}

impl fmt::Display for GracePeriodMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Normal => "normal",
            Self::Expedite => "expedite",
        })
    }
}

/// The bits of packets' marks that are shunt's: at least three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct MarkMask(Marks);

impl MarkMask {
    /// The bits.
    pub const fn marks(self) -> Marks {
        self.0
    }
}

impl Default for MarkMask {
    fn default() -> Self {
        Self(Marks::of(DEFAULT_MARK_MASK).unwrap_or_default())
    }
}

impl TryFrom<u32> for MarkMask {
    type Error = String;

    fn try_from(mask: u32) -> Result<Self, String> {
        let marks = Marks::of(mask);
        marks.map(Self).ok_or_else(|| format!("mark_mask has fewer than three bits: {mask:#x}"))
    }
}

/// Options of the file and of the flags; absent means the default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The Unix socket.
    pub socket: Option<PathBuf>,
    /// The group whose members may send queries but no changes: its name or number.
    pub group: Option<String>,
    /// The state directory.
    pub state_dir: Option<PathBuf>,
    /// The directory for pins, directly below a BPF file system's mount point.
    pub bpffs: Option<PathBuf>,
    /// The cgroup2 directory that host programs hook connections at.
    pub cgroup: Option<PathBuf>,
    /// The maximum number of translated connections.
    pub max_flows: Option<u32>,
    /// The bits of packets' marks that are shunt's.
    pub mark_mask: Option<MarkMask>,
    /// Where metrics are served, as `ADDR:PORT`.
    pub metrics: Option<SocketAddr>,
    /// What admission does.
    pub admission: Option<Admission>,
    /// How programs are attached.
    pub attach: Option<AttachMode>,
    /// Who begins masqueraded connections.
    pub masquerade: Option<Masquerading>,
    /// Whether grace periods are expedited while programs are attached and detached.
    pub grace_periods: Option<GracePeriodMode>,
    /// Declared uplinks by interface name.
    #[serde(default)]
    pub uplinks: BTreeMap<String, UplinkOptions>,
    /// How the uplinks' bandwidth is published to Kubernetes, if it is.
    pub kubernetes: Option<KubernetesOptions>,
}

/// A configuration file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The file system's word.
        source: io::Error,
    },
    /// It is not TOML, or has an unknown key or value.
    #[error("{path}: {source}{}", nearest(source))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
}

impl Options {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// [`ConfigError`], with the line of an unknown key.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_path_buf(), source })?;
        toml::from_str(&text)
            .map_err(|source| ConfigError::Invalid { path: path.to_path_buf(), source: Box::new(source) })
    }

    /// Reads [`DEFAULT_FILE`]; every option is absent without it.
    ///
    /// # Errors
    /// As [`Options::read`].
    pub fn read_default() -> Result<Self, ConfigError> {
        match Self::read(Path::new(DEFAULT_FILE)) {
            Err(ConfigError::Unreadable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            read => read,
        }
    }

    /// Fills absent options from `fallback`.
    pub fn or(self, fallback: Self) -> Self {
        Self {
            socket: self.socket.or(fallback.socket),
            group: self.group.or(fallback.group),
            state_dir: self.state_dir.or(fallback.state_dir),
            bpffs: self.bpffs.or(fallback.bpffs),
            cgroup: self.cgroup.or(fallback.cgroup),
            max_flows: self.max_flows.or(fallback.max_flows),
            mark_mask: self.mark_mask.or(fallback.mark_mask),
            metrics: self.metrics.or(fallback.metrics),
            admission: self.admission.or(fallback.admission),
            attach: self.attach.or(fallback.attach),
            masquerade: self.masquerade.or(fallback.masquerade),
            grace_periods: self.grace_periods.or(fallback.grace_periods),
            // A flag only names an uplink; the file has its options.
            uplinks: self.uplinks.into_iter().chain(fallback.uplinks).collect(),
            kubernetes: self.kubernetes.or(fallback.kubernetes),
        }
    }
}

/// The known key or value that is most like an unknown one, as a question; nothing where none is like it. serde names the
/// unknown one and then all that it knows, each between backticks.
fn nearest(error: &toml::de::Error) -> String {
    let message = error.message();
    if !message.starts_with("unknown ") {
        return String::new();
    }
    let mut words = message.split('`').skip(1).step_by(2);
    let Some(unknown) = words.next() else { return String::new() };
    let likeness = |word: &str| strsim::jaro_winkler(unknown, word);
    let nearest = words.max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    nearest
        .filter(|word| likeness(word) > LIKE)
        .map(|word| format!("did you mean `{word}`?"))
        .unwrap_or_default()
}

/// The agent's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The Unix socket.
    pub socket: PathBuf,
    /// The group whose members may send queries; none: root only.
    pub group: Option<String>,
    /// The state directory.
    pub state_dir: PathBuf,
    /// The directory for pins.
    pub bpffs: PathBuf,
    /// The cgroup2 directory whose processes reach host ports; none: all there are.
    pub cgroup: Option<PathBuf>,
    /// The maximum number of translated connections; none: by the machine's memory.
    pub max_flows: Option<u32>,
    /// The bits of packets' marks that are shunt's.
    pub mark_mask: MarkMask,
    /// How programs are attached.
    pub attach: AttachMode,
    /// Who begins masqueraded connections.
    pub masquerade: Masquerading,
    /// Whether grace periods are expedited while programs are attached and detached.
    pub grace_periods: GracePeriodMode,
    /// What admission does.
    pub admission: Admission,
    /// Declared uplinks by interface name.
    pub uplinks: BTreeMap<String, UplinkOptions>,
    /// Where metrics are served, if they are.
    pub metrics: Option<SocketAddr>,
    /// How the uplinks' bandwidth is published to Kubernetes, if it is.
    pub kubernetes: Option<KubernetesOptions>,
    /// Whether changes by others are repaired.
    pub repairs: bool,
    /// Whether the programs of host ports are loaded with the first host port.
    pub late_programs: bool,
    /// Requested options that this build lacks.
    pub warnings: Vec<String>,
}

impl From<Options> for Config {
    fn from(options: Options) -> Self {
        let not_built = [("kubernetes", options.kubernetes.is_some() && !cfg!(feature = "kubernetes"))];
        Self {
            socket: options.socket.unwrap_or_else(|| shunt_agent_api::DEFAULT_SOCKET.into()),
            group: options.group,
            state_dir: options.state_dir.unwrap_or_else(|| DEFAULT_STATE_DIR.into()),
            bpffs: options.bpffs.unwrap_or_else(|| DEFAULT_BPFFS.into()),
            cgroup: options.cgroup,
            max_flows: options.max_flows,
            mark_mask: options.mark_mask.unwrap_or_default(),
            attach: options.attach.unwrap_or_default(),
            masquerade: options.masquerade.unwrap_or_default(),
            grace_periods: options.grace_periods.unwrap_or_default(),
            admission: options.admission.unwrap_or_default(),
            uplinks: options.uplinks,
            metrics: options.metrics,
            kubernetes: options.kubernetes,
            repairs: true,
            late_programs: false,
            warnings: not_built
                .into_iter()
                .filter(|(_, asked)| *asked)
                .map(|(option, _)| {
                    format!("the option {option} is not built in this version and does nothing")
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_defaults() {
        let file: Options =
            toml::from_str("socket = '/file'\nstate_dir = '/state'\nattach = 'clsact'").unwrap();
        let flags = Options { socket: Some("/flag".into()), ..Options::default() };
        let config = Config::from(flags.or(file));
        assert_eq!(config.socket, Path::new("/flag"));
        assert_eq!(config.state_dir, Path::new("/state"));
        assert_eq!(config.bpffs, Path::new(DEFAULT_BPFFS));
        assert_eq!(config.attach, AttachMode::Clsact);
    }

    #[test]
    fn a_flag_that_names_an_uplink_leaves_what_the_file_says_of_it() {
        let file: Options = toml::from_str("[uplinks.eth1]\negress = '1G'").unwrap();
        let named = ["eth1", "eth2"].map(|name| (name.to_owned(), UplinkOptions::default()));
        let flags = Options { uplinks: named.into(), ..Options::default() };
        let uplinks = Config::from(flags.or(file)).uplinks;
        assert_eq!(uplinks["eth1"].egress, Some(crate::capacity::Quantity(1_000_000_000)));
        assert_eq!(uplinks["eth2"], UplinkOptions::default());
    }

    #[test]
    fn an_unknown_key_is_named_in_the_error_with_the_one_that_was_meant() {
        for (text, unknown, meant) in [
            ("sokcet = '/run/x'", "`sokcet`", "did you mean `socket`?"),
            ("[uplinks.eth1]\negres = '1G'", "`egres`", "did you mean `egress`?"),
            ("masquerade = 'kernal'", "`kernal`", "did you mean `kernel`?"),
            ("zzz = 1", "`zzz`", ""),
        ] {
            let error = toml::from_str::<Options>(text).unwrap_err();
            assert!(error.to_string().contains(unknown), "{error}");
            assert_eq!(nearest(&error), meant, "{error}");
        }
    }

    #[test]
    fn the_mask_of_marks_has_three_bits_at_least() {
        let of = |text: &str| toml::from_str::<Options>(text).map(|options| Config::from(options).mark_mask);
        assert_eq!(of("").unwrap().marks(), Marks::of(DEFAULT_MARK_MASK).unwrap());
        assert_eq!(of("mark_mask = 0x0e00_0000").unwrap().marks(), Marks::of(0x0e00_0000).unwrap());
        assert!(of("mark_mask = 0x3").unwrap_err().to_string().contains("three bits"));
    }

    #[test]
    fn what_this_version_does_not_do_is_said() {
        let options: Options = toml::from_str(
            "metrics = '127.0.0.1:9000'\n[uplinks.eth1]\negress = '1G'\nxdp = 'native'\n[kubernetes]",
        )
        .unwrap();
        let config = Config::from(options);
        assert!(config.uplinks.contains_key("eth1"));
        assert_eq!(config.metrics, Some(([127, 0, 0, 1], 9000).into()));
        let not_built = usize::from(!cfg!(feature = "kubernetes"));
        assert_eq!(config.warnings.len(), not_built, "{:?}", config.warnings);
    }
}
