//! The verbs: each is read, waits for those that it must not meet, and is done on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shunt::call::{Verb, Version, check_identifier};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, async_trait};

use crate::add::Added;
use crate::answer::Streamed;
use crate::asked::{Asked, Envelope, Network, Shared, check_name};
use crate::call_log::{log, log_failure};
use crate::caller::Watchers;
use crate::chain::Chain;
use crate::failure::{Failure, codes};
use crate::files::NAME_MAX;
use crate::invoke::invoke;
use crate::list::NetworkList;
use crate::locks::Held;
use crate::proto::v1::cni_service_server::CniService;
use crate::proto::v1::{
    AddRequest, AddResponse, Attachment, CapacityRequest, CapacityResponse, CheckRequest, CheckResponse,
    DeinitRequest, DeinitResponse, DeleteRequest, DeleteResponse, FinalizeRequest, FinalizeResponse,
    GarbageCollectRequest, GarbageCollectResponse, InitRequest, InitResponse, InvokeRequest, InvokeResponse,
    ListAttachmentsRequest, ListAttachmentsResponse, ListNetworksRequest, ListNetworksResponse,
    RegisterNetworkRequest, RegisterNetworkResponse, Sandbox, StatusRequest, StatusResponse,
    UnregisterNetworkRequest, UnregisterNetworkResponse, ValidateRequest, ValidateResponse, VersionRequest,
    VersionResponse, WatchRequest, WatchResponse,
};
use crate::subject::Subject;
use crate::work::on_thread;
use crate::{deadline, trace, watching};

/// Whom a call about the node is about: shunt knows it whatever the network.
const NODE: &[u8] = br#"{"cniVersion":"1.1.0","name":"node","plugins":[{"type":"shunt"}]}"#;

/// The service.
#[derive(Clone, Debug)]
pub(crate) struct Calls(pub(crate) Arc<Shared>);

/// What follows a call that has succeeded, and that nobody waits for any more.
#[derive(Clone, Debug)]
enum Unheard {
    Stays,
    /// What the call has made is deleted, where it says here that it has made something.
    Deleted(Arc<AtomicBool>),
}

