//! Who holds which address, without opening a file for each.
//!
//! host-local's files tell whether a container holds an address only to those who read all of them: three system calls for
//! every address of the network, in each ADD and DEL. So every address's file has a second name here, a hard link in
//! `<dataDir>/.holders/<network>`: `<address>@<container>`. It is not believed but checked: a second name says something
//! only as long as it leads to the same inode as the address's own file, which the listings of both directories tell, and
//! an inode that still has a name is never given to another file.
//!
//! host-local knows nothing of these names. What it writes shows as an address without one, is read as ever, and gets one;
//! what it frees shows as a name without its address, and the name goes. They may be removed at any time, and on a file
//! system without hard links there are none: then every file is read.
//!
//! Only whoever rewrites a file in place is not seen: neither we nor host-local do, and a DEL that finds nothing by the
//! names reads every file.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder},
    io::ErrorKind,
    net::IpAddr,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{DirBuilderExt, DirEntryExt},
    },
    path::{Path, PathBuf},
};

/// Between the address and the container's id. No address has it.
const SEPARATOR: u8 = b'@';

/// The second names of one network's addresses. Invariant: its owner holds the network's lock.
#[derive(Debug)]
pub(crate) struct Holders {
    directory: PathBuf,
}

/// An address's second name.
#[derive(Debug)]
struct Name {
    whole: OsString,
    inode: u64,
}

impl Name {
    fn container(&self) -> &[u8] {
        let name = self.whole.as_bytes();
        name.iter().position(|byte| *byte == SEPARATOR).map_or(&[], |at| &name[at + 1..])
    }
}

/// Where the second names of every network below `data_dir` are. They may be removed at any time.
pub fn second_names(data_dir: &Path) -> PathBuf {
    data_dir.join(".holders")
}

/// Where a network's second names are.
pub(crate) fn directory(data_dir: &Path, network: &OsStr) -> PathBuf {
    second_names(data_dir).join(network)
}

impl Holders {
    /// The second names of a network of this name.
    pub(crate) fn of(data_dir: &Path, network: &str) -> Self {
        Self::at(directory(data_dir, OsStr::new(network)))
    }

    /// The second names in this directory.
    pub(crate) fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Which of `held`, addresses with their files' inodes, the container may hold.
    ///
    /// `read` answers the container that an address's file names; it is asked about those without a valid second name.
    pub(crate) fn candidates(
        &self,
        container: &[u8],
        held: &[(IpAddr, u64)],
        file: impl Fn(IpAddr) -> PathBuf,
        read: impl Fn(IpAddr) -> Option<Vec<u8>>,
    ) -> Vec<IpAddr> {
        let mut names = self.names();
        let mut candidates = Vec::new();
        for (address, inode) in held {
            match names.remove(address) {
                Some(name) if name.inode == *inode => {
                    if name.container() == container {
                        candidates.push(*address);
                    }
                    continue;
                }
                Some(stale) => self.forget(&stale.whole),
                None => {}
            }
            let Some(holder) = read(*address) else { continue };
            self.note(*address, &holder, &file(*address));
            if holder == container {
                candidates.push(*address);
            }
        }
        for stale in names.values() {
            self.forget(&stale.whole);
        }
        candidates
    }

    /// Removes the second names that lead to no file of an address any more.
    pub(crate) fn sweep(&self, held: &[(IpAddr, u64)]) {
        let mut names = self.names();
        for (address, inode) in held {
            if names.get(address).is_some_and(|name| name.inode == *inode) {
                names.remove(address);
            }
        }
        for stale in names.values() {
            self.forget(&stale.whole);
        }
    }

    /// Gives the file of an address a second name. One that holds nobody's has none: it may be written yet.
    pub(crate) fn note(&self, address: IpAddr, container: &[u8], file: &Path) {
        let name = self.directory.join(name(address, container));
        if container.is_empty() || container.contains(&b'/') {
            return;
        }
        if let Err(error) = fs::hard_link(file, &name)
            && error.kind() == ErrorKind::NotFound
        {
            let made = DirBuilder::new().recursive(true).mode(0o755).create(&self.directory);
            let _ = made.and_then(|()| fs::hard_link(file, &name));
        }
    }

    /// Removes the second name of an address that is free again.
    pub(crate) fn release(&self, address: IpAddr, container: &[u8]) {
        self.forget(&name(address, container));
    }

    fn forget(&self, name: &OsString) {
        let _ = fs::remove_file(self.directory.join(name));
    }

