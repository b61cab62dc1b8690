//! The draft of CNI's second version on the same socket: each of its calls is said in the words of the service and done by it.

mod answered;
mod asked;
mod keys;
mod registered;
mod registration;

pub(crate) use self::registration::list_of;

use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Response, Status, async_trait};

use self::asked::Pod;
use self::keys::{CONTAINER, IFNAME, NETWORK};
use self::registered::{Selection, unselected};
use crate::cache::Cached;
use crate::caller::Caller;
use crate::calls::Calls;
use crate::failure::{Failure, codes};
use crate::gate::Place;
use crate::list::NetworkList;
use crate::proto::draft::cni_server::Cni;
use crate::proto::draft::{
    AddAttachmentRequest, AddAttachmentResponse, AttachmentStatusRequest, AttachmentStatusResponse,
    DeleteAttachmentRequest, DeleteAttachmentResponse, NetworkRegistrationRequest,
    NetworkRegistrationResponse,
};
use crate::proto::v1;
use crate::proto::v1::cni_service_server::CniService as _;
use crate::proto::v1::network::Source;
use crate::work::on_thread;

/// The draft's service.
#[derive(Clone, Debug)]
pub(crate) struct Draft(pub(crate) Calls);

/// What a request of the draft has beside its message; each call that is made for it has the same.
#[derive(Debug)]
struct Beside(MetadataMap, Extensions);

impl Beside {
    fn of<M>(request: Request<M>) -> (Self, M) {
        let (metadata, extensions, message) = request.into_parts();
        (Self(metadata, extensions), message)
    }

    fn with<M>(&self, message: M) -> Request<M> {
        Request::from_parts(self.0.clone(), self.1.clone(), message)
    }

    fn must_be_allowed_to(&self, what: &str) -> Result<(), Status> {
        Caller::of(&self.1).must_be_allowed_to(what)
    }
}

impl Draft {
    /// Does what blocks.
    async fn look<T: Send + 'static>(
        &self,
        beside: &Beside,
        look: impl FnOnce(&Calls) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (calls, place) = (self.0.clone(), beside.1.get::<Place>().cloned());
        on_thread(move || look(&calls), move || drop(place)).await
    }

    /// The network that an attachment is to be of, if there is one for it.
    async fn network(&self, beside: &Beside, pod: &Pod) -> Result<Option<Source>, Failure> {
        if let Some(source) = &pod.network {
            return Ok(Some(source.clone()));
        }
        let labels = pod.labels.clone();
        let name = self.look(beside, move |calls| Selection::of(&calls.0.networks, &labels)).await?;
        Ok(name.map(Source::Name))
    }

    /// Attachments of this interface of a container, in one network or in all.
    async fn cached(
        &self,
        beside: &Beside,
        (container, ifname): (&str, &str),
        network: Option<String>,
    ) -> Result<Vec<Cached>, Failure> {
        let (container, ifname) = (container.to_owned(), ifname.to_owned());
        let mut found =
            self.look(beside, move |calls| Ok(calls.0.cache.of_interface(&container, &ifname))).await?;
        found.retain(|cached| network.as_ref().is_none_or(|network| *network == cached.network_name));
        Ok(found)
    }
}

#[async_trait]
impl Cni for Draft {
    async fn add_attachment(
        &self,
        request: Request<AddAttachmentRequest>,
    ) -> Result<Response<AddAttachmentResponse>, Status> {
        let (beside, message) = Beside::of(request);
        beside.must_be_allowed_to("AddAttachment")?;
        let pod = pod_of(message)?;
        let source = self.network(&beside, &pod).await?.ok_or_else(unselected)?;
        let network = name_of(&source)?;
        let (attachment, sandbox) = (Some(pod.attachment.clone()), Some(pod.sandbox));
        let asked =
            v1::AddRequest { network: Some(v1::Network { source: Some(source) }), attachment, sandbox };
        let v1::AddResponse { result } = self.0.add(beside.with(asked)).await?.into_inner();
        // What is made is answered, whatever can be said of it: an error would hide it.
        Ok(Response::new(answered::answer(&network, &pod.attachment, &result)))
    }

