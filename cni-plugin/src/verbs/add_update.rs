//! ADD of an attachment that is there already.

use crate::attach::{Alias, AttachError, Node, Sandbox};
use crate::config::{Bridge, Config};
use crate::error::Error;
use crate::netlink::{Link, Selector};
use crate::protocol::Call;
use crate::result::AddResult;

/// Updates the attachment if it is this one and `updateExisting` says so; else it is in the way.
pub(crate) fn update(
    config: &Config,
    call: &Call,
    _bridge: &Bridge,
    node: &mut Node,
    _sandbox: &mut Sandbox,
    existing: &Link,
) -> Result<AddResult, Error> {
    let key = crate::attach::key(config, call);
    let host = match existing.peer {
        Some(peer) => node.link(Selector::Index(peer))?,
        None => None,
    };
    let owner = host.as_ref().and_then(|host| host.alias.as_deref()).and_then(Alias::read);
    if owner.as_ref() == Some(&key) {
        return Err(AttachError::Attached(key).into());
    }
    Err(AttachError::InterfaceExists(call.ifname.clone()).into())
}
