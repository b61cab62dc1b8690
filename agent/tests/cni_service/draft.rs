//! The draft of CNI's second version: a client that is made from it attaches, asks, registers and deletes.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use shunt_cni::client::Channel;
use shunt_cni::proto::draft::cni_client::CniClient;
use shunt_cni::proto::draft::{
    AddAttachmentRequest, AddAttachmentResponse, AssociatedConfiguration, AttachmentStatusRequest,
    DeleteAttachmentRequest, Ipam, LinuxAttachmentConfig, NetworkRegistrationRequest, PodConfig, PodMetadata,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};

use crate::client::{OfCni as _, connect};
use crate::waiting::{PLACES, SLOW};
use crate::world::World;

/// A client of the draft's.
struct Client {
    runtime: Runtime,
    stub: CniClient<Channel>,
}

fn said(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

impl Client {
    fn connect(world: &World) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let channel = runtime.block_on(connect(&world.socket()));
        Self { stub: CniClient::with_origin(channel, "http://localhost".parse().unwrap()), runtime }
    }

    fn add(&mut self, pod: &PodConfig, extradata: &[(&str, &str)]) -> Result<AddAttachmentResponse, Status> {
        let added = self.stub.add_attachment(adding(pod, extradata));
        self.runtime.block_on(added).map(tonic::Response::into_inner)
    }

    fn delete(&mut self, pod: &PodConfig) -> Result<(), Status> {
        let request = DeleteAttachmentRequest {
            ifname: "eth0".to_owned(),
            podconfig: Some(pod.clone()),
            extradata: HashMap::new(),
        };
        self.runtime.block_on(self.stub.delete_attachment(request)).map(drop)
    }

    fn status(&mut self, extradata: &[(&str, &str)]) -> Result<HashMap<String, String>, Status> {
        let request = AttachmentStatusRequest { extradata: said(extradata) };
        let answer = self.runtime.block_on(self.stub.attachment_status(request))?;
        Ok(answer.into_inner().extradata)
    }

    fn register(&mut self, request: NetworkRegistrationRequest) -> Result<String, Status> {
        Ok(self.runtime.block_on(self.stub.register_network(request))?.into_inner().id)
    }
}

fn adding(pod: &PodConfig, extradata: &[(&str, &str)]) -> AddAttachmentRequest {
    AddAttachmentRequest {
        ifname: "eth0".to_owned(),
        podconfig: Some(pod.clone()),
        extradata: said(extradata),
    }
}

/// A container as a pod whose uid is its name.
fn pod(world: &mut World, id: &str, labels: &[(&str, &str)]) -> PodConfig {
    let netns_path = world.container(id).sandbox.netns;
    PodConfig {
        metadata: Some(PodMetadata { name: id.into(), uid: id.into(), namespace: "team".into(), attempt: 0 }),
        linux_config: Some(LinuxAttachmentConfig { netns_path, ..LinuxAttachmentConfig::default() }),
        labels: said(labels),
        ..PodConfig::default()
    }
}

fn registration(list: &Value, selector: &[(&str, &str)]) -> NetworkRegistrationRequest {
    NetworkRegistrationRequest {
        name: "pods".to_owned(),
        attachment_selector: said(selector),
        extradata: said(&[("config_list", &list.to_string())]),
        ..NetworkRegistrationRequest::default()
    }
}

