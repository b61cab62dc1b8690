//! Second names say what the files say, whoever changes these, and say nothing where they may not.

use proptest::prelude::*;

use super::*;
use crate::record::Record;
use crate::store::Store;

const CONTAINERS: [&str; 3] = ["c1", "..", "a/b"];

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

/// Answers by the candidates' files, as callers do.
fn held(store: &Store, container: &str) -> Vec<IpAddr> {
    let mut candidates = store.candidates(Record::of(container, "eth0")).unwrap();
    candidates.retain(|address| {
        let content = store.content(*address).unwrap();
        Record::parse(&content).container() == container.as_bytes()
    });
    candidates
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
        let network = data.path().join("net");
        let open = || Store::open_or_create(data.path(), "net").unwrap();
        open();
        for (step, last, who) in steps {
            let address: IpAddr = [10, 0, 0, last].into();
            let (record, file) = (Record::of(CONTAINERS[who], "eth0"), network.join(address.to_string()));
            match step {
                Step::Reserve => drop(open().reserve(address, record).unwrap()),
                Step::Release => open().release(address, record).unwrap(),
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
                let mut said = held(&open(), container);
                said.sort();
                prop_assert_eq!(said, by_reading(&network, container), "{} after {:?}", container, step);
            }
        }
    }
}

fn reserve(data: &Path, last: u8, container: &str) -> PathBuf {
    let store = Store::open_or_create(data, "net").unwrap();
    store.candidates(Record::of(container, "eth0")).unwrap();
    assert!(store.reserve([10, 0, 0, last].into(), Record::of(container, "eth0")).unwrap());
    data.join("net").join(format!("10.0.0.{last}"))
}

fn tell(data: &Path) -> bool {
    Holders::of(data, "net").tell_of(&data.join("net"))
}

#[test]
fn names_tell_of_every_lease_until_somebody_else_changes_any() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    let first = reserve(data, 2, "c1");
    assert!(tell(data));
    // At once: within one tick of the clock by which file systems count.
    fs::write(data.join("net/10.0.0.3"), "c2\r\neth0").unwrap();
    assert!(!tell(data));
    reserve(data, 4, "c3");
    assert!(tell(data));
    fs::remove_file(&first).unwrap();
    assert!(!tell(data));
    reserve(data, 5, "c4");
    fs::remove_dir_all(data.join(".holders")).unwrap();
    assert!(!tell(data));
}

#[test]
fn of_names_that_tell_of_every_lease_only_the_containers_own_are_looked_at() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    reserve(data, 2, "c1");
    let other = reserve(data, 3, "c2");
    // Nobody does this; who reads it anyway takes the address for its own.
    fs::write(other, "c1\r\neth0").unwrap();
    let store = Store::open(data, "net").unwrap().unwrap();
    assert_eq!(store.candidates(Record::of("c1", "eth0")).unwrap(), [IpAddr::from([10, 0, 0, 2])]);
}

#[test]
fn names_of_releases_before_are_taken_away_and_what_is_somebodys_stays() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    reserve(data, 2, "c1");
    let names = data.join(".holders/net");
    fs::write(names.join("10.0.0.9@c9"), "").unwrap();
    fs::create_dir(names.join("theirs")).unwrap();
    fs::write(names.join("theirs/notes"), "").unwrap();
    fs::write(data.join("net/10.0.0.3"), "c2\r\neth0").unwrap();
    reserve(data, 4, "c3");
    assert!(!names.join("10.0.0.9@c9").exists());
    assert!(names.join("theirs/notes").exists());
    assert!(names.join("c2/10.0.0.3").exists() && names.join("c1/10.0.0.2").exists());
}

