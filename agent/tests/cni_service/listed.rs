//! `shunt-agent networks` and `attachments`: the command line as a client of the service.

use std::process::Command;

use serde_json::Value;
use shunt_cni::proto::v1::RegisterNetworkRequest;
use shunt_lab::Binaries;

use crate::world::World;

/// The exit code, and what was printed on either stream.
fn verb(world: &World, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(Binaries::find().unwrap().agent());
    let output = command.args(arguments).arg("--socket").arg(world.socket()).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(printed).unwrap())
}

fn json(world: &World, arguments: &[&str]) -> Value {
    let (code, printed) = verb(world, &[arguments, &["--json"]].concat());
    assert_eq!(code, 0, "{printed}");
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn networks_and_attachments_are_listed_for_a_person_and_a_program() {
    let mut world = World::start();
    for (name, nothing) in [("networks", "no networks\n"), ("attachments", "no attachments\n")] {
        assert_eq!(verb(&world, &[name]), (0, nothing.to_owned()));
        assert_eq!(json(&world, &[name]), Value::Array(Vec::new()));
        assert_eq!(verb(&world, &[name, "--nonsense"]).0, 2);
    }
    let mut other = world.list(&[world.shunt()]);
    other["name"] = "idle".into();
    let mut client = world.client();
    let register = RegisterNetworkRequest { config_list: other.to_string().into_bytes() };
    client.runtime.block_on(client.stub.register_network(register)).unwrap();
    let asked: Vec<_> = (0..3).map(|number| world.container(&format!("c{number}"))).collect();
    let made: Vec<_> = asked.iter().map(|asked| client.add(asked).unwrap()).collect();
    assert_eq!(
        json(&world, &["networks"]),
        serde_json::json!([
            { "name": "idle", "registered": true, "attachments": 0 },
            { "name": "pods", "registered": false, "attachments": 3 }
        ])
    );
    let attachments = json(&world, &["attachments"]);
    assert_eq!(attachments.as_array().unwrap().len(), 3);
    assert_eq!(
        attachments[1],
        serde_json::json!({
            "network": "pods", "container": "c1", "ifname": "eth0", "netns": asked[1].sandbox.netns, "result": made[1]
        })
    );
    let address = made[2]["ips"][0]["address"].as_str().unwrap();
    let table = verb(&world, &["attachments"]).1;
    assert!(table.lines().any(|line| line.contains("c2") && line.contains(address)), "{table}");
    assert_eq!(json(&world, &["attachments", "--network", "idle"]), Value::Array(Vec::new()));
    asked.iter().for_each(|asked| client.delete(asked).unwrap());
    world.node.agent_mut().terminate().unwrap();
    for name in ["networks", "attachments"] {
        let (code, said) = verb(&world, &[name]);
        assert!(code == 1 && said.contains("[api]"), "{code}: {said}");
    }
}