#[test]
fn a_pod_is_attached_to_the_network_that_selects_it_and_deleted() {
    let mut world = World::start();
    let list = world.list(&[world.shunt()]);
    let web = pod(&mut world, "one", &[("tier", "web"), ("zone", "eu")]);
    let mut client = Client::connect(&world);
    let unknown = client.add(&web, &[]).unwrap_err().of_cni();
    assert!(unknown.code == 7 && unknown.msg.contains("selects"), "{unknown:?}");
    assert_eq!(client.register(registration(&list, &[("tier", "web")])).unwrap(), "pods");
    let made = client.add(&web, &[]).unwrap();
    assert_eq!(made.ipconfigs.keys().collect::<Vec<_>>(), ["eth0"]);
    let address = &made.ipconfigs["eth0"].ip[0];
    assert!(address.cidr.starts_with(&format!("{}/16", address.ip_address)), "{address:?}");
    assert_eq!(made.routes[0].dst, "0.0.0.0/0");
    assert_eq!(made.extradata["container_id"], "one");
    let inside = world.containers[0].namespace().command("ip", &["-o", "addr", "show", "eth0"]).unwrap();
    assert!(inside.contains(&address.cidr), "{inside}");
    // The same attachment as that of the other service.
    assert_eq!(world.cached(), ["pods-one-eth0"]);
    let mut asked = world.client();
    assert_eq!(client.add(&web, &[]).unwrap().extradata["result"], made.extradata["result"]);
    let key = [("container_id", "one"), ("ifname", "eth0")];
    assert_eq!(client.status(&key).unwrap(), made.extradata);
    assert!(client.status(&[("network", "pods")]).unwrap().is_empty());
    world.containers[0].namespace().command("ip", &["link", "del", "eth0"]).unwrap();
    client.status(&key).unwrap_err().of_cni();
    // Whatever selects it by now.
    let relabelled = PodConfig { labels: HashMap::new(), ..web };
    client.delete(&relabelled).unwrap();
    client.delete(&relabelled).unwrap();
    let gone = client.status(&key).unwrap_err();
    assert_eq!((gone.code(), gone.of_cni().code), (Code::NotFound, 3));
    let unregister = shunt_cni::proto::v1::UnregisterNetworkRequest { name: "pods".to_owned() };
    asked.runtime.block_on(asked.stub.unregister_network(unregister)).unwrap();
    world.assert_empty();
}

#[test]
fn a_pod_brings_a_configuration_of_its_own_or_names_a_network() {
    let mut world = World::start();
    let list = world.list(&[world.shunt()]);
    let mut own = pod(&mut world, "one", &[]);
    own.config = Some(AssociatedConfiguration {
        api_version: "cni.dev/v1".to_owned(),
        kind: "NetworkConfigurationList".to_owned(),
        raw: list.to_string().into_bytes(),
    });
    let mut client = Client::connect(&world);
    client.add(&own, &[]).unwrap();
    client.delete(&own).unwrap();
    let named = PodConfig { config: None, ..own };
    assert_eq!(client.add(&named, &[("network", "pods")]).unwrap_err().of_cni().code, 7);
    client.register(registration(&list, &[])).unwrap();
    client.add(&named, &[("network", "pods")]).unwrap();
    let later = PodConfig {
        metadata: named.metadata.clone().map(|metadata| PodMetadata { attempt: 1, ..metadata }),
        ..named.clone()
    };
    // Another sandbox, whose namespace has the interface already.
    client.add(&later, &[("network", "pods")]).unwrap_err().of_cni();
    client.delete(&later).unwrap();
    client.status(&[("container_id", "one"), ("ifname", "eth0")]).unwrap();
    client.delete(&named).unwrap();
    assert_eq!(world.left(), ["state networks/pods.conflist"]);
    assert_eq!(world.cached(), [""; 0]);
}

#[test]
fn a_registered_range_is_a_network_of_shunt_s_that_is_valid_and_kept() {
    let world = World::start();
    let mut client = Client::connect(&world);
    let range = |subnet: &str| Ipam { subnet: subnet.to_owned(), ..Ipam::default() };
    let of = |ipam: Vec<Ipam>| NetworkRegistrationRequest {
        name: "ranged".to_owned(),
        ipam,
        isdefault: true,
        ..NetworkRegistrationRequest::default()
    };
    assert_eq!(client.register(of(vec![range("10.79.0.0/16")])).unwrap(), "ranged");
    assert_eq!(client.register(of(vec![range("10.79.0.0/16")])).unwrap(), "ranged");
    let other = client.register(of(vec![range("10.80.0.0/16")])).unwrap_err();
    assert_eq!((other.code(), other.of_cni().code), (Code::AlreadyExists, 106));
    let mut asked = world.client();
    let network = Some(crate::client::named("ranged"));
    let validate = shunt_cni::proto::v1::ValidateRequest { network };
    asked.runtime.block_on(asked.stub.validate(validate)).unwrap();
    assert!(client.status(&[("network", "ranged")]).unwrap().is_empty());
    for (request, code) in [
        (of(Vec::new()), 7),
        (NetworkRegistrationRequest { name: "../x".to_owned(), ..of(vec![range("10.79.0.0/16")]) }, 7),
    ] {
        assert_eq!(client.register(request).unwrap_err().of_cni().code, code);
    }
    assert_eq!(world.left(), ["state networks/ranged.conflist"]);
}

