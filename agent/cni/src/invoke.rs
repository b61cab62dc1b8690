//! One call of one plugin, for the program that a runtime has run: what comes back is what it prints.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use shunt::call::{Verb, Version, check_identifier, check_interface};
use shunt::config::Config;
use shunt::{Reply, Setting};
use tonic::{Request, Status};

use crate::asked::{Envelope, Shared};
use crate::failure::{Failure, logged};
use crate::files::NAME_MAX;
use crate::locks::Held;
use crate::plugin;
use crate::proto::v1::invoke_response::Outcome;
use crate::proto::v1::{Error, InvokeRequest, InvokeResponse};
use crate::settings::Settings;
use crate::subject::Subject;
use crate::trace::Trace;
use crate::work::on_thread;

/// Does the call. A plugin that fails is an answer.
///
/// # Errors
/// `PERMISSION_DENIED` for all but root, `INVALID_ARGUMENT` for what no program of ours would send.
pub(crate) async fn invoke(
    shared: &Arc<Shared>,
    request: Request<InvokeRequest>,
) -> Result<InvokeResponse, Status> {
    let (mut envelope, mut request) = Envelope::open(request);
    envelope.caller.must_be_allowed_to("have a plugin called")?;
    let verb: Verb =
        request.command.parse().map_err(|_| Status::invalid_argument("`command` is no verb of CNI"))?;
    // What is wrong with it the procedure says.
    let value = Config::parse(&request.config).unwrap_or_default();
    let version = Config::version_of(&value);
    let network = value["name"].as_str().unwrap_or_default().to_owned();
    // A namespace that is gone is the procedure's to judge.
    if let Err(refused) = allow(&shared.settings, verb, &mut request.netns) {
        return Ok(answer(refused));
    }
    let held = match hold(shared, &mut envelope, verb, (&network, &request)).await {
        Ok(held) => held,
        Err(busy) => return Ok(answer(busy)),
    };
    // Its names are checked then, and may be a file's.
    let is_attachment = matches!(held, Held::Attachment { .. });
    let (shared, caller) = (Arc::clone(shared), envelope.caller.process);
    let span = envelope.trace.span(verb.name());
    let variables = variables(&request, &shared.settings, &envelope.trace);
    let work = move || {
        let _entered = span.enter();
        let setting = Setting { caller, runtime: Some(request.runtime), ..plugin::setting(&shared.settings) };
        let name = PathBuf::from(&request.plugin);
        let done = plugin::procedure(&setting, &name, &variables, &request.config);
        let is_done = matches!(done, Ok(Reply::Done(_)));
        if is_done && is_attachment && verb == Verb::Add {
            is_another_s(&shared, &network, &request.container_id, &request.ifname);
        }
        if !is_done {
            shunt_trace::has_failed(&span, "the plugin has failed");
        }
        let (network, container, ifname) =
            (logged(&network), logged(&request.container_id), logged(&request.ifname));
        tracing::debug!(verb = verb.name(), %network, %container, %ifname, is_done, "a plugin was called");
        done
    };
    // Whoever comes after it waits until it is over.
    let over = move || drop((held, envelope));
    respond(on_thread(work, over).await, version)
}

/// The answer to what the procedure has said.
fn respond(done: Result<Reply, Failure>, version: Version) -> Result<InvokeResponse, Status> {
    let outcome = match done {
        Ok(Reply::Done(text)) => Outcome::Done(text.into_bytes()),
        Ok(Reply::Failed(text)) => Outcome::Failed(text.into_bytes()),
        Ok(Reply::About) => return Err(Status::invalid_argument("`command` is empty")),
        Err(failure) if failure.is_fault() => Outcome::Failed(printed(failure, version)),
        Err(failure) => return Ok(answer(failure)),
    };
    Ok(InvokeResponse { outcome: Some(outcome) })
}

/// Checks the namespace. DEL goes without one that is a link.
fn allow(settings: &Settings, verb: Verb, netns: &mut String) -> Result<(), Failure> {
    if netns.is_empty() {
        return Ok(());
    }
    if verb != Verb::Del {
        return settings.namespace(netns).map(drop);
    }
    if settings.namespace_to_leave(netns)?.is_none() {
        netns.clear();
    }
    Ok(())
}

