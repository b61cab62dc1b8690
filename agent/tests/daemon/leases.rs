//! Addresses of containers that are gone are freed at a start; those of the living are kept from being given twice.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use shunt_agent_api::{BridgePort, EventKind};

use crate::events::Subscriber;
use crate::rig::{BRIDGE, Rig, eventually};
use crate::start::verb;

/// The network's directory.
fn directory(rig: &Rig) -> PathBuf {
    rig.lab.root().join("leases/net")
}

/// A container whose address is leased, as host-local writes it down.
fn leased(rig: &mut Rig, number: u8) -> BridgePort {
    let port = rig.container(number);
    let netns = rig.containers.last().unwrap().path().to_str().map(str::to_owned);
    fs::create_dir_all(directory(rig)).unwrap();
    write(rig, number, &format!("c{number}"));
    BridgePort { netns, lease_dir: Some(rig.lab.root().join("leases")), ..port }
}

fn write(rig: &Rig, number: u8, container: &str) {
    // Whole at once: nobody ever finds it empty.
    let draft = rig.lab.root().join("draft");
    fs::write(&draft, format!("{container}\r\neth0")).unwrap();
    fs::rename(draft, lease(rig, number)).unwrap();
}

fn lease(rig: &Rig, number: u8) -> PathBuf {
    directory(rig).join(format!("10.88.0.{number}"))
}

/// Changes a state file, as it lies there while the agent is dead.
fn alter(rig: &Rig, number: u8, alter: impl FnOnce(&mut serde_json::Value)) {
    let path = rig.state().join(format!("attachments/net@c{number}@eth0.json"));
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    alter(&mut record);
    fs::write(&path, record.to_string()).unwrap();
}

fn outlive(rig: &Rig, number: u8) {
    // After a reboot there is no link.
    rig.ip(&["link", "del", &format!("veth{number}")]);
    alter(rig, number, |record| record["boot"] = "00000000-0000-0000-0000-000000000000".into());
}

/// A rig with this many containers whose agent was killed.
fn killed(count: u8) -> Rig {
    let mut rig = Rig::start("auto");
    for number in 2..2 + count {
        let port = leased(&mut rig, number);
        rig.attach(&port).unwrap();
    }
    rig.kill();
    rig
}

#[test]
fn a_start_after_the_machines_frees_exactly_what_its_containers_held() {
    let mut rig = killed(4);
    (2..5).for_each(|number| outlive(&rig, number));
    // Another container has it now; another interface of the same; one that nobody ever told the agent of.
    write(&rig, 3, "other");
    fs::write(lease(&rig, 4), "c4\r\neth1").unwrap();
    write(&rig, 9, "c2");
    rig.run("auto");
    let left = rig.files(directory(&rig));
    assert_eq!(left, ["10.88.0.3", "10.88.0.4", "10.88.0.5", "10.88.0.9", "lock"]);
    let log = rig.log();
    assert!(log.contains("freed the lease: the container is gone") && log.contains("leases=1"), "{log}");
    assert_eq!(rig.status().attachments, 1);
    assert_eq!(rig.files(rig.state().join("attachments")), ["net@c5@eth0.json"]);
}

#[test]
fn a_container_of_which_neither_link_nor_namespace_is_left_is_gone_and_one_with_either_is_the_runtimes() {
    let mut rig = killed(3);
    // The first is gone whole, of the second only the link, and of the third only the namespace's name.
    drop(rig.containers.remove(0));
    rig.ip(&["link", "del", "veth3"]);
    alter(&rig, 4, |record| record["port"]["netns"] = "/run/netns/that-never-was".into());
    eventually("its link goes with the namespace", || !rig.ip(&["link"]).contains("veth2"));
    rig.run("auto");
    assert_eq!(rig.files(directory(&rig)), ["10.88.0.3", "10.88.0.4", "lock"]);
    assert_eq!(rig.status().attachments, 1);
}

#[test]
fn a_lock_that_somebody_keeps_delays_a_start_a_little_and_the_leases_are_left_to_the_runtime() {
    let mut rig = killed(1);
    outlive(&rig, 2);
    let held = fs::File::create(directory(&rig).join("lock")).unwrap();
    held.lock().unwrap();
    rig.run("auto");
    assert!(lease(&rig, 2).exists());
    let log = rig.log();
    assert!(log.contains("is held by process") && log.contains("left to DEL and GC"), "{log}");
    assert_eq!((rig.status().attachments, rig.status().healthy), (0, true));
}