impl Calls {
    /// A call about an attachment. A namespace is required but of Delete, whose namespace may be gone.
    async fn of_attachment<T: Send + 'static>(
        &self,
        (verb, mut envelope): (Verb, Envelope),
        network: Option<crate::proto::v1::Network>,
        attachment: Option<Attachment>,
        (sandbox, unheard): (Option<Sandbox>, Unheard),
        work: impl FnOnce(&Chain<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Status> {
        envelope.caller.must_be_allowed_to(verb.name())?;
        let network = Network::of(network, envelope.caller)?;
        let mut subject = Subject::of(attachment, sandbox)?;
        if verb != Verb::Del {
            check_name(network.name())?;
            subject.check_length()?;
        }
        let found = match subject.netns.as_str() {
            "" => None,
            netns if verb == Verb::Del => self.0.settings.namespace_to_leave(netns)?,
            netns => self.0.settings.namespace(netns)?,
        };
        if found.is_none() && verb != Verb::Del {
            let why = format!("there is no namespace `{}`", subject.netns);
            let code = if subject.netns.is_empty() { codes::ENVIRONMENT } else { codes::INVALID_NETNS };
            return Err(Failure::new(code, why).into());
        }
        subject.netns = found.unwrap_or_default().to_string_lossy().into_owned();
        let Subject { container, ifname, .. } = &subject;
        let held = envelope.wait(self.0.locks.attachment(network.name(), container, ifname)).await?;
        self.run(verb, Asked { shared: Arc::clone(&self.0), network, subject, envelope }, held, unheard, work)
            .await
    }

    /// A call about a whole network.
    async fn of_network<T: Send + 'static>(
        &self,
        (verb, mut envelope): (Verb, Envelope),
        network: Network,
        work: impl FnOnce(&Chain<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Status> {
        let changes = matches!(verb, Verb::Gc | Verb::Init | Verb::Deinit);
        let held = match changes {
            true => envelope.wait(self.0.locks.network(network.name())).await?,
            false => Held::Nothing,
        };
        let asked = Asked { shared: Arc::clone(&self.0), network, subject: Subject::default(), envelope };
        self.run(verb, asked, held, Unheard::Stays, work).await
    }

    async fn run<T: Send + 'static>(
        &self,
        verb: Verb,
        asked: Asked,
        held: Held,
        unheard: Unheard,
        work: impl FnOnce(&Chain<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Status> {
        let asked = Arc::new(asked);
        let once_more = Arc::clone(&asked);
        let span = asked.envelope.trace.span(verb.name());
        let (work_in, undo_in) = (span.clone(), span);
        let work = move || {
            trace::within(&work_in, || {
                let done = asked.with(work);
                log(verb, &asked, done.as_ref().err());
                done
            })
        };
        // The locks are held, and the place is taken, until all of it is done.
        let undo = move || {
            let _entered = undo_in.enter();
            if let Unheard::Deleted(made) = unheard
                && made.load(Ordering::Relaxed)
            {
                let deleted = once_more.with(|chain| chain.delete());
                log(Verb::Del, &once_more, deleted.err().as_ref());
            }
            drop((held, once_more));
        };
        Ok(on_thread(work, undo).await?)
    }

    /// A call that no plugin does. What is `held` is let go when it is done.
    async fn own<T: Send + 'static>(
        &self,
        name: &'static str,
        (envelope, held): (Envelope, Held),
        work: impl FnOnce(&Shared) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Status> {
        let (shared, span) = (Arc::clone(&self.0), envelope.trace.span(name));
        let caller = envelope.caller;
        let work = move || {
            trace::within(&span, || {
                work(&shared).inspect_err(|failure| log_failure(name, caller, ("", "", ""), failure))
            })
        };
        Ok(on_thread(work, move || drop((held, envelope))).await?)
    }
}

#[async_trait]
impl CniService for Calls {
    type WatchStream = BoxStream<WatchResponse>;

    async fn add(&self, request: Request<AddRequest>) -> Result<Response<AddResponse>, Status> {
        let (envelope, AddRequest { network, attachment, sandbox }) = Envelope::open(request);
        let asked = (Verb::Add, envelope);
        let made = Arc::new(AtomicBool::new(false));
        let unheard = Unheard::Deleted(Arc::clone(&made));
        let work = move |chain: &Chain<'_>| {
            let Added { result, is_new } = chain.add()?;
            made.store(is_new, Ordering::Relaxed);
            Ok(result)
        };
        let result = self.of_attachment(asked, network, attachment, (sandbox, unheard), work).await?;
        Ok(Response::new(AddResponse { result }))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        let (envelope, DeleteRequest { network, attachment, sandbox }) = Envelope::open(request);
        envelope.caller.must_be_allowed_to(Verb::Del.name())?;
        // Nothing has ever been made of it.
        if attachment.as_ref().is_some_and(|key| key.container_id.len() > NAME_MAX) {
            return Ok(Response::new(DeleteResponse {}));
        }
        let asked = (Verb::Del, envelope);
        self.of_attachment(asked, network, attachment, (sandbox, Unheard::Stays), |chain| chain.delete())
            .await?;
        Ok(Response::new(DeleteResponse {}))
    }

    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let (envelope, CheckRequest { network, attachment, sandbox }) = Envelope::open(request);
        let asked = (Verb::Check, envelope);
        self.of_attachment(asked, network, attachment, (sandbox, Unheard::Stays), |chain| chain.check())
            .await?;
        Ok(Response::new(CheckResponse {}))
    }

    async fn finalize(
        &self,
        request: Request<FinalizeRequest>,
    ) -> Result<Response<FinalizeResponse>, Status> {
        let (envelope, FinalizeRequest { network, attachment, sandbox }) = Envelope::open(request);
        let asked = (Verb::Finalize, envelope);
        self.of_attachment(asked, network, attachment, (sandbox, Unheard::Stays), |chain| chain.finalize())
            .await?;
        Ok(Response::new(FinalizeResponse {}))
    }

    async fn garbage_collect(
        &self,
        request: Request<GarbageCollectRequest>,
    ) -> Result<Response<GarbageCollectResponse>, Status> {
        let (envelope, GarbageCollectRequest { network, valid_attachments }) = Envelope::open(request);
        envelope.caller.must_be_allowed_to(Verb::Gc.name())?;
        let network = Network::of(network, envelope.caller)?;
        if let Some(valid) = valid_attachments {
            let collect = move |chain: &Chain<'_>| chain.collect(&valid.attachments);
            self.of_network((Verb::Gc, envelope), network, collect).await?;
        }
        Ok(Response::new(GarbageCollectResponse {}))
    }

    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let (envelope, StatusRequest { network }) = Envelope::open(request);
        let network = Network::of(network, envelope.caller)?;
        self.of_network((Verb::Status, envelope), network, |chain| chain.status()).await?;
        Ok(Response::new(StatusResponse {}))
    }

    async fn version(&self, _: Request<VersionRequest>) -> Result<Response<VersionResponse>, Status> {
        let all = Version::ALL.iter().map(|version| version.as_str().to_owned());
        Ok(Response::new(VersionResponse {
            cni_version: Version::NEWEST.as_str().to_owned(),
            supported_versions: all.collect(),
        }))
    }

    async fn capacity(
        &self,
        request: Request<CapacityRequest>,
    ) -> Result<Response<CapacityResponse>, Status> {
        let (envelope, CapacityRequest {}) = Envelope::open(request);
        let node = Network::Given(NetworkList::read(NODE)?);
        let capacity = self.of_network((Verb::Capacity, envelope), node, |chain| chain.capacity()).await?;
        Ok(Response::new(CapacityResponse { capacity }))
    }

