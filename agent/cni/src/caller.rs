//! Who calls, and what it may do. The server puts it into each request's extensions.

use tonic::{Extensions, Status};

use crate::shares::{Bound, Permit};

/// The process at the other end of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caller {
    /// Its user's id.
    pub(crate) user: u32,
    /// Its id, where it is in the agent's PID namespace.
    pub(crate) process: Option<u32>,
    /// Root may; a member of the group may only ask.
    pub(crate) may_change: bool,
}

/// The places of those that watch, of root or of the group's members.
#[derive(Clone, Debug)]
pub(crate) struct Watchers(pub(crate) Bound);

impl Watchers {
    /// A place for the one who sent a request; none where all are taken.
    pub(crate) fn place(extensions: &Extensions) -> Option<Permit> {
        extensions.get::<Self>()?.0.take(Caller::of(extensions).user)
    }
}

impl Caller {
    /// The one of a request. One that nobody has put there may nothing.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().copied().unwrap_or_default()
    }

    /// # Errors
    /// `PERMISSION_DENIED`, with what a member of the group may do.
    pub(crate) fn must_be_allowed_to(self, what: &str) -> Result<(), Status> {
        if self.may_change {
            return Ok(());
        }
        Err(Status::permission_denied(format!(
            "only root may {what}; members of the group may ask for Status and Validate of registered networks, \
             Version, Capacity, ListNetworks, ListAttachments and Watch"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_is_told_what_it_may() {
        let refused = Caller::default().must_be_allowed_to("ADD").unwrap_err();
        for call in ["Status", "Validate", "Version", "ListNetworks", "ListAttachments", "Watch"] {
            assert!(refused.message().contains(call), "{refused:?}");
        }
        Caller { may_change: true, ..Caller::default() }.must_be_allowed_to("ADD").unwrap();
    }
}
