//! Programs as filters of the clsact qdisc, for kernels without tcx.
//!
//! Filters survive the agent. The agent's have a fixed preference and handle and the program's name, by which the next agent finds them.
//! The qdisc and other filters may belong to others and are never removed.

use aya::programs::tc::{
    NlOptions, SchedClassifierLink, TcAttachOptions, TcError, TcHandle, qdisc_add_clsact,
};
use aya::programs::{Link as _, ProgramError, SchedClassifier, TcAttachType};
use nix::libc;
use shunt_netlink::tc::{CLSACT_EGRESS, CLSACT_INGRESS, Filter, filters};
use shunt_netlink::{Connection, NetlinkError};

use super::hook::{Hook, Program};

/// The agent's preference: behind other users' usual filters, so that their policies apply first.
const PRIORITY: u16 = 1000;

/// The preference of programs that run behind another of the agent's.
const PRIORITY_BEHIND: u16 = PRIORITY + 1;

/// The preference of the guards, behind those.
const PRIORITY_LAST: u16 = PRIORITY + 2;

const HANDLE: TcHandle = TcHandle::new(0, 0x5348);

/// Why a filter could not be made, taken over or removed.
#[derive(Debug, thiserror::Error)]
pub enum ClsactError {
    /// The kernel refused.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The filters cannot be listed.
    #[error(transparent)]
    List(#[from] NetlinkError),
    /// The interface has gone.
    #[error(transparent)]
    Interface(#[from] std::io::Error),
    /// Another user's filter has the agent's preference and handle.
    #[error("the filter {name:?} has the agent's preference and handle on {hook}")]
    Taken {
        /// Where.
        hook: Hook,
        /// Whose.
        name: String,
    },
}

/// Replaces the program of the agent's filter atomically. Returns false if there is no such filter.
///
/// # Errors
/// [`ClsactError`].
pub fn adopt(
    socket: &mut Connection,
    program: &mut SchedClassifier,
    hook: &Hook,
) -> Result<bool, ClsactError> {
    if find(socket, hook)?.is_none() {
        return Ok(false);
    }
    let id = program.attach_to_link(ours(hook)?)?;
    keep(program.take_link(id)?);
    Ok(true)
}

/// Adds the qdisc if it is missing, and the filter. An existing filter of the agent gets the program.
///
/// # Errors
/// [`ClsactError`]; no new filter stays behind.
pub fn attach(
    socket: &mut Connection,
    program: &mut SchedClassifier,
    hook: &Hook,
) -> Result<(), ClsactError> {
    match qdisc_add_clsact(&hook.ifname) {
        Err(TcError::NetlinkError(error)) if error.raw_os_error() == Some(libc::EEXIST) => {}
        other => other.map_err(ProgramError::from)?,
    }
    let options = NlOptions { priority: priority(hook.program), handle: HANDLE, classid: None };
    let options = TcAttachOptions::Netlink(options);
    match program.attach_with_options(&hook.ifname, hook.program.direction(), options) {
        Ok(id) => {
            keep(program.take_link(id)?);
            Ok(())
        }
        Err(ProgramError::TcError(TcError::NetlinkError(error)))
            if error.raw_os_error() == Some(libc::EEXIST) && adopt(socket, program, hook)? =>
        {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes the agent's filter; it, or the interface, may be gone already. Another user's filter is kept.
///
/// # Errors
/// [`ClsactError`].
pub fn detach(socket: &mut Connection, hook: &Hook) -> Result<(), ClsactError> {
    match find(socket, hook) {
        Ok(Some(_)) => Ok(ours(hook)?.detach()?),
        Ok(None) | Err(ClsactError::Taken { .. }) => Ok(()),
        Err(ClsactError::List(error)) if error.is_missing() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Queries the kernel for the agent's filter on this hook.
///
/// # Errors
/// [`ClsactError::Taken`] if another user's filter has its preference and handle.
pub fn find(socket: &mut Connection, hook: &Hook) -> Result<Option<Filter>, ClsactError> {
    let parent =
        if hook.program.direction() == TcAttachType::Ingress { CLSACT_INGRESS } else { CLSACT_EGRESS };
    let filters = filters(socket, hook.ifindex, parent)?;
    let ours =
        filters.into_iter().find(|filter| is_ours(filter) && filter.priority == priority(hook.program));
    match ours {
        Some(filter) if filter.name != hook.program.name() => {
            Err(ClsactError::Taken { hook: hook.clone(), name: filter.name })
        }
        found => Ok(found),
    }
}

/// Whether the agent's filter is on this hook. On an interface that is gone there is none.
///
/// # Errors
/// The filters cannot be listed.
pub fn is_there(socket: &mut Connection, hook: &Hook) -> Result<bool, ClsactError> {
    match find(socket, hook) {
        Err(ClsactError::Taken { .. }) => Ok(false),
        Err(ClsactError::List(error)) if error.is_missing() => Ok(false),
        found => Ok(found?.is_some()),
    }
}

/// Whether this filter has the agent's preference and handle.
pub(crate) fn is_ours(filter: &Filter) -> bool {
    (PRIORITY..=PRIORITY_LAST).contains(&filter.priority) && filter.handle == u32::from(HANDLE)
}

fn priority(program: Program) -> u16 {
    match program {
        // An uplink with addresses of the node also runs `from_wire` and `to_wire`.
        Program::FromMapped
        | Program::FromTrunk
        | Program::ToTrunk
        | Program::FromUplink
        | Program::ToWire
        | Program::ToTunnel => PRIORITY_BEHIND,
        Program::GuardFrom | Program::GuardTo => PRIORITY_LAST,
        _ => PRIORITY,
    }
}

/// Whether other users have filters on an interface's ingress and egress.
///
/// # Errors
/// Netlink's.
pub fn others(socket: &mut Connection, ifindex: u32) -> Result<(bool, bool), NetlinkError> {
    let mut has_others = |parent| {
        filters(socket, ifindex, parent).map(|filters| filters.iter().any(|filter| !is_ours(filter)))
    };
    Ok((has_others(CLSACT_INGRESS)?, has_others(CLSACT_EGRESS)?))
}

fn ours(hook: &Hook) -> Result<SchedClassifierLink, std::io::Error> {
    SchedClassifierLink::attached(
        &hook.ifname,
        hook.program.direction(),
        priority(hook.program),
        HANDLE,
        None,
    )
}

/// Dropping the link would detach the filter.
fn keep(link: SchedClassifierLink) {
    std::mem::forget(link);
}
