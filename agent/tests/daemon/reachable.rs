//! A socket whose file is gone, and what an agent says of itself: alive, ready, healthy.

use std::fs;

use shunt_agent_api::{Client, Request};

use crate::rig::{BRIDGE, Rig, eventually};

#[test]
fn a_socket_whose_file_was_removed_is_made_again() {
    let rig = Rig::start("auto");
    let answers =
        || Client::connect(&rig.socket()).and_then(|mut client| client.ask(Request::Status)).is_ok();
    fs::remove_file(rig.socket()).unwrap();
    eventually("it answers again", answers);
    fs::remove_file(rig.socket()).unwrap();
    fs::write(rig.socket(), "a file of somebody's").unwrap();
    eventually("it is said", || rig.log().contains("cannot be made again"));
    fs::remove_file(rig.socket()).unwrap();
    eventually("it answers once more", answers);
}

#[test]
fn a_container_without_its_bridge_is_no_reason_not_to_be_ready() {
    let mut rig = Rig::start_without_repairs();
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    rig.ip(&["link", "del", BRIDGE]);
    eventually("it is not healthy", || !rig.status().healthy);
    let status = rig.status();
    assert_eq!(status.obstacles, [""; 0], "{:?}", status.reasons);
}
