//! Who may ask, and who may have something changed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use shunt_cni::proto::draft::cni_client::CniClient;
use shunt_cni::proto::draft::{
    AddAttachmentRequest, AttachmentStatusRequest, DeleteAttachmentRequest, NetworkRegistrationRequest,
};
use shunt_cni::proto::v1::{
    CapacityRequest, ListAttachmentsRequest, ListNetworksRequest, RegisterNetworkRequest, StatusRequest,
    VersionRequest,
};
use tokio::runtime::Runtime;
use tonic::Code;

use crate::client::{Asked, Client, connect, named};
use crate::world::{GROUP, World};

/// Names the socket for [`a_member_of_the_group_asks`].
const SOCKET: &str = "SHUNT_TEST_CNI_SOCKET";

#[test]
fn the_socket_is_root_s_and_a_group_s_where_there_is_one() {
    let world = World::start();
    assert_eq!(fs::metadata(world.socket()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
#[ignore = "is run by another test, as another user"]
fn a_member_of_the_group_asks() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let mut client = Client::connect(Path::new(&socket));
    let asked = Asked::of(named("pods"), "one", Path::new("/run/netns/x"));
    for refused in [
        client.add(&asked),
        client.delete(&asked).map(|()| ().into()),
        client.check(&asked).map(|()| ().into()),
    ] {
        assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    }
    assert_eq!(client.collect(named("pods"), Some(&[])).unwrap_err().code(), Code::PermissionDenied);
    let Client { runtime, stub } = &mut client;
    let register = RegisterNetworkRequest { config_list: b"{}".to_vec() };
    let refused = runtime.block_on(stub.register_network(register)).unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    // A list of its own would have plugins do what it says.
    let own = crate::client::given(&serde_json::json!({ "name": "x", "plugins": [{ "type": "shunt" }] }));
    let refused = runtime.block_on(stub.status(StatusRequest { network: Some(own) })).unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    runtime.block_on(stub.status(StatusRequest { network: Some(named("pods")) })).unwrap();
    // Its failures fill no log.
    runtime.block_on(stub.status(StatusRequest { network: Some(named("nowhere")) })).unwrap_err();
    runtime.block_on(stub.version(VersionRequest {})).unwrap();
    runtime.block_on(stub.capacity(CapacityRequest {})).unwrap();
    let names = runtime.block_on(stub.list_networks(ListNetworksRequest {})).unwrap().into_inner().names;
    assert_eq!(names, ["pods"]);
    runtime.block_on(stub.list_attachments(ListAttachmentsRequest::default())).unwrap();
    refused_by_the_draft(Path::new(&socket), runtime);
    println!("asked");
}

/// Who may change nothing may not by the draft's calls, either.
fn refused_by_the_draft(socket: &Path, runtime: &Runtime) {
    runtime.block_on(async {
        let origin = "http://localhost".parse().unwrap();
        let mut draft = CniClient::with_origin(connect(socket).await, origin);
        let key = ["container_id", "ifname"].map(|key| (key.to_owned(), "x".to_owned()));
        let status = AttachmentStatusRequest { extradata: key.into() };
        let registration = NetworkRegistrationRequest {
            name: "x".to_owned(),
            ipam: vec![Default::default()],
            ..NetworkRegistrationRequest::default()
        };
        for refused in [
            draft.add_attachment(AddAttachmentRequest::default()).await.map(drop),
            draft.delete_attachment(DeleteAttachmentRequest::default()).await.map(drop),
            draft.attachment_status(status).await.map(drop),
            draft.register_network(registration).await.map(drop),
        ] {
            assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
        }
    });
}

#[test]
fn a_member_of_the_group_may_ask_and_change_nothing() {
    let world = World::start_with(&format!("group = '{GROUP}'"));
    let list = world.list(&[world.shunt()]).to_string().into_bytes();
    let mut client = world.client();
    let register = RegisterNetworkRequest { config_list: list };
    client.runtime.block_on(client.stub.register_network(register)).unwrap();
    fs::set_permissions(world.lab.root(), Permissions::from_mode(0o711)).unwrap();
    let program = world.lab.root().join("asker");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let ask = |groups: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--groups", groups]).arg(&program);
        command.args(["--exact", "rights::a_member_of_the_group_asks", "--ignored", "--nocapture"]);
        let output = command.env(SOCKET, world.socket()).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success() && said.contains("asked"), said)
    };
    let (is_member_answered, said) = ask(GROUP);
    assert!(is_member_answered, "{said}");
    assert!(!ask("47112").0);
    let log = world.node.agent().log_tail();
    assert!(!log.contains("nowhere"), "{log}");
    assert_eq!(world.left(), ["state networks/pods.conflist"]);
}
