//! A client of the service, and the messages that it sends.

use std::path::Path;

use serde_json::Value;
use shunt_cni::Failure;
use shunt_cni::client::Channel;
use shunt_cni::proto::v1::cni_service_client::CniServiceClient;
use shunt_cni::proto::v1::network::Source;
use shunt_cni::proto::v1::{
    AddRequest, Attachment, CheckRequest, DeleteRequest, GarbageCollectRequest, Network, Sandbox,
    ValidAttachments,
};
use tokio::runtime::{Builder, Runtime};
use tonic::Status;

pub(crate) async fn connect(socket: &Path) -> Channel {
    Channel::connect(socket).await.unwrap()
}

/// The stub of tonic's.
pub(crate) type Stub = CniServiceClient<Channel>;

/// A stub on a connection of its own.
pub(crate) async fn stub(socket: &Path) -> Stub {
    connect(socket).await.stub()
}

/// A client that waits for its answers.
pub(crate) struct Client {
    pub(crate) runtime: Runtime,
    pub(crate) stub: Stub,
}

/// What a runtime knows of a container.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) network: Network,
    pub(crate) attachment: Attachment,
    pub(crate) sandbox: Sandbox,
}

impl Asked {
    pub(crate) fn of(network: Network, container: &str, netns: &Path) -> Self {
        let sandbox = Sandbox { netns: netns.to_str().unwrap().to_owned(), ..Sandbox::default() };
        Self { network, attachment: attachment(container), sandbox }
    }

    pub(crate) fn add(&self) -> AddRequest {
        let Self { network, attachment, sandbox } = self.clone();
        AddRequest { network: Some(network), attachment: Some(attachment), sandbox: Some(sandbox) }
    }

    pub(crate) fn delete(&self) -> DeleteRequest {
        let Self { network, attachment, sandbox } = self.clone();
        DeleteRequest { network: Some(network), attachment: Some(attachment), sandbox: Some(sandbox) }
    }

    fn check(&self) -> CheckRequest {
        let Self { network, attachment, sandbox } = self.clone();
        CheckRequest { network: Some(network), attachment: Some(attachment), sandbox: Some(sandbox) }
    }
}

pub(crate) fn attachment(container: &str) -> Attachment {
    Attachment { container_id: container.to_owned(), ifname: "eth0".to_owned() }
}

pub(crate) fn given(list: &Value) -> Network {
    Network { source: Some(Source::ConfigList(list.to_string().into_bytes())) }
}

pub(crate) fn named(name: &str) -> Network {
    Network { source: Some(Source::Name(name.to_owned())) }
}

/// The error of CNI in a status.
pub(crate) trait OfCni {
    fn of_cni(&self) -> Failure;
}

impl OfCni for Status {
    fn of_cni(&self) -> Failure {
        Failure::of_status(self).unwrap().unwrap_or_else(|| panic!("no error of CNI: {self:?}"))
    }
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let stub = runtime.block_on(stub(socket));
        Self { runtime, stub }
    }

    pub(crate) fn add(&mut self, asked: &Asked) -> Result<Value, Status> {
        let answer = self.runtime.block_on(self.stub.add(asked.add()))?;
        Ok(serde_json::from_slice(&answer.into_inner().result).unwrap())
    }

    pub(crate) fn delete(&mut self, asked: &Asked) -> Result<(), Status> {
        self.runtime.block_on(self.stub.delete(asked.delete())).map(drop)
    }

    pub(crate) fn check(&mut self, asked: &Asked) -> Result<(), Status> {
        self.runtime.block_on(self.stub.check(asked.check())).map(drop)
    }

    pub(crate) fn collect(&mut self, network: Network, valid: Option<&[&str]>) -> Result<(), Status> {
        let valid_attachments = valid.map(|valid| ValidAttachments {
            attachments: valid.iter().map(|container| attachment(container)).collect(),
        });
        let request = GarbageCollectRequest { network: Some(network), valid_attachments };
        self.runtime.block_on(self.stub.garbage_collect(request)).map(drop)
    }
}
