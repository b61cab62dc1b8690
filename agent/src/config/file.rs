//! The configuration file: read with a bound, and all that is wrong with it.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::de::{DeTable, Deserializer};

use super::cure::{cure, reason};
use super::fault::Fault;
use super::key::{Key, Lines};
use super::{ConfigError, Options};

/// The file that is read unless another one is named; it may be absent.
pub const DEFAULT_FILE: &str = "/etc/shunt/agent.toml";

/// Bytes that a file may have. One with a hundred uplinks has some ten thousand.
const LONGEST: u64 = 1 << 20;

/// Faults that are told of one file.
const MOST_FAULTS: usize = 64;

/// A configuration file's text.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    path: PathBuf,
    text: String,
}

impl ConfigFile {
    /// Reads a regular file of UTF-8 text.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`].
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        let text = read(path);
        let text = text.map_err(|source| ConfigError::Unreadable { path: path.to_path_buf(), source })?;
        Ok(Self { path: path.to_path_buf(), text })
    }

    /// The same of [`DEFAULT_FILE`]; none if it is absent.
    ///
    /// # Errors
    /// As [`ConfigFile::open`].
    pub fn open_default() -> Result<Option<Self>, ConfigError> {
        match Self::open(Path::new(DEFAULT_FILE)) {
            Err(ConfigError::Unreadable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`], with the line of the first fault.
    pub fn options(&self) -> Result<Options, ConfigError> {
        toml::from_str(&self.text)
            .map_err(|source| ConfigError::Invalid { path: self.path.clone(), source: Box::new(source) })
    }

    /// The line of each key and section; none of a file that is no TOML.
    pub fn lines(&self) -> BTreeMap<Key, usize> {
        let table = DeTable::parse(&self.text);
        table.map(|table| Lines::of(&self.text).of_keys(table.get_ref())).unwrap_or_default()
    }

    /// Why [`ConfigFile::options`] refuses it: every line that is no TOML, else every key that cannot be used, at most 64. Each
    /// key is taken out once it is told, and the rest is read again.
    pub fn faults(&self) -> Vec<Fault> {
        self.look().1
    }

    /// What it says without the keys that [`ConfigFile::faults`] tells. Nothing of a file that is no TOML, or has more faults than are told.
    pub fn usable(&self) -> Options {
        self.look().0
    }

    fn look(&self) -> (Options, Vec<Fault>) {
        let lines = Lines::of(&self.text);
        let (mut table, errors) = DeTable::parse_recoverable(&self.text);
        if !errors.is_empty() {
            let mut faults: Vec<_> = errors.iter().map(|error| Fault::of_syntax(error, &lines)).collect();
            // What follows from a fault is in the same line.
            faults.dedup_by_key(|fault| fault.line);
            faults.truncate(MOST_FAULTS);
            return (Options::default(), faults);
        }
        let (mut faults, whole) = (Vec::new(), self.text.len());
        let options = loop {
            let error = match Options::deserialize(Deserializer::from(table.clone())) {
                Ok(options) => break options,
                Err(error) => error,
            };
            let bytes = error.span().unwrap_or(whole..whole);
            let key = Key::at(table.get_ref(), &bytes);
            let line = key.is_some().then(|| lines.number(bytes.start));
            faults.push(Fault::refused(
                key.as_ref(),
                line,
                reason(error.message()).to_owned(),
                cure(error.message()),
            ));
            let is_out = key.is_some_and(|key| key.take_out(table.get_mut()));
            if !is_out || faults.len() == MOST_FAULTS {
                break Options::default();
            }
        };
        faults.sort_by_key(|fault| fault.line);
        (options, faults)
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    shunt_regular_file::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LONGEST) {
        let reason = format!("it has more than {LONGEST} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    String::from_utf8(bytes).map_err(|error| {
        let text = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..text].iter().filter(|byte| **byte == b'\n').count();
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is no UTF-8 text"))
    })
}

impl Options {
    /// Reads a file, or [`DEFAULT_FILE`] if there is one: what can be used of it ([`ConfigFile::usable`]), and why not all of it. For
    /// verbs that are wanted with any file; an agent starts with a good one only.
    pub fn read_usable(path: Option<&Path>) -> (Self, Option<ConfigError>) {
        match path.map_or_else(ConfigFile::open_default, |path| ConfigFile::open(path).map(Some)) {
            Ok(Some(file)) => (file.usable(), file.options().err()),
            Ok(None) => (Self::default(), None),
            Err(error) => (Self::default(), Some(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn file(text: &str) -> ConfigFile {
        ConfigFile { path: "agent.toml".into(), text: text.to_owned() }
    }

    fn told(text: &str) -> Vec<(Option<String>, Option<usize>)> {
        file(text).faults().into_iter().map(|fault| (fault.key, fault.line)).collect()
    }

    #[test]
    fn every_key_that_cannot_be_used_is_told_with_its_line() {
        let text = "sokcet = '/x'\nmax_flows = 'many'\n[uplinks.eth1]\nfactor = 0.0\negress = '1Q'\nxdp = 'auto'\n\
                    [uplinks.\"eth0.5\"]\nreserve = -1\n[cluster]\npod_cidrs = ['10.0.0.0/8', '10.0.0.1']\n\
                    vxlan = { id = 0, port = 1 }\n[nonsense]\na = 1\n";
        let wanted = [
            ("sokcet", 1),
            ("max_flows", 2),
            ("uplinks.eth1.factor", 4),
            ("uplinks.eth1.egress", 5),
            ("uplinks.\"eth0.5\".reserve", 8),
            ("cluster.pod_cidrs", 10),
            ("cluster.vxlan.id", 11),
            ("nonsense", 12),
        ];
        assert_eq!(told(text), wanted.map(|(key, line)| (Some(key.to_owned()), Some(line))));
        assert!(file(text).faults().iter().all(|fault| fault.is_refused && !fault.cure.is_empty()));
    }

    #[test]
    fn a_good_file_has_no_fault_and_an_empty_one_neither() {
        for text in ["", "\n# nothing\n", "socket = '/a'\n[kubernetes]\n", "\u{feff}socket = '/a'"] {
            assert_eq!(told(text), [], "{text}");
            file(text).options().unwrap();
        }
    }

    #[test]
    fn lines_that_are_no_toml_are_told() {
        for (text, lines) in [
            ("socket = \n", vec![1]),
            ("socket '/a'\ngroup = 'x'\n[uplinks\n", vec![1, 3]),
            ("group = 'x'\ngroup = 'y'\n", vec![2]),
            ("\u{0}", vec![1]),
        ] {
            let found: Vec<_> = file(text).faults().iter().filter_map(|fault| fault.line).collect();
            assert_eq!(found, lines, "{text:?}: {:?}", file(text).faults());
            file(text).options().unwrap_err();
        }
    }

    #[test]
    fn what_can_be_used_of_a_file_is_read_beside_what_cannot() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        let text = "admision = 'warn'\nstate_dir = '/srv/shunt'\nbpffs = 5\n[cluster]\nenabled = true\n\
                    routes = 'nowhere'\ncni_bin_dir = '/usr/lib/cni'\n";
        fs::write(&path, text).unwrap();
        let (options, fault) = Options::read_usable(Some(&path));
        assert!(fault.is_some_and(|fault| fault.to_string().contains("admision")));
        assert_eq!((options.state_dir, options.bpffs), (Some("/srv/shunt".into()), None));
        let cluster = options.cluster.unwrap();
        assert!(cluster.enabled && cluster.cni_bin_dir == Path::new("/usr/lib/cni"));
        let good = file("socket = '/a'\n[uplinks.eth1]\negress = '1G'");
        assert_eq!(good.usable(), good.options().unwrap());
        let crowded: String = (0..MOST_FAULTS).map(|n| format!("key{n} = {n}\n")).collect();
        for text in ["state_dir = '/srv/shunt'\nsocket '/a'", &*(crowded + "state_dir = '/srv/shunt'")] {
            assert_eq!(file(text).usable(), Options::default(), "{text}");
        }
        assert!(Options::read_usable(Some(&path.join("none"))).1.is_some());
    }

    #[test]
    fn a_file_full_of_faults_is_told_as_far_as_anybody_reads() {
        let text: String = (0..20_000).map(|n| format!("key{n} = {n}\n")).collect();
        assert_eq!(file(&text).faults().len(), MOST_FAULTS);
    }

    #[test]
    fn what_is_no_readable_text_is_refused_with_a_cure() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        let refused = |path: &Path| {
            let error = ConfigFile::open(path).unwrap_err();
            format!("{error}; {}", error.cure())
        };
        assert!(refused(&path).contains("write the file"), "{}", refused(&path));
        assert!(refused(dir.path()).contains("no regular file"), "{}", refused(dir.path()));
        fs::write(&path, b"socket = '/a'\ngroup = '\xff'\n").unwrap();
        assert!(refused(&path).contains("line 2 is no UTF-8 text"), "{}", refused(&path));
        fs::write(&path, "#".repeat(10 << 20)).unwrap();
        assert!(refused(&path).contains("more than 1048576 bytes"), "{}", refused(&path));
        fs::write(&path, "#".repeat(1 << 20)).unwrap();
        ConfigFile::open(&path).unwrap().options().unwrap();
    }

    /// Lines of files, good ones and others.
    const LINES: [&str; 14] = [
        "socket = '/a'",
        "max_flows = 5",
        "max_flows = -5",
        "uplinks.a.factor = 2.0",
        "uplinks.a = 5",
        "[uplinks.a]",
        "[uplinks.\"a.b\"]",
        "egress = '1G'",
        "networks = ['a', 5]",
        "[kubernetes]",
        "[cluster.vxlan]",
        "id = 0",
        "vxlan = { id = 5, port = 0 }",
        "[[cluster]]",
    ];

    proptest! {
        #[test]
        fn a_file_has_faults_exactly_where_it_is_refused(
            lines in prop::collection::vec(prop::sample::select(&LINES[..]), 0..8),
            rest in "[ -~\n]{0,12}|.{0,4}",
        ) {
            let file = file(&format!("{}\n{rest}", lines.join("\n")));
            prop_assert_eq!(file.faults().is_empty(), file.options().is_ok(), "{}", file.text);
        }
    }
}
