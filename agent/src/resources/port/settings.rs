//! Has the fast path heed what others set on the containers' ports of the kernel's bridges.
//!
//! The bridge tells of its ports by messages of its own (`RTM_NEWLINK` of the family `AF_BRIDGE`), which name the port and no more: it is
//! asked anew. Each second it is asked again. What the programs cannot heed has the kernel's bridge judge the port's frames.

use shunt_agent_api::BridgePort;
use shunt_netlink::link::Link;

use crate::datapath::FlowAffinity;
use crate::kernel::KernelError;
use crate::registry::{Domain, Settings};
use crate::resources::{Node, Refusal};

impl Node {
    /// Heeds what is set on the port of the container behind `host`, as the kernel says it now. Fails closed: the known settings stay
    /// where it cannot say.
    pub(crate) fn heed(&mut self, host: u32) -> Result<(), Refusal> {
        let Some(known) = self.registry.by_host(host).map(|attachment| attachment.port.clone()) else {
            return Ok(());
        };
        let Some(link) = self.kernel.link(host)? else { return Ok(()) };
        if known.vlan.is_some() || link.name != known.host.name || link.master != Some(known.bridge.index) {
            return Ok(());
        }
        let bridge = self.registry.bridge(known.bridge.index).map(|bridge| bridge.link.clone());
        let now = self.settings_of(&known, &link, bridge.as_ref())?;
        self.apply_settings(host, now)
    }

    /// The same of every port of a bridge, on which somebody has set something.
    pub(crate) fn heed_all(&mut self, bridge: u32) -> Result<(), Refusal> {
        let hosts: Vec<_> =
            self.registry.of_bridge(bridge).map(|attachment| attachment.port.host.index).collect();
        hosts.into_iter().try_for_each(|host| self.heed(host))
    }

    /// The same where `link` says something else than what is known.
    pub(crate) fn heed_news(&mut self, link: &Link) -> Result<(), Refusal> {
        let is_new = self.registry.by_host(link.index).is_some_and(|attachment| {
            let domain = attachment.settings.domain;
            attachment.settings != Settings { domain, ..Settings::of(&attachment.port, link) }
        });
        if is_new { self.heed(link.index) } else { Ok(()) }
    }

    /// What is set on a container's port.
    ///
    /// # Errors
    /// The kernel cannot say which VLANs it is in.
    pub(crate) fn settings_of(
        &mut self,
        port: &BridgePort,
        link: &Link,
        bridge: Option<&Link>,
    ) -> Result<Settings, KernelError> {
        let settings = Settings::of(port, link);
        let bridge = bridge.filter(|bridge| bridge.bridging.filters_vlans);
        let is_bridged = port.is_bridged();
        let Some(bridge) = bridge.filter(|_| is_bridged) else { return Ok(settings) };
        if link.master != Some(bridge.index) {
            return Ok(Settings { domain: Domain::Other, ..settings });
        }
        let own = self.kernel.vlans(bridge.index)?;
        let domain = Domain::of(&self.kernel.vlans(link.index)?, &own);
        Ok(Settings { domain, ..settings })
    }

    fn apply_settings(&mut self, host: u32, now: Settings) -> Result<(), Refusal> {
        let Some(attachment) = self.registry.by_host_mut(host).filter(|known| known.settings != now) else {
            return Ok(());
        };
        attachment.settings = now;
        let attachment = attachment.clone();
        tracing::info!(
            key = %attachment.port.key, port = attachment.port.host.name, settings = ?now,
            "settings of the bridge's port changed"
        );
        // The programs may write the same word concurrently: the value must not ask less than theirs.
        Ok(self.datapath.write_port(&attachment, FlowAffinity::Lookup)?)
    }
}