#[test]
fn what_the_draft_cannot_mean_here_is_refused_and_leaves_nothing() {
    let mut world = World::start();
    let good = pod(&mut world, "one", &[]);
    let mut client = Client::connect(&world);
    for (pod, code, mentions) in [
        (PodConfig::default(), 4, "uid"),
        (PodConfig { windows_config: Some(Default::default()), ..good.clone() }, 2, "Linux"),
        (PodConfig { routes: vec![Default::default()], ..good.clone() }, 2, "routes"),
        (PodConfig { config: Some(Default::default()), ..good.clone() }, 2, "podconfig.config"),
        (good.clone(), 7, "selects"),
    ] {
        let refused = client.add(&pod, &[]).unwrap_err().of_cni();
        assert!(refused.code == code && refused.msg.contains(mentions), "{refused:?}");
    }
    assert_eq!(client.add(&good, &[("network", "../x")]).unwrap_err().of_cni().code, 7);
    assert_eq!(client.status(&[]).unwrap_err().of_cni().code, 4);
    client.delete(&good).unwrap();
    world.assert_empty();
}

#[test]
fn a_pod_whose_network_is_not_known_is_not_said_to_be_deleted() {
    let mut world = World::start();
    let web = pod(&mut world, "one", &[("tier", "web")]);
    let mut list = world.list(&[world.shunt()]);
    let mut client = Client::connect(&world);
    for name in ["pods", "more"] {
        list["name"] = name.into();
        let request = registration(&list, &[("tier", "web")]);
        client.register(NetworkRegistrationRequest { name: name.to_owned(), ..request }).unwrap();
    }
    let refused = client.delete(&web).unwrap_err().of_cni();
    assert!(refused.code == 7 && refused.msg.contains("all claim"), "{refused:?}");
}

#[test]
fn calls_that_wait_for_another_one_keep_nobody_else_from_a_place() {
    let mut world = World::start();
    world.write_plugin("slow", SLOW);
    let list = world.list(&[world.shunt(), json!({ "type": "slow" })]);
    let slow = pod(&mut world, "one", &[("tier", "web")]);
    let mut client = Client::connect(&world);
    client.register(registration(&list, &[("tier", "web")])).unwrap();
    let [begun, go] = ["begun", "go"].map(|what| world.lab.root().join(format!("foreign/slow.{what}")));
    let mut stub = client.stub.clone();
    client.runtime.block_on(async {
        let add = || {
            let (mut stub, request) = (client.stub.clone(), adding(&slow, &[]));
            tokio::spawn(async move { stub.add_attachment(request).await })
        };
        let first = add();
        while !begun.exists() && !first.is_finished() {
            sleep(Duration::from_millis(5)).await;
        }
        let more: Vec<_> = (0..2 * PLACES).map(|_| add()).collect();
        sleep(Duration::from_millis(500)).await;
        let extradata = said(&[("network", "pods")]);
        let other = stub.attachment_status(AttachmentStatusRequest { extradata });
        let other = timeout(Duration::from_secs(10), other).await;
        std::fs::write(&go, "").unwrap();
        other.expect("the waiting ones have all places").unwrap();
        for call in more.into_iter().chain([first]) {
            call.await.unwrap().unwrap();
        }
    });
    client.delete(&slow).unwrap();
    assert_eq!(world.left(), ["state networks/pods.conflist"]);
}
