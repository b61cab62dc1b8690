//! Limits of a port: a token bucket in each direction, on the sending side of the veth.
//!
//! Towards the container it is the root qdisc of the host's end, and the station is marked as queued, so that the fast path uses the queue.
//! From the container it is the root qdisc of the container's end: the backlog is the sender's own, and its sockets see back pressure. The
//! container may remove that qdisc, so the program on the host's end polices what exceeds the limit.

use std::path::Path;

use nix::errno::Errno;
use shunt_agent_api::{BridgePort, Rate};
use shunt_netlink::link::links;
use shunt_netlink::namespace::connect_within;
use shunt_netlink::tc::{self, CLASS, Classifier, HANDLE};
use shunt_netlink::{Connection, NetlinkError};

use super::Kernel;
use super::error::{KernelError, LimitError};
use crate::limits::bucket::Bucket;
use crate::limits::subnets::{End, Instruction, Subnets};

impl Kernel {
    /// Applies the limit towards the container only.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn limit_ingress(&mut self, port: &BridgePort) -> Result<(), KernelError> {
        let Some(limit) = port.bandwidth.ingress else { return Ok(()) };
        let set = shape(&mut self.route, port.host.index, limit, port, End::Source);
        Ok(set.map_err(shaped(&port.host.name))?)
    }

    /// Applies or changes a port's limits.
    ///
    /// # Errors
    /// The kernel refuses; one direction may be limited.
    pub fn limit(&mut self, port: &BridgePort) -> Result<(), KernelError> {
        self.limit_ingress(port)?;
        Ok(limit_egress(port)?)
    }

    /// Removes the limits of `was` that `now` lacks; without `now`, all. Continues after errors. The limit in
    /// a deleted container is gone already.
    pub fn unlimit(&mut self, was: &BridgePort, now: Option<&BridgePort>) -> Vec<KernelError> {
        let stays = |direction: fn(&BridgePort) -> bool| now.is_some_and(direction);
        let mut errors = Vec::new();
        if was.bandwidth.ingress.is_some() && !stays(|port| port.bandwidth.ingress.is_some()) {
            let cleared = tc::clear_root(&mut self.route, was.host.index);
            errors.extend(cleared.map_err(shaped(&was.host.name)).err());
        }
        if was.bandwidth.egress.is_some()
            && !stays(|port| port.bandwidth.egress.is_some())
            && let Ok((mut socket, index)) = inside(was)
        {
            errors.extend(tc::clear_root(&mut socket, index).map_err(shaped(&was.key.ifname)).err());
        }
        errors.into_iter().map(KernelError::from).collect()
    }

    /// Lists missing or altered limits, each as a clause.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_limits(&mut self, port: &BridgePort) -> Result<Vec<String>, KernelError> {
        let mut findings = Vec::new();
        if let Some(limit) = port.bandwidth.ingress {
            let set = is_shaped(&mut self.route, port.host.index, limit, port);
            findings.extend(finding("is sent", set.map_err(shaped(&port.host.name))?));
        }
        if let Some(limit) = port.bandwidth.egress {
            let (mut socket, index) = inside(port)?;
            let set = is_shaped(&mut socket, index, limit, port);
            findings.extend(finding("sends", set.map_err(shaped(&port.key.ifname))?));
        }
        Ok(findings)
    }
}

/// Applies the limit from the container on another thread, in its namespace, while `work` runs. `work`'s
/// error takes precedence.
///
/// # Errors
/// `work`'s, or [`LimitError`]; then the other may have been done.
pub fn limit_egress_beside<E: From<KernelError>>(
    port: &BridgePort,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let limited = |result: Result<(), LimitError>| result.map_err(|error| E::from(KernelError::from(error)));
    if port.bandwidth.egress.is_none() {
        return work();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("limit".into());
        let Ok(beside) = thread.spawn_scoped(scope, || limit_egress(port)) else {
            return work().and_then(|()| limited(limit_egress(port)));
        };
        let worked = work();
        let egress = beside.join().unwrap_or_else(|_| Err(LimitError::Panicked(port.key.ifname.clone())));
        worked.and_then(|()| limited(egress))
    })
}

fn limit_egress(port: &BridgePort) -> Result<(), LimitError> {
    let Some(limit) = port.bandwidth.egress else { return Ok(()) };
    let (mut socket, index) = inside(port)?;
    shape(&mut socket, index, limit, port, End::Destination).map_err(shaped(&port.key.ifname))
}

/// Sets the root qdisc of an interface: tbf for all packets, htb for some subnets. Either replaces the other.
fn shape(
    socket: &mut Connection,
    index: u32,
    limit: Rate,
    port: &BridgePort,
    end: End,
) -> Result<(), NetlinkError> {
    let bucket = Bucket::of(limit, port.mtu);
    if let Some(subnets) = Subnets::of(&port.bandwidth) {
        let program = subnets.program(end, CLASS, HANDLE).into_iter().map(Instruction::bytes).collect();
        let classifier = Classifier { program, unread: !subnets.limited };
        return tc::set_htb(socket, index, bucket.into(), &classifier);
    }
    match tc::set_tbf(socket, index, bucket.into()) {
        Err(error) if error.errno() == Some(Errno::EINVAL) => {
            tc::clear_root(socket, index)?;
            tc::set_tbf(socket, index, bucket.into())
        }
        set => set,
    }
}

fn is_shaped(
    socket: &mut Connection,
    index: u32,
    limit: Rate,
    port: &BridgePort,
) -> Result<Option<bool>, NetlinkError> {
    let bucket = Bucket::of(limit, port.mtu);
    match Subnets::of(&port.bandwidth) {
        Some(_) => tc::is_htb_set(socket, index, bucket.into()),
        None => tc::is_tbf_set(socket, index, bucket.into()),
    }
}

fn finding(what: &str, set: Option<bool>) -> Option<String> {
    let how = match set {
        Some(true) => return None,
        Some(false) => "altered",
        None => "missing",
    };
    Some(format!("the limit of what the container {what} is {how}"))
}

/// A socket in the container's namespace, and the index that its end of the veth has in there.
fn inside(port: &BridgePort) -> Result<(Connection, u32), LimitError> {
    let ifname = &port.key.ifname;
    let path = port.netns.as_deref().unwrap_or_default();
    let failed = |source| LimitError::Sandbox { ifname: ifname.clone(), source };
    let mut socket = connect_within(Path::new(path)).map_err(failed)?;
    let links = socket.list(links()).map_err(|source| failed(source.into()))?;
    let end = links.iter().find(|link| link.name == *ifname && link.peer == Some(port.host.index));
    let index = end.map(|end| end.index).ok_or_else(|| LimitError::NoPeer(ifname.clone()))?;
    Ok((socket, index))
}

fn shaped(ifname: &str) -> impl FnOnce(NetlinkError) -> LimitError {
    |source| LimitError::Shaper { ifname: ifname.to_owned(), source }
}