/// What an `Add` has begun before is not its own any more: a DEL of it would be one of this attachment.
fn is_another_s(shared: &Shared, network: &str, container: &str, ifname: &str) {
    let (container, ifname) = (container.to_owned(), ifname.to_owned());
    let subject = Subject { container, ifname, ..Subject::default() };
    if let Err(failure) = shared.begun.remove(network, &subject) {
        let error = &*logged(&failure.msg);
        tracing::warn!(error, "the mark of an ADD before could not be removed");
    }
}

/// Waits for those that it must not meet.
async fn hold(
    shared: &Shared,
    envelope: &mut Envelope,
    verb: Verb,
    (network, request): (&str, &InvokeRequest),
) -> Result<Held, Failure> {
    let InvokeRequest { container_id, ifname, .. } = request;
    let is_name = |name: &str| check_identifier("name", name).is_ok() && name.len() <= NAME_MAX;
    match verb {
        Verb::Add | Verb::Del | Verb::Check | Verb::Finalize
            if is_name(network) && is_name(container_id) && check_interface(ifname).is_ok() =>
        {
            envelope.wait(shared.locks.attachment(network, container_id, ifname)).await
        }
        Verb::Gc | Verb::Init | Verb::Deinit if is_name(network) => {
            envelope.wait(shared.locks.network(network)).await
        }
        _ => Ok(Held::Nothing),
    }
}

fn variables(request: &InvokeRequest, settings: &Settings, trace: &Trace) -> Vec<(&'static str, OsString)> {
    let InvokeRequest { command, container_id, netns, ifname, args, netns_override, .. } = request;
    let mut variables = plugin::environment([command, container_id, netns, ifname, args], settings, trace);
    variables.push(("CNI_NETNS_OVERRIDE", if *netns_override { "1" } else { "" }.into()));
    variables
}

fn answer(Failure { code, msg, details }: Failure) -> InvokeResponse {
    InvokeResponse { outcome: Some(Outcome::Refused(Error { code, msg, details })) }
}

/// As the plugin would print it.
fn printed(Failure { code, msg, details }: Failure, version: Version) -> Vec<u8> {
    let failure = shunt::call::Failure { version: version.as_str().to_owned(), code, msg, details };
    serde_json::to_vec_pretty(&failure).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::Value;

    use super::*;
    use crate::cache::Cached;
    use crate::failure::codes;
    use crate::list::NetworkList;

    #[test]
    fn the_mark_of_an_add_before_goes_with_an_attachment_that_invoke_has_made() {
        let folder = tempfile::tempdir().unwrap();
        let shared = Shared::within(folder.path());
        let list =
            NetworkList::read(br#"{"cniVersion":"1.1.0","name":"net","plugins":[{"type":"x"}]}"#).unwrap();
        let of = |container: &str| Subject {
            container: container.to_owned(),
            ifname: "eth0".to_owned(),
            ..Subject::default()
        };
        for container in ["a", "b"] {
            shared.begun.write(&Cached::of(&list, &of(container), (None, Value::Null))).unwrap();
        }
        assert_eq!(
            shared.unregister("net").unwrap_err().code,
            codes::EXISTS,
            "what is begun is to be deleted"
        );
        is_another_s(&shared, "net", "a", "eth0");
        assert!(shared.begun.read("net", &of("a")).is_none());
        assert!(shared.begun.read("net", &of("b")).is_some());
    }

    #[test]
    fn a_link_is_refused_but_of_del_which_goes_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Shared::within(folder.path()).settings;
        symlink("elsewhere", folder.path().join("link")).unwrap();
        let mut netns = folder.path().join("link").to_str().unwrap().to_owned();
        for verb in [Verb::Add, Verb::Check] {
            assert_eq!(allow(&settings, verb, &mut netns).unwrap_err().code, codes::INVALID_NETNS);
        }
        allow(&settings, Verb::Del, &mut netns).unwrap();
        assert_eq!(netns, "");
        let mut outside = "/proc/self/ns/net".to_owned();
        allow(&settings, Verb::Del, &mut outside).unwrap_err();
    }
}
