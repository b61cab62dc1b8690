//! Networks that are registered, named and forgotten; and what is asked of them.

use serde_json::Value;
use shunt_cni::proto::v1::{
    CapacityRequest, DeinitRequest, FinalizeRequest, InitRequest, ListNetworksRequest, Network,
    RegisterNetworkRequest, StatusRequest, UnregisterNetworkRequest, ValidateRequest, VersionRequest,
};
use tonic::Status;

use crate::client::{Client, OfCni as _, given, named};
use crate::world::World;

fn register(client: &mut Client, list: &Value) -> Result<String, Status> {
    let request = RegisterNetworkRequest { config_list: list.to_string().into_bytes() };
    client.runtime.block_on(client.stub.register_network(request)).map(|answer| answer.into_inner().name)
}

fn unregister(client: &mut Client, name: &str) -> Result<(), Status> {
    let request = UnregisterNetworkRequest { name: name.to_owned() };
    client.runtime.block_on(client.stub.unregister_network(request)).map(drop)
}

fn names(client: &mut Client) -> Vec<String> {
    let answer = client.runtime.block_on(client.stub.list_networks(ListNetworksRequest {}));
    answer.unwrap().into_inner().names
}

fn validate(client: &mut Client, network: Network) -> Result<(), Status> {
    let request = ValidateRequest { network: Some(network) };
    client.runtime.block_on(client.stub.validate(request)).map(drop)
}

#[test]
fn a_network_is_registered_once_and_named_afterwards_across_a_restart() {
    let mut world = World::start();
    let list = world.list(&[world.shunt()]);
    let mut client = world.client();
    assert_eq!(register(&mut client, &list).unwrap(), "pods");
    assert_eq!(register(&mut client, &list).unwrap(), "pods");
    let mut other = list.clone();
    other["plugins"][0]["mtu"] = 1400.into();
    assert_eq!(register(&mut client, &other).unwrap_err().of_cni().code, 106);
    world.node.agent_mut().terminate().unwrap();
    world.node.restart_agent().unwrap();
    let mut client = world.client();
    assert_eq!(names(&mut client), ["pods"]);
    let mut asked = world.container("one");
    asked.network = named("pods");
    client.add(&asked).unwrap();
    let refused = unregister(&mut client, "pods").unwrap_err().of_cni();
    assert!(refused.code == 106 && refused.msg.contains("1 attachments"), "{refused:?}");
    client.delete(&asked).unwrap();
    unregister(&mut client, "pods").unwrap();
    unregister(&mut client, "pods").unwrap();
    assert_eq!(names(&mut client), [""; 0]);
    let unknown = client.add(&asked).unwrap_err().of_cni();
    assert!(unknown.code == 7 && unknown.msg.contains("pods"), "{unknown:?}");
    world.assert_empty();
}

#[test]
fn what_can_be_asked_is_answered() {
    let mut world = World::start();
    let mut client = world.client();
    let network = given(&world.list(&[world.shunt()]));
    let Client { runtime, stub } = &mut client;
    let version = runtime.block_on(stub.version(VersionRequest {})).unwrap().into_inner();
    assert_eq!((version.cni_version.as_str(), version.supported_versions.len()), ("1.1.0", 7));
    let capacity = runtime.block_on(stub.capacity(CapacityRequest {})).unwrap().into_inner().capacity;
    assert!(serde_json::from_slice::<Value>(&capacity).unwrap()["uplinks"].is_array());
    let status = StatusRequest { network: Some(network.clone()) };
    runtime.block_on(stub.status(status)).unwrap();
    validate(&mut client, network).unwrap();
    for (key, value, code) in [("mtu", "large", 6), ("vlan", "9000", 6), ("type", "no-such-plugin", 7)] {
        let mut shunt = world.shunt();
        shunt[key] = value.into();
        let refused = validate(&mut client, given(&world.list(&[shunt]))).unwrap_err().of_cni();
        assert!([6, 7].contains(&refused.code) && refused.code >= code, "{key}: {refused:?}");
    }
    world.assert_empty();
    world.containers.clear();
}

#[test]
fn a_network_is_made_ready_and_taken_down_as_a_whole() {
    let mut world = World::start();
    let mut client = world.client();
    let asked = world.container("one");
    let network = Some(asked.network.clone());
    let bridge = |world: &World| world.node.namespace().command("ip", &["link", "show", "cni0"]);
    let Client { runtime, stub } = &mut client;
    for _ in 0..2 {
        runtime.block_on(stub.init(InitRequest { network: network.clone() })).unwrap();
    }
    bridge(&world).unwrap();
    client.add(&asked).unwrap();
    let finalize = FinalizeRequest {
        network: network.clone(),
        attachment: Some(asked.attachment.clone()),
        sandbox: Some(asked.sandbox.clone()),
    };
    world.containers[0].namespace().command("ip", &["route", "del", "default"]).unwrap();
    client.runtime.block_on(client.stub.finalize(finalize)).unwrap();
    client.check(&asked).unwrap();
    let deinit = || DeinitRequest { network: network.clone() };
    client.runtime.block_on(client.stub.deinit(deinit())).unwrap_err();
    client.delete(&asked).unwrap();
    client.runtime.block_on(client.stub.deinit(deinit())).unwrap();
    bridge(&world).unwrap_err();
    world.assert_empty();
}
