//! The container's end of each port, as the node can see it: what a CHECK would find from inside. It is the container's own, so nothing of
//! it is repaired, and it makes no agent unhealthy.

use std::os::fd::AsFd as _;
use std::path::Path;

use shunt_netlink::link::Link;

use crate::kernel::KernelError;
use crate::registry::Attachment;
use crate::resources::Node;

/// A namespace that is named by a process may be another one by now.
const BY_PROCESS: &str = "/proc/";

impl Node {
    /// What is not as it was attached, each with its attachment.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn audit_container_ends(&mut self) -> Result<Vec<String>, KernelError> {
        let mut findings = Vec::new();
        for attachment in self.registry.attachments().cloned().collect::<Vec<_>>() {
            let found = self.audit_container_end(&attachment)?;
            findings.extend(found.into_iter().map(|finding| format!("{}: {finding}", attachment.port.key)));
        }
        Ok(findings)
    }

    fn audit_container_end(&mut self, attachment: &Attachment) -> Result<Vec<String>, KernelError> {
        let port = &attachment.port;
        let host = self.kernel.link(port.host.index)?.filter(|link| link.name == port.host.name);
        // A host end that is gone is told of elsewhere; the device of a VLAN is no veth's end.
        let Some(host) = host.filter(|_| port.vlan.is_none()) else { return Ok(Vec::new()) };
        let name = &port.key.ifname;
        if let Some(netns) = &port.netns
            && self.has_left(&host, Path::new(netns))
        {
            return Ok(vec![format!("{name} is not in {netns} any more")]);
        }
        let Some(end) = self.kernel.other_end(&host) else { return Ok(Vec::new()) };
        let renamed = (end.name != *name).then(|| format!("{name} is called {} now", end.name));
        let down = (port.peer_up && !end.up).then(|| format!("{name} is down"));
        Ok(renamed.into_iter().chain(down).collect())
    }

    /// Whether the other end of `host` is in another namespace than this one, which is there.
    fn has_left(&mut self, host: &Link, netns: &Path) -> bool {
        // A namespace that ends has no number any more.
        if netns.starts_with(BY_PROCESS) || host.peer_namespace.is_some_and(|number| number < 0) {
            return false;
        }
        // Without its file, or where the file is no namespace's to this agent, nothing can be said.
        let Ok(file) = shunt_regular_file::open(netns) else { return false };
        let number = self.kernel.namespace_number(file.as_fd()).unwrap_or_default();
        number.is_some_and(|number| host.peer_namespace != Some(number))
    }
}
