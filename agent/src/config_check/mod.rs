//! Whether an agent could start with a configuration file on this node, without starting one.
//!
//! The file is read by the code that a start reads it by, and what a start would open or look up is looked at. Nothing is changed, and no
//! right is needed but to read the file; what cannot be looked at without more is left to the start.

mod node;

use std::path::Path;

use serde::Serialize;

use crate::config::{Config, ConfigError, ConfigFile, Fault, Options, Origins, contradictions};

/// What came of it; the field names are the contract of `config check --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigCheck {
    /// The file.
    pub file: String,
    /// Whether an agent would start with it.
    pub usable: bool,
    /// What is wrong, by its line.
    pub faults: Vec<Fault>,
}

/// Checks a file.
pub fn check(path: &Path) -> ConfigCheck {
    match ConfigFile::open(path) {
        Ok(file) => check_start(Some(&file), &Options::default()),
        Err(error) => ConfigCheck::of(path.display().to_string(), vec![of_error(&error)]),
    }
}

/// Checks what an agent would start with: a file, if there is one, and flags, which win over it.
pub fn check_start(file: Option<&ConfigFile>, flags: &Options) -> ConfigCheck {
    let name = file.map_or_else(|| "without a file".to_owned(), |file| file.path().display().to_string());
    ConfigCheck::of(name, faults(file, flags))
}

impl ConfigCheck {
    fn of(file: String, faults: Vec<Fault>) -> Self {
        let usable = faults.iter().all(|fault| !fault.is_refused);
        Self { file, usable, faults }
    }
}

fn faults(file: Option<&ConfigFile>, flags: &Options) -> Vec<Fault> {
    let faults = file.map(ConfigFile::faults).unwrap_or_default();
    if !faults.is_empty() {
        return faults;
    }
    let options = match file.map(ConfigFile::options).transpose() {
        Ok(options) => flags.clone().or(options.unwrap_or_default()),
        Err(error) => return vec![of_error(&error)],
    };
    let origins = Origins::of(file, flags);
    let mut faults = contradictions(&options, &origins);
    let config = Config { origins, ..options.into() };
    faults.extend(config.warnings.iter().map(|warning| Fault {
        key: None,
        line: None,
        reason: warning.clone(),
        cure: "take the section out, or run a build that has it".to_owned(),
        is_refused: false,
    }));
    faults.extend(node::faults(&config));
    faults.sort_by_key(|fault| fault.line);
    faults
}

/// The file cannot be read at all.
fn of_error(error: &ConfigError) -> Fault {
    let reason = match error {
        ConfigError::Unreadable { source, .. } => source.to_string(),
        ConfigError::Invalid { source, .. } => source.message().to_owned(),
    };
    Fault::refused(None, None, reason, error.cure().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Checks a text. What is said of it, a line for each fault, after whether it is usable.
    fn checked(text: &str) -> (bool, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        fs::write(&path, text).unwrap();
        let ConfigCheck { usable, faults, .. } = check(&path);
        (usable, faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn values_that_this_node_cannot_have_are_told_by_key_line_and_cure() {
        let long = "s".repeat(108);
        for (text, usable, wanted) in [
            ("group = 'no-such-group-here'", false, "line 1: group: there is no group"),
            (&*format!("\nsocket = '/run/{long}'"), false, "line 2: socket: "),
            ("socket = '/dev/null'", false, "line 1: socket: /dev/null is there and is not a socket"),
            ("state_dir = '/dev/null'", false, "line 1: state_dir: "),
            ("bpffs = 'shunt'", false, "line 1: bpffs: "),
            ("bpffs = '/etc/shunt'", false, "line 1: bpffs: /etc is not a BPF file system"),
            ("metrics = '192.0.2.1:9477'", false, "line 1: metrics: 192.0.2.1 is no address of this node"),
            ("[kubernetes]\nnode = 'No_Node'", false, "line 2: kubernetes.node: "),
            ("cgroup = '/etc'", true, "line 1: cgroup: "),
            (
                "[uplinks.no-such-link]\negress = '1G'",
                true,
                "line 1: uplinks.no-such-link: there is no such link",
            ),
            ("[uplinks.longer-than-a-name]", true, "line 1: uplinks.longer-than-a-name: "),
            ("[uplinks.lo]", true, "line 1: uplinks.lo: its speed is unknown"),
            ("[kubernetes]\nkubeconfig = '/nonexistent'", true, "line 2: kubernetes.kubeconfig: "),
            (
                "[cluster]\nenabled = true\ncni_bin_dir = '/nonexistent'\nconflist = '/nonexistent/a'",
                true,
                "line 3: cluster.cni_bin_dir: ",
            ),
        ] {
            let (is_usable, said) = checked(text);
            assert_eq!(is_usable, usable, "{text}: {said:?}");
            assert!(said.iter().any(|line| line.starts_with(wanted)), "{text}: {said:?}");
            assert!(said.iter().all(|line| line.contains("; ")), "no cure: {text}: {said:?}");
        }
    }

    #[test]
    fn a_file_that_fits_the_node_has_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().display();
        let text = format!(
            "socket = '{dir}/agent.sock'\nstate_dir = '{dir}/state'\ngroup = 'root'\nmetrics = '127.0.0.1:9477'\n\
             [uplinks.lo]\negress = '1G'\ningress = '1G'\n"
        );
        assert_eq!(checked(&text), (true, Vec::new()));
        assert_eq!(checked(""), (true, Vec::new()));
    }

    #[test]
    fn a_flag_is_checked_in_the_place_of_the_files_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        fs::write(&path, "state_dir = '/dev/null'").unwrap();
        let file = ConfigFile::open(&path).unwrap();
        let flags = |state_dir: &str| Options { state_dir: Some(state_dir.into()), ..Options::default() };
        assert!(!check_start(Some(&file), &Options::default()).usable);
        assert!(check_start(Some(&file), &flags("/nonexistent")).usable);
        assert!(check_start(None, &Options::default()).usable);
        assert!(!check_start(None, &flags("/dev/null")).usable);
    }

    #[test]
    fn every_fault_of_the_text_is_told_before_the_node_is_looked_at() {
        let (usable, said) = checked("group = 'no-such-group-here'\nsokcet = 1\nmax_flows = true");
        assert!(!usable && said.len() == 2, "{said:?}");
        assert!(
            said[0].starts_with("line 2: sokcet: unknown field")
                && said[0].ends_with("did you mean `socket`?")
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_with_a_cure() {
        for path in ["/nonexistent/agent.toml", "/etc", "/dev/zero"] {
            let ConfigCheck { usable, faults, .. } = check(Path::new(path));
            assert!(!usable && faults.len() == 1, "{faults:?}");
        }
    }
}
