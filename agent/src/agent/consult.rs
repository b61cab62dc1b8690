//! Who is asked before a pod's container is attached, beside the agent's thread: it may take as long as a server.

use std::fmt::Debug;
use std::pin::Pin;

use shunt_agent_api::{AgentError, Pod, Request};

/// An answer that takes a while.
pub(crate) type Consultation<'a> = Pin<Box<dyn Future<Output = Result<(), AgentError>> + Send + 'a>>;

/// Who may refuse a pod's container.
pub(crate) trait Consult: Debug + Send + Sync {
    /// Whether a container of this pod may be attached, in bounded time.
    ///
    /// # Errors
    /// Why not.
    fn before_attach<'a>(&'a self, pod: &'a Pod) -> Consultation<'a>;
}

/// The pod of a request that attaches; none where the runtime has not said which.
pub(super) fn pod_of(request: &Request) -> Option<&Pod> {
    let (Request::Attach { port, .. }
    | Request::Adopt { port }
    | Request::Restore { port }
    | Request::Update { port, .. }) = request
    else {
        return None;
    };
    port.pod.as_ref().filter(|pod| ![&pod.namespace, &pod.name, &pod.uid].into_iter().any(String::is_empty))
}
