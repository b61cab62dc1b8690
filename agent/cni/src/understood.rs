//! A message as the server reads it, without anything that follows: for whoever looks for messages that break it.

use prost::Message;

use crate::asked::Network;
use crate::caller::Caller;
use crate::draft;
use crate::failure::{Failure, codes};
use crate::list::NetworkList;
use crate::proto::v1;
use crate::subject::Subject;

/// A caller that may everything, so that all of a message is read.
const ROOT: Caller = Caller { user: 0, process: None, may_change: true };

/// Messages that have something to be read, by their methods. The others are empty, or a name.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// And every other call about an attachment, whose messages are the same.
    Add,
    /// And every other call about a network.
    Status,
    /// A list that is stored.
    RegisterNetwork,
    /// The draft's, and its `DeleteAttachment`.
    DraftAdd,
    /// The draft's.
    DraftRegister,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Add, Self::Status, Self::RegisterNetwork, Self::DraftAdd, Self::DraftRegister];
}

/// What each plugin of the message's list would be given: JSON objects. None where the message names a registered network.
///
/// # Errors
/// What the client would be told: code 6 for bytes that are no message.
pub fn understand(method: Method, message: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
    match method {
        Method::Add => {
            let v1::AddRequest { network, attachment, sandbox } = decoded(message)?;
            given(network, &Subject::of(attachment, sandbox)?)
        }
        Method::Status => given(decoded::<v1::StatusRequest>(message)?.network, &Subject::default()),
        Method::RegisterNetwork => {
            stored(&decoded::<v1::RegisterNetworkRequest>(message)?.config_list, &Subject::default())
        }
        Method::DraftAdd => {
            let pod = draft::pod_of(decoded(message)?)?;
            given(
                pod.network.map(|source| v1::Network { source: Some(source) }),
                &Subject::of(Some(pod.attachment), Some(pod.sandbox))?,
            )
        }
        Method::DraftRegister => stored(&draft::list_of(decoded(message)?)?, &Subject::default()),
    }
}

fn decoded<M: Message + Default>(message: &[u8]) -> Result<M, Failure> {
    M::decode(message).map_err(|error| Failure::new(codes::DECODING, error.to_string()))
}

fn given(network: Option<v1::Network>, subject: &Subject) -> Result<Vec<Vec<u8>>, Failure> {
    let refused = |status: tonic::Status| match Failure::of_status(&status) {
        Ok(Some(failure)) => failure,
        _ => Failure::new(codes::OTHER, status.message()),
    };
    // As variables of an environment they are text without a byte 0.
    debug_assert!(!subject.cni_args().contains('\0'));
    match Network::of(network, ROOT).map_err(refused)? {
        Network::Registered(_) => Ok(Vec::new()),
        Network::Given(list) => stored(&list.raw, subject),
    }
}

fn stored(raw: &[u8], subject: &Subject) -> Result<Vec<Vec<u8>>, Failure> {
    let list = NetworkList::read(raw)?;
    let plugins = list.plugins.iter();
    Ok(plugins.map(|config| config.given(&list, &subject.capability_args, None)).collect())
}
