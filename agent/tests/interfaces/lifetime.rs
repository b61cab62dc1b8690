//! What befalls an interface: agents, masters and programs that go, runtimes that forget.

use shunt_lab::{Container, Protocol};

use crate::stage::{By, MASTER, Stage, until};

#[test]
fn a_conversation_outlives_the_agent() {
    let mut stage = Stage::set();
    let network = stage.network(&stage.here, 10, By::Programs);
    let [one, two] = ["one", "two"].map(|id| stage.start(&stage.here, &network, id));
    let three = stage.start(&stage.there, &stage.network(&stage.there, 10, By::Programs), "three");
    let echo = three.echo(three.addresses()[0], 7100).unwrap();
    let mut talk = one.talk_to(Protocol::Tcp, &echo).unwrap();
    talk.chat(5, 500).unwrap();
    stage.here.agent_mut().kill().unwrap();
    talk.chat(5, 500).unwrap();
    stage.here.restart_agent().unwrap();
    talk.chat(5, 500).unwrap();
    assert_eq!(stage.here.agent().status().unwrap().attachments, 2);
    for sandbox in [&one, &two] {
        stage.check(&stage.here, &network, sandbox);
    }
    stage.assert_talk(&one, &two, &[0]);
    for sandbox in [&one, &two] {
        sandbox.delete(&stage.here, &network).unwrap();
    }
    stage.assert_clean();
}

#[test]
fn a_program_that_is_taken_away_is_put_back() {
    let stage = Stage::set();
    let network = stage.network(&stage.here, 10, By::Programs);
    let one = stage.start(&stage.here, &network, "one");
    let repairs = || stage.here.agent().status().unwrap().repairs;
    let before = repairs();
    let links = stage.here.agent().bpffs().join("v2/links");
    let pins = std::fs::read_dir(links).unwrap().map(|entry| entry.unwrap().path());
    match pins.into_iter().find(|pin| pin.to_string_lossy().contains("from_trunk")) {
        Some(pin) => std::fs::remove_file(pin).unwrap(),
        // A filter, where the kernel has no tcx.
        None => {
            let words = ["filter", "del", "dev", MASTER, "ingress"];
            stage.here.namespace().command("tc", &words).unwrap();
        }
    }
    until("the agent repairs it", || repairs() > before);
    stage.check(&stage.here, &network, &one);
}

#[test]
fn an_interface_whose_master_is_gone_goes_too_and_its_del_succeeds() {
    let stage = Stage::set();
    let network = stage.network(&stage.here, 10, By::Programs);
    let one = stage.start(&stage.here, &network, "one");
    stage.here.namespace().command("ip", &["link", "del", MASTER]).unwrap();
    let list = || one.namespace().command("ip", &["-o", "link"]).unwrap();
    until("eth0 goes with its master", || !list().contains("eth0"));
    one.delete(&stage.here, &network).unwrap();
    let left = stage.left();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_master_that_was_gone_while_no_agent_was_there_is_noticed() {
    let mut stage = Stage::set();
    let network = stage.network(&stage.here, 10, By::Programs);
    let one = stage.start(&stage.here, &network, "one");
    stage.here.agent_mut().kill().unwrap();
    stage.here.namespace().command("ip", &["link", "del", MASTER]).unwrap();
    stage.here.restart_agent().unwrap();
    let list = || one.namespace().command("ip", &["-o", "link"]).unwrap();
    until("eth0 goes with its master", || !list().contains("eth0"));
    one.delete(&stage.here, &network).unwrap();
    assert_eq!(stage.left(), Vec::<String>::new());
}

#[test]
fn what_a_runtime_has_forgotten_is_collected() {
    let stage = Stage::set();
    let network = stage.network(&stage.here, 10, By::Programs);
    let [one, two] = ["one", "two"].map(|id| stage.start(&stage.here, &network, id));
    let any = Container::create(&stage.lab, "any").unwrap();
    network.collect(stage.here.namespace(), &[two.container()], &any).unwrap();
    until("the interface goes", || !one.namespace().command("ip", &["-o", "link"]).unwrap().contains("eth0"));
    stage.check(&stage.here, &network, &two);
    network.collect(stage.here.namespace(), &[], &any).unwrap();
    stage.assert_clean();
}