    /// All second names, by address.
    fn names(&self) -> HashMap<IpAddr, Name> {
        let mut names = HashMap::new();
        // Where they cannot be listed there are none, and every file is read.
        for entry in fs::read_dir(&self.directory).into_iter().flatten().map_while(Result::ok) {
            let whole = entry.file_name();
            let address = whole.as_bytes().split(|byte| *byte == SEPARATOR).next().unwrap_or_default();
            let Some(address) = OsStr::from_bytes(address).to_str().and_then(|text| text.parse().ok()) else {
                continue;
            };
            // Two names of one address: at most one of them is that of its file, and which is not known here.
            if let Some(other) = names.insert(address, Name { whole, inode: entry.ino() }) {
                self.forget(&other.whole);
            }
        }
        names
    }
}

fn name(address: IpAddr, container: &[u8]) -> OsString {
    let mut name = address.to_string().into_bytes();
    name.push(SEPARATOR);
    name.extend(container);
    OsString::from_vec(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::Record;
    use crate::store::Store;

    const CONTAINERS: [&str; 3] = ["c1", "c2", "a/b"];

    /// What may happen to one of eight addresses between two questions.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Reserve,
        Release,
        /// host-local's own: the file alone.
        Written,
        Removed,
        RemovedAndWritten,
        /// An operator removes files.
        NamesLost,
    }

    fn steps() -> impl Strategy<Value = Vec<(Step, u8, usize)>> {
        let step = prop_oneof![
            Just(Step::Reserve),
            Just(Step::Release),
            Just(Step::Written),
            Just(Step::Removed),
            Just(Step::RemovedAndWritten),
            Just(Step::NamesLost),
        ];
        proptest::collection::vec((step, 2..10u8, 0..CONTAINERS.len()), 1..40)
    }

    /// Answers by reading every file, as host-local does.
    fn by_reading(directory: &Path, container: &str) -> Vec<IpAddr> {
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let mut held: Vec<IpAddr> = files
            .filter_map(|path| {
                let address = path.file_name()?.to_str()?.parse().ok()?;
                let content = fs::read(path).unwrap();
                (Record::parse(&content).container() == container.as_bytes()).then_some(address)
            })
            .collect();
        held.sort();
        held
    }

    proptest! {
        #[test]
        fn the_names_say_what_the_files_say_whoever_wrote_them(steps in steps()) {
            let data = tempfile::tempdir().unwrap();
            let store = Store::open_or_create(data.path(), "net").unwrap();
            let network = data.path().join("net");
            for (step, last, who) in steps {
                let address: IpAddr = [10, 0, 0, last].into();
                let (record, file) = (Record::of(CONTAINERS[who], "eth0"), network.join(address.to_string()));
                match step {
                    Step::Reserve => drop(store.reserve(address, record).unwrap()),
                    Step::Release => store.release(address, record).unwrap(),
                    Step::Written if !file.exists() => fs::write(&file, record.to_bytes()).unwrap(),
                    Step::Written => {}
                    Step::Removed => drop(fs::remove_file(&file)),
                    Step::RemovedAndWritten => {
                        let _ = fs::remove_file(&file);
                        fs::write(&file, record.to_bytes()).unwrap();
                    }
                    Step::NamesLost => drop(fs::remove_dir_all(data.path().join(".holders"))),
                }
                for container in CONTAINERS {
                    let mut said = store.held(Record::of(container, "eth0")).unwrap().candidates;
                    said.sort();
                    prop_assert_eq!(said, by_reading(&network, container), "{} after {:?}", container, step);
                }
            }
        }
    }

    #[test]
    fn a_file_with_a_second_name_is_not_read() {
        let data = tempfile::tempdir().unwrap();
        let holders = Holders::of(data.path(), "net");
        let address: IpAddr = [10, 0, 0, 2].into();
        let file = data.path().join("10.0.0.2");
        fs::write(&file, "c1\r\neth0").unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&file).unwrap());
        let ask = |read: &dyn Fn(IpAddr) -> Option<Vec<u8>>| {
            holders.candidates(b"c1", &[(address, inode)], |_| file.clone(), read)
        };
        assert_eq!(ask(&|_| Some(b"c1".to_vec())), [address]);
        assert_eq!(ask(&|_| panic!("read once more")), [address]);
    }

    #[test]
    fn a_file_that_is_empty_is_read_until_it_says_whose_it_is() {
        let data = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(data.path(), "net").unwrap();
        let file = data.path().join("net/10.0.0.2");
        fs::write(&file, "").unwrap();
        assert_eq!(store.held(Record::of("c1", "eth0")).unwrap().candidates, Vec::<IpAddr>::new());
        fs::write(&file, "c1\r\neth0").unwrap();
        assert_eq!(store.held(Record::of("c1", "eth0")).unwrap().candidates, [IpAddr::from([10, 0, 0, 2])]);
    }
}