#[test]
fn names_of_leases_that_nobody_has_changed_stay_as_host_local_writes_by_turns() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    reserve(data, 2, "c1");
    reserve(data, 3, "c2");
    let kept = data.join(".holders/net/c1");
    let long_ago = TimeSpec::new(1_000_000, 1);
    set_last_change(&kept, long_ago).unwrap();
    fs::remove_file(data.join("net/10.0.0.3")).unwrap();
    fs::write(data.join("net/10.0.0.4"), "c4\r\neth0").unwrap();
    fs::create_dir(data.join(".holders/net/nobodys")).unwrap();
    reserve(data, 5, "c5");
    assert!(tell(data));
    assert_eq!(last_change(&kept).unwrap(), long_ago);
    let names = |container: &str| Holders::of(data, "net").addresses(OsStr::new(container)).unwrap().len();
    assert_eq!(["c1", "c2", "c4", "c5"].map(names), [1, 0, 1, 1]);
    for gone in ["c2", "nobodys"] {
        assert!(!data.join(".holders/net").join(gone).exists(), "{gone}");
    }
}

#[test]
fn a_file_that_is_empty_is_read_until_it_says_whose_it_is() {
    let data = tempfile::tempdir().unwrap();
    let open = || Store::open_or_create(data.path(), "net").unwrap();
    open();
    let file = data.path().join("net/10.0.0.2");
    fs::write(&file, "").unwrap();
    assert_eq!(held(&open(), "c1"), Vec::<IpAddr>::new());
    assert!(tell(data.path()));
    fs::write(&file, "c1\r\neth0").unwrap();
    assert!(tell(data.path()));
    assert_eq!(held(&open(), "c1"), [IpAddr::from([10, 0, 0, 2])]);
    open().release([10, 0, 0, 2].into(), Record::of("c1", "eth0")).unwrap();
    assert_eq!(Holders::of(data.path(), "net").candidates(b"c1").unwrap(), Vec::<IpAddr>::new());
}

#[test]
fn names_that_are_removed_during_an_add_tell_of_nothing() {
    let data = tempfile::tempdir().unwrap();
    let (data, record) = (data.path(), Record::of("c1", "eth0"));
    reserve(data, 9, "c2");
    let store = Store::open(data, "net").unwrap().unwrap();
    assert!(store.reserve([10, 0, 0, 2].into(), record).unwrap());
    fs::remove_dir_all(second_names(data)).unwrap();
    assert!(store.reserve([10, 0, 0, 3].into(), record).unwrap());
    drop(store);
    let store = Store::open(data, "net").unwrap().unwrap();
    assert_eq!(held(&store, "c1").len(), 2);
}

#[test]
fn what_cannot_be_read_now_is_read_each_time() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    reserve(data, 2, "c1");
    std::os::unix::fs::symlink("/nowhere", data.join("net/10.0.0.3")).unwrap();
    fs::create_dir(data.join("net/10.0.0.4")).unwrap();
    let store = Store::open(data, "net").unwrap().unwrap();
    store.candidates(Record::of("c1", "eth0")).unwrap();
    drop(store);
    assert!(tell(data));
    assert!(data.join(".holders/net/@/10.0.0.3").symlink_metadata().is_ok());
}

#[test]
fn names_that_cannot_be_listed_are_not_believed() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    reserve(data, 2, "c1");
    let names = data.join(".holders/net/c1");
    fs::remove_dir_all(&names).unwrap();
    fs::write(&names, "").unwrap();
    Holders::of(data, "net").sign(&data.join("net")).unwrap();
    let store = Store::open(data, "net").unwrap().unwrap();
    assert_eq!(store.candidates(Record::of("c1", "eth0")).unwrap(), [IpAddr::from([10, 0, 0, 2])]);
}

#[test]
fn whoever_cannot_name_a_file_is_read_each_time_and_the_others_are_named() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path();
    reserve(data, 2, "c1");
    fs::write(data.join("net/10.0.0.3"), "x".repeat(300)).unwrap();
    fs::write(data.join("net/10.0.0.4"), "\0\0").unwrap();
    reserve(data, 5, "c1");
    assert!(tell(data));
    for last in [3, 4] {
        assert!(data.join(format!(".holders/net/@/10.0.0.{last}")).exists());
    }
}
