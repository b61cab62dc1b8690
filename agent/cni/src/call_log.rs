//! What the log says of calls.

use shunt::call::Verb;

use crate::asked::Asked;
use crate::caller::Caller;
use crate::failure::{Failure, logged};
use crate::subject::Subject;

/// That a call was done, or has failed.
pub(crate) fn log(verb: Verb, asked: &Asked, failure: Option<&Failure>) {
    let Asked { network, subject, envelope, .. } = asked;
    let (verb, network, Subject { container, ifname, .. }) = (verb.name(), network.name(), subject);
    match failure {
        None => tracing::debug!(verb, network, container, ifname, "a call of CNI was done"),
        Some(failure) => log_failure(verb, envelope.caller, (network, container, ifname), failure),
    }
}

/// A member of the group, who changes nothing, fills no log.
pub(crate) fn log_failure(
    verb: &str,
    caller: Caller,
    (network, container, ifname): (&str, &str, &str),
    failure: &Failure,
) {
    let (code, error) = (failure.code, &*logged(&failure.msg));
    if caller.may_change {
        tracing::info!(verb, network, container, ifname, code, error, "a call of CNI has failed");
    } else {
        let user = caller.user;
        tracing::debug!(verb, network, user, code, error, "a call of CNI has failed");
    }
}
