//! A call, read and checked, and what doing it takes.

use std::borrow::Cow;
use std::sync::Arc;

use shunt::call::{check_identifier, check_length};
use tonic::{Request, Status};

use crate::cache::Cache;
use crate::caller::Caller;
use crate::chain::Chain;
use crate::event_log::EventLog;
use crate::failure::{Failure, codes};
use crate::gate::{self, Place};
use crate::list::NetworkList;
use crate::locks::Locks;
use crate::netns_id;
use crate::networks::Networks;
use crate::plugin::Surroundings;
use crate::proto::v1;
use crate::proto::v1::network::Source;
use crate::settings::Settings;
use crate::subject::Subject;
use crate::trace::Trace;

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) cache: Cache,
    /// ADDs that are not finished, as if they were results.
    pub(crate) begun: Cache,
    pub(crate) networks: Networks,
    pub(crate) locks: Locks,
    pub(crate) events: Arc<EventLog>,
}

#[cfg(test)]
impl Shared {
    /// With everything in one directory.
    pub(crate) fn within(folder: &std::path::Path) -> Self {
        Self {
            settings: Settings {
                agent_socket: folder.join("agent.sock"),
                cni_path: Vec::new(),
                cache_dir: folder.to_owned(),
                networks_dir: folder.join("networks"),
                netns_dirs: vec![folder.to_owned()],
                program_limit: std::time::Duration::ZERO,
            },
            cache: Cache::in_directory(folder),
            begun: Cache::of_begun(folder),
            networks: Networks::in_directory(&folder.join("networks")),
            locks: Locks::default(),
            events: Arc::new(EventLog::new()),
        }
    }
}

impl Shared {
    /// Forgets a network that has no attachment.
    pub(crate) fn unregister(&self, name: &str) -> Result<(), Failure> {
        let mut attachments = self.cache.of_network(name);
        attachments.extend(self.begun.of_network(name));
        if let Some(one) = attachments.first() {
            let why = format!(
                "the network {name} has {} attachments, made or begun, {} of {} among them: delete them first",
                attachments.len(),
                one.if_name,
                one.container_id
            );
            return Err(Failure::new(codes::EXISTS, why));
        }
        self.networks.unregister(name)
    }
}

/// Which list a call is about.
#[derive(Debug)]
pub(crate) enum Network {
    Registered(String),
    Given(NetworkList),
}

impl Network {
    /// # Errors
    /// Code 7 where there is none; `PERMISSION_DENIED` for a list of a caller's own that may only ask: its plugins would do what it says.
    pub(crate) fn of(network: Option<v1::Network>, caller: Caller) -> Result<Self, Status> {
        match network.and_then(|network| network.source) {
            Some(Source::Name(name)) => {
                check_name(&name)?;
                Ok(Self::Registered(name))
            }
            Some(Source::ConfigList(raw)) => {
                caller.must_be_allowed_to("give a configuration list")?;
                Ok(Self::Given(NetworkList::read(&raw)?))
            }
            None => Err(Failure::new(codes::INVALID_CONFIG, "the request names no network").into()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Registered(name) => name,
            Self::Given(list) => &list.name,
        }
    }

    fn list(&self, networks: &Networks) -> Result<Cow<'_, NetworkList>, Failure> {
        match self {
            Self::Registered(name) => networks.read(name).map(Cow::Owned),
            Self::Given(list) => Ok(Cow::Borrowed(list)),
        }
    }
}

/// Checks the name of a network, before anything is done with it.
///
/// # Errors
/// Code 7.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let checked = check_length("network name", name).and_then(|()| check_identifier("network name", name));
    checked.map_err(|error| Failure::new(codes::INVALID_CONFIG, error.to_string()))
}

/// A request without its message.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) caller: Caller,
    place: Option<Place>,
    pub(crate) trace: Trace,
}

impl Envelope {
    /// Takes a request apart.
    pub(crate) fn open<M>(request: Request<M>) -> (Self, M) {
        let (metadata, extensions, message) = request.into_parts();
        let caller = Caller::of(&extensions);
        (Self { caller, place: extensions.get::<Place>().cloned(), trace: Trace::of(&metadata) }, message)
    }

    /// Waits for calls that this one must not meet, as [`gate::wait`].
    ///
    /// # Errors
    /// Code 11.
    pub(crate) async fn wait<T>(&mut self, others: impl Future<Output = T>) -> Result<T, Failure> {
        gate::wait(self.place.as_ref(), others).await
    }
}

/// A call.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) shared: Arc<Shared>,
    pub(crate) network: Network,
    pub(crate) subject: Subject,
    pub(crate) envelope: Envelope,
}

impl Asked {
    /// Does something with the network's chain.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&Chain<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        let Self { shared, network, subject, envelope } = self;
        let list = network.list(&shared.networks)?;
        let at = Surroundings {
            settings: &shared.settings,
            subject,
            trace: &envelope.trace,
            caller: envelope.caller.process,
        };
        work(&Chain { list: &list, cache: &shared.cache, begun: &shared.begun, at, netns_id: netns_id::of })
    }
}
