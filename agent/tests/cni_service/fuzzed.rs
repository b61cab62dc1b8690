//! Messages over the socket that no client would send: empty, with unknown fields, broken anywhere, and frames that lie about their length.

use std::fs;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use prost::Message as _;
use shunt_cni::client::Channel;
use shunt_cni::proto::v1::{ListNetworksRequest, RegisterNetworkRequest, StatusRequest, ValidateRequest};
use shunt_cni::proto::{draft, v1};
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::Service as _;

use crate::client::{connect, given, named};
use crate::world::World;

/// Messages of one method, each broken in another place.
const BROKEN: u64 = 150;

const PATIENCE: Duration = Duration::from_secs(30);

/// Numbers that look random and are the same each time (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(most.max(1)).unwrap()).unwrap()
    }

    /// A message with one to three bytes changed, left out or put in.
    fn broken(&mut self, message: &[u8]) -> Vec<u8> {
        let mut bytes = message.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 if !bytes.is_empty() => drop(bytes.remove(at)),
                1 => bytes.insert(at, u8::try_from(self.below(256)).unwrap()),
                2 => bytes.truncate(at),
                _ if !bytes.is_empty() => bytes[at] = u8::try_from(self.below(256)).unwrap(),
                _ => {}
            }
        }
        bytes
    }
}

/// A message in gRPC's frame.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], length.as_slice(), message].concat()
}

/// Sends a body to a method. The status of the call, once it has ended.
async fn send(channel: &mut Channel, path: &str, body: Vec<u8>) -> String {
    let request = Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Full::new(body.into())))
        .unwrap();
    let answered = async {
        let answer = channel.call(request).await.unwrap();
        let early = answer.headers().get("grpc-status").cloned();
        let trailers = answer.into_body().collect().await.unwrap().trailers().cloned().unwrap_or_default();
        let status = early.or_else(|| trailers.get("grpc-status").cloned());
        status.unwrap_or_else(|| panic!("{path}: no status")).to_str().unwrap().to_owned()
    };
    timeout(PATIENCE, answered).await.unwrap_or_else(|_| panic!("{path}: no answer"))
}

/// Paths, and a message of each that would be understood. Nothing that a broken one of them can ask for is outside of the lab.
fn sound(world: &mut World) -> Vec<(&'static str, Vec<u8>)> {
    let list = world.list(&[world.shunt()]);
    let mut asked = world.container("one");
    asked.network = named("pods");
    let pod = draft::PodConfig {
        metadata: Some(draft::PodMetadata { uid: "two".into(), ..Default::default() }),
        linux_config: Some(draft::LinuxAttachmentConfig {
            netns_path: asked.sandbox.netns.clone(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let attach =
        draft::AddAttachmentRequest { ifname: "eth0".into(), podconfig: Some(pod), ..Default::default() };
    let register = draft::NetworkRegistrationRequest {
        name: "ranged".into(),
        ipam: vec![draft::Ipam { subnet: "10.79.0.0/16".into(), ..Default::default() }],
        ..Default::default()
    };
    let network = || Some(given(&list));
    let listed = v1::ListAttachmentsRequest { network: "pods".into(), page_size: 9, page_token: "x".into() };
    vec![
        ("/shunt.cni.v1.CniService/Add", asked.add().encode_to_vec()),
        ("/shunt.cni.v1.CniService/Delete", asked.delete().encode_to_vec()),
        ("/shunt.cni.v1.CniService/Validate", ValidateRequest { network: network() }.encode_to_vec()),
        ("/shunt.cni.v1.CniService/Status", StatusRequest { network: network() }.encode_to_vec()),
        ("/shunt.cni.v1.CniService/ListAttachments", listed.encode_to_vec()),
        ("/cni.CNI/AddAttachment", attach.encode_to_vec()),
        ("/cni.CNI/DeleteAttachment", attach.encode_to_vec()),
        ("/cni.CNI/RegisterNetwork", register.encode_to_vec()),
    ]
}

fn open_files(world: &World) -> usize {
    fs::read_dir(format!("/proc/{}/fd", world.node.agent().id().unwrap())).unwrap().count()
}

#[test]
fn broken_messages_are_answered_leave_nothing_and_harm_nobody() {
    let mut world = World::start();
    let sound = sound(&mut world);
    let list = world.list(&[world.shunt()]);
    let mut client = world.client();
    let register = RegisterNetworkRequest { config_list: list.to_string().into_bytes() };
    client.runtime.block_on(client.stub.register_network(register)).unwrap();
    let socket = world.socket();
    let before = open_files(&world);
    let statuses = client.runtime.block_on(async {
        let mut channel = connect(&socket).await;
        let mut numbers = Numbers(45);
        let mut statuses = std::collections::BTreeMap::new();
        for (path, message) in &sound {
            // Field 1,000 of each kind of the wire: fields of a newer client.
            let unknown =
                [message.as_slice(), b"\xc0\x3e\x01\xc2\x3e\x03new\xc5\x3e\0\0\0\0\xc1\x3e\0\0\0\0\0\0\0\0"]
                    .concat();
            let mut bodies = vec![Vec::new(), framed(&[]), framed(&[0xff; 4096]), framed(&unknown)];
            bodies.push([&[1], &framed(message)[1..]].concat());
            bodies.push([&[0, 0xff, 0xff, 0xff, 0xff], message.as_slice()].concat());
            bodies.extend((0..BROKEN).map(|_| framed(&numbers.broken(message))));
            for body in bodies {
                *statuses.entry(send(&mut channel, path, body).await).or_insert(0) += 1;
            }
        }
        statuses.insert(send(&mut channel, "/cni.CNI/NoSuchCall", framed(&[])).await, 1);
        statuses
    });
    println!("statuses of broken messages: {statuses:?}");
    assert!(statuses.len() > 3, "{statuses:?}");
    // What a broken message has asked for after all is asked away.
    client.collect(named("pods"), Some(&[])).unwrap();
    let names = client.runtime.block_on(client.stub.list_networks(ListNetworksRequest {})).unwrap();
    for name in names.into_inner().names {
        client.collect(named(&name), Some(&[])).unwrap();
        let unregister = v1::UnregisterNetworkRequest { name };
        client.runtime.block_on(client.stub.unregister_network(unregister)).unwrap();
    }
    world.assert_empty();
    assert!(open_files(&world) <= before + 4, "{} files are open, {before} were", open_files(&world));
}