    async fn validate(
        &self,
        request: Request<ValidateRequest>,
    ) -> Result<Response<ValidateResponse>, Status> {
        let (envelope, ValidateRequest { network }) = Envelope::open(request);
        let network = Network::of(network, envelope.caller)?;
        self.of_network((Verb::Validate, envelope), network, |chain| chain.validate()).await?;
        Ok(Response::new(ValidateResponse {}))
    }

    async fn init(&self, request: Request<InitRequest>) -> Result<Response<InitResponse>, Status> {
        let (envelope, InitRequest { network }) = Envelope::open(request);
        envelope.caller.must_be_allowed_to(Verb::Init.name())?;
        let network = Network::of(network, envelope.caller)?;
        self.of_network((Verb::Init, envelope), network, |chain| chain.shared(Verb::Init)).await?;
        Ok(Response::new(InitResponse {}))
    }

    async fn deinit(&self, request: Request<DeinitRequest>) -> Result<Response<DeinitResponse>, Status> {
        let (envelope, DeinitRequest { network }) = Envelope::open(request);
        envelope.caller.must_be_allowed_to(Verb::Deinit.name())?;
        let network = Network::of(network, envelope.caller)?;
        self.of_network((Verb::Deinit, envelope), network, |chain| chain.shared(Verb::Deinit)).await?;
        Ok(Response::new(DeinitResponse {}))
    }

    async fn register_network(
        &self,
        request: Request<RegisterNetworkRequest>,
    ) -> Result<Response<RegisterNetworkResponse>, Status> {
        let (mut envelope, RegisterNetworkRequest { config_list }) = Envelope::open(request);
        envelope.caller.must_be_allowed_to("register a network")?;
        let list = NetworkList::read(&config_list)?;
        check_name(&list.name)?;
        let name = list.name.clone();
        let held = envelope.wait(self.0.locks.network(&name)).await?;
        let register = move |shared: &Shared| shared.networks.register(&list);
        self.own("RegisterNetwork", (envelope, held), register).await?;
        Ok(Response::new(RegisterNetworkResponse { name }))
    }

    async fn list_networks(
        &self,
        request: Request<ListNetworksRequest>,
    ) -> Result<Response<ListNetworksResponse>, Status> {
        let (envelope, ListNetworksRequest {}) = Envelope::open(request);
        let names = |shared: &Shared| Ok(shared.networks.names());
        let names = self.own("ListNetworks", (envelope, Held::Nothing), names).await?;
        Ok(Response::new(ListNetworksResponse { names }))
    }

    async fn list_attachments(
        &self,
        request: Request<ListAttachmentsRequest>,
    ) -> Result<Response<ListAttachmentsResponse>, Status> {
        let (envelope, ListAttachmentsRequest { network, page_size, page_token }) = Envelope::open(request);
        let size = usize::try_from(page_size).unwrap_or_default();
        let page = move |shared: &Shared| Ok(shared.cache.page(&network, size, &page_token));
        let (attachments, next) = self.own("ListAttachments", (envelope, Held::Nothing), page).await?;
        let next_page_token = next.unwrap_or_default();
        Ok(Response::new(ListAttachmentsResponse { attachments, next_page_token }))
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let events = &self.0.events;
        let place = Watchers::place(request.extensions());
        let patience = deadline::given(request.metadata().as_ref());
        // The request has the place of a call, which ends here.
        let WatchRequest { resume_token } = request.into_inner();
        let Some(place) = place else {
            return Err(Failure::new(codes::TRY_AGAIN, "there are too many watchers, try again").into());
        };
        let Some(position) = events.position(&resume_token) else {
            return Err(Status::invalid_argument(format!(
                "`{resume_token}` is no token of Watch's responses"
            )));
        };
        let mut response = Response::new(watching::stream(Arc::clone(events), position, patience, place));
        response.extensions_mut().insert(Streamed);
        Ok(response)
    }

    async fn invoke(&self, request: Request<InvokeRequest>) -> Result<Response<InvokeResponse>, Status> {
        Ok(Response::new(invoke(&self.0, request).await?))
    }

    async fn unregister_network(
        &self,
        request: Request<UnregisterNetworkRequest>,
    ) -> Result<Response<UnregisterNetworkResponse>, Status> {
        let (mut envelope, UnregisterNetworkRequest { name }) = Envelope::open(request);
        envelope.caller.must_be_allowed_to("unregister a network")?;
        if name.len() > NAME_MAX || check_identifier("network name", &name).is_err() {
            let why = "`name` is no network's name";
            return Err(Failure::new(codes::INVALID_CONFIG, why).into());
        }
        let held = envelope.wait(self.0.locks.network(&name)).await?;
        let unregister = move |shared: &Shared| shared.unregister(&name);
        self.own("UnregisterNetwork", (envelope, held), unregister).await?;
        Ok(Response::new(UnregisterNetworkResponse {}))
    }
}