    async fn delete_attachment(
        &self,
        request: Request<DeleteAttachmentRequest>,
    ) -> Result<Response<DeleteAttachmentResponse>, Status> {
        let (beside, DeleteAttachmentRequest { ifname, podconfig, extradata }) = Beside::of(request);
        beside.must_be_allowed_to("DeleteAttachment")?;
        let pod = Pod::of(ifname, podconfig, &extradata)?;
        let key = (pod.attachment.container_id.as_str(), pod.attachment.ifname.as_str());
        let network = pod.network.as_ref().map(name_of).transpose()?;
        let mut asked: Vec<_> = self.cached(&beside, key, network).await?.iter().map(request_about).collect();
        // Nothing is cached of an Add that has failed; a pod that no network selects has nothing that could be left.
        if asked.is_empty()
            && let Some(source) = self.network(&beside, &pod).await?
        {
            asked.push((v1::Network { source: Some(source) }, pod.attachment, pod.sandbox));
        }
        let mut first = Ok(());
        for (network, attachment, sandbox) in asked {
            let (network, attachment, sandbox) = (Some(network), Some(attachment), Some(sandbox));
            let done = self.0.delete(beside.with(v1::DeleteRequest { network, attachment, sandbox })).await;
            first = first.and(done.map(drop));
        }
        first.map(|()| Response::new(DeleteAttachmentResponse::default()))
    }

    async fn attachment_status(
        &self,
        request: Request<AttachmentStatusRequest>,
    ) -> Result<Response<AttachmentStatusResponse>, Status> {
        let (beside, AttachmentStatusRequest { extradata }) = Beside::of(request);
        let of = |key: &str| extradata.get(key).filter(|value| !value.is_empty()).cloned();
        let (container, ifname) = match (of(CONTAINER), of(IFNAME), of(NETWORK)) {
            (None, None, Some(name)) => {
                let network = Some(v1::Network { source: Some(Source::Name(name)) });
                self.0.status(beside.with(v1::StatusRequest { network })).await?;
                return Ok(Response::new(AttachmentStatusResponse::default()));
            }
            (Some(container), Some(ifname), _) => (container, ifname),
            _ => {
                let why = "`extradata` has neither `container_id` and `ifname` nor `network` alone";
                return Err(Failure::new(codes::ENVIRONMENT, why).into());
            }
        };
        beside.must_be_allowed_to("ask for the status of an attachment")?;
        let found = self.cached(&beside, (&container, &ifname), of(NETWORK)).await?;
        let Some(one) = found.first() else {
            let why = format!("{ifname} of {container} is not attached");
            return Err(Failure::new(codes::UNKNOWN_CONTAINER, why).into());
        };
        for cached in &found {
            let (network, attachment, sandbox) = request_about(cached);
            let (network, attachment, sandbox) = (Some(network), Some(attachment), Some(sandbox));
            self.0.check(beside.with(v1::CheckRequest { network, attachment, sandbox })).await?;
        }
        let extradata = answered::extradata(&one.network_name, &container, &one.result.to_string());
        Ok(Response::new(AttachmentStatusResponse { extradata }))
    }

    async fn register_network(
        &self,
        request: Request<NetworkRegistrationRequest>,
    ) -> Result<Response<NetworkRegistrationResponse>, Status> {
        let (beside, message) = Beside::of(request);
        let config_list = list_of(message)?;
        let asked = beside.with(v1::RegisterNetworkRequest { config_list });
        let v1::RegisterNetworkResponse { name: id } = self.0.register_network(asked).await?.into_inner();
        Ok(Response::new(NetworkRegistrationResponse { id, ..NetworkRegistrationResponse::default() }))
    }
}

/// The pod of a message.
///
/// # Errors
/// Codes 2 and 4.
pub(crate) fn pod_of(message: AddAttachmentRequest) -> Result<Pod, Failure> {
    let AddAttachmentRequest { ifname, podconfig, extradata } = message;
    Pod::of(ifname, podconfig, &extradata)
}

/// The parts of a request about an attachment, in the words of the Add that has made it.
fn request_about(cached: &Cached) -> (v1::Network, v1::Attachment, v1::Sandbox) {
    let subject = cached.subject();
    let source = match cached.list() {
        Ok(list) => Source::ConfigList(list.raw),
        Err(_) => Source::Name(cached.network_name.clone()),
    };
    let attachment = v1::Attachment { container_id: subject.container, ifname: subject.ifname };
    let sandbox = v1::Sandbox {
        netns: subject.netns,
        args: subject.args.into_iter().collect(),
        capability_args: serde_json::Value::Object(subject.capability_args).to_string().into_bytes(),
    };
    (v1::Network { source: Some(source) }, attachment, sandbox)
}

fn name_of(source: &Source) -> Result<String, Failure> {
    match source {
        Source::Name(name) => Ok(name.clone()),
        Source::ConfigList(raw) => Ok(NetworkList::read(raw)?.name),
    }
}