#[test]
fn no_path_of_a_lease_leads_anywhere_else_and_none_keeps_an_agent_from_its_start() {
    let mut rig = killed(6);
    let elsewhere = rig.lab.root().join("elsewhere");
    fs::create_dir_all(elsewhere.join("net")).unwrap();
    let linked = rig.lab.root().join("linked");
    symlink(&elsewhere, &linked).unwrap();
    let file = rig.lab.root().join("file");
    fs::write(&file, "").unwrap();
    for number in 2..8 {
        fs::write(elsewhere.join(format!("net/10.88.0.{number}")), format!("c{number}\r\neth0")).unwrap();
    }
    let climbing = rig.lab.root().join("leases/../elsewhere");
    let paths =
        [linked.as_path(), &climbing, Path::new("../.."), &file, Path::new("/nowhere"), Path::new("")];
    for (number, path) in (2..).zip(paths) {
        outlive(&rig, number);
        alter(&rig, number, |record| record["port"]["lease_dir"] = path.to_str().unwrap().into());
    }
    rig.run("auto");
    assert_eq!(rig.files(elsewhere.join("net")).len(), 6);
    assert_eq!(rig.files(directory(&rig)).len(), 6);
    let status = rig.status();
    assert_eq!((status.attachments, status.healthy, status.warnings.len()), (0, true, 0), "{status:?}");
    assert_eq!(rig.files(rig.state().join("attachments")), [""; 0]);
    // The same for one that lives: it is served, and nothing is looked after.
    let port = BridgePort { lease_dir: Some("../..".into()), ..rig.container(9) };
    rig.attach(&port).unwrap();
    rig.check(&port).unwrap();
    assert!(rig.log().contains("leases are not checked"), "{}", rig.log());
}

#[test]
fn a_lease_that_is_taken_from_a_living_container_is_put_back_and_told_and_counted_once() {
    let mut rig = Rig::start("auto");
    let port = leased(&mut rig, 2);
    rig.attach(&port).unwrap();
    for (what, damage) in [
        ("the file", fs::remove_file as fn(PathBuf) -> std::io::Result<()>),
        ("the network's directory", |path| fs::remove_dir_all(path.parent().unwrap())),
    ] {
        let (subscriber, before) = (Subscriber::new(&rig), rig.status().repairs);
        damage(lease(&rig, 2)).unwrap();
        let heard = subscriber.hear(EventKind::Repair);
        assert_eq!(heard.detail, "the lease of its address 10.88.0.2 is missing", "{what}");
        assert_eq!(fs::read(lease(&rig, 2)).unwrap(), b"c2\r\neth0", "{what}");
        assert_eq!(rig.status().repairs, before + 1, "{what}: {}", rig.log());
        eventually("everything is consistent again", || verb(&rig, &["check"]).0 == 0);
    }
    assert!(rig.status().warnings.is_empty() && rig.status().healthy);
}

#[test]
fn check_names_a_lease_that_is_missing() {
    let mut rig = Rig::start_without_repairs();
    let port = leased(&mut rig, 2);
    rig.attach(&port).unwrap();
    assert_eq!(verb(&rig, &["check"]).0, 0);
    fs::remove_file(lease(&rig, 2)).unwrap();
    let missing = "net/c2/eth0: the lease of its address 10.88.0.2 is missing\n";
    assert_eq!(verb(&rig, &["check"]), (3, missing.to_owned()));
}

#[test]
fn an_address_that_another_container_has_meanwhile_is_left_to_it_and_told() {
    let mut rig = Rig::start("auto");
    let port = leased(&mut rig, 2);
    rig.attach(&port).unwrap();
    let subscriber = Subscriber::new(&rig);
    write(&rig, 2, "other");
    let heard = subscriber.hear(EventKind::LeaseTaken);
    let wrong = "its address 10.88.0.2 is leased to other/eth0";
    assert_eq!((heard.detail.as_str(), heard.key), (wrong, Some(port.key.clone())));
    assert_eq!(verb(&rig, &["check"]), (3, format!("net/c2/eth0: {wrong}\n")));
    let status = rig.status();
    assert_eq!(status.warnings, [format!("net/c2/eth0: {wrong}")]);
    assert_eq!((status.repairs, status.healthy), (0, true), "an ADD would work");
    rig.detach(&port).unwrap();
    assert_eq!(fs::read(lease(&rig, 2)).unwrap(), b"other\r\neth0");
    assert!(rig.status().warnings.is_empty());
}

#[test]
fn a_lease_that_was_put_back_goes_with_its_container_and_the_next_containers_stays() {
    for is_anew in [false, true] {
        let mut rig = Rig::start("auto");
        let port = leased(&mut rig, 2);
        rig.attach(&port).unwrap();
        fs::remove_file(lease(&rig, 2)).unwrap();
        eventually("it is put back", || lease(&rig, 2).exists());
        if is_anew {
            // What a DEL and the next ADD of the same container would do.
            fs::remove_file(lease(&rig, 2)).unwrap();
            write(&rig, 2, "c2");
        }
        rig.ip(&["link", "del", "veth2"]);
        eventually("its container is forgotten", || rig.status().attachments == 0);
        assert_eq!(lease(&rig, 2).exists(), is_anew);
        assert!(rig.ip(&["link"]).contains(BRIDGE));
    }
}
