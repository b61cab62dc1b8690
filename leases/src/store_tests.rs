//! Addresses are reserved once, and freed with all that tells of them.

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn an_address_is_reserved_once_and_free_again_after_its_release() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path(), "net").unwrap();
    let address = ip("fd00::2");
    assert!(store.reserve(address, Record::of("c1", "eth0")).unwrap());
    assert!(!store.reserve(address, Record::of("c2", "eth0")).unwrap());
    assert_eq!(fs::read(dir.path().join("net/fd00::2")).unwrap(), b"c1\r\neth0");
    store.release(address, Record::of("c1", "eth0")).unwrap();
    store.release(address, Record::of("c1", "eth0")).unwrap();
    assert_eq!(store.content(address), None);
}

#[test]
fn a_release_that_gets_no_further_than_the_file_leaves_no_second_name() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path(), "net").unwrap();
    let (address, record) = (ip("10.0.0.2"), Record::of("c1", "eth0"));
    store.reserve(address, record).unwrap();
    let file = dir.path().join("net/10.0.0.2");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(store.release(address, record).is_err());
    assert!(!dir.path().join(".holders/net/c1").exists());
}

#[test]
fn of_two_addresses_none_is_lost_when_a_release_is_killed_between_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let (both, record) = ([ip("10.0.0.2"), ip("fd00::2")], Record::of("c1", "eth0"));
    let store = Store::open_or_create(dir.path(), "net").unwrap();
    store.candidates(record).unwrap();
    for address in both {
        store.reserve(address, record).unwrap();
    }
    drop(store);
    let killed = Store::open(dir.path(), "net").unwrap().unwrap();
    assert!(killed.are_told.get());
    killed.release_name(both[0], record);
    // A killed one says nothing at its end.
    killed.are_told.set(false);
    drop(killed);
    let store = Store::open(dir.path(), "net").unwrap().unwrap();
    let mut candidates = store.candidates(record).unwrap();
    candidates.sort();
    assert_eq!(candidates, both);
}

#[test]
fn only_files_that_are_named_by_an_address_are_held_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path(), "net").unwrap();
    store.note_last_reserved(0, ip("10.0.0.9")).unwrap();
    fs::write(dir.path().join("net/10.0.0.2.bak"), "c1\r\neth0").unwrap();
    store.reserve(ip("10.0.0.9"), Record::of("c1", "eth0")).unwrap();
    assert_eq!(store.addresses().unwrap(), [ip("10.0.0.9")]);
}

#[test]
fn the_last_reserved_address_is_kept_for_each_range_set() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path(), "net").unwrap();
    assert_eq!(store.last_reserved(1), None);
    store.note_last_reserved(1, ip("10.0.0.200")).unwrap();
    store.note_last_reserved(1, ip("10.0.0.9")).unwrap();
    assert_eq!((store.last_reserved(0), store.last_reserved(1)), (None, Some(ip("10.0.0.9"))));
    fs::write(dir.path().join("net/last_reserved_ip.1"), "nonsense").unwrap();
    assert_eq!(store.last_reserved(1), None);
}

#[test]
fn a_record_of_any_length_is_read_whole() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path(), "net").unwrap();
    let container = "c".repeat(3000);
    store.reserve(ip("10.0.0.2"), Record::of(&container, "eth0")).unwrap();
    let content = store.content(ip("10.0.0.2")).unwrap();
    assert_eq!(Record::parse(&content), Record::of(&container, "eth0"));
}

#[test]
fn a_network_that_was_never_used_is_not_made_by_looking() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Store::open(dir.path(), "net").unwrap().is_none());
    assert_eq!(addresses_in(&dir.path().join("net")).unwrap(), Vec::<IpAddr>::new());
    assert!(!dir.path().join("net").exists());
}
