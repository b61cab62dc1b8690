//! Decides whether an uplink's driver runs XDP.

use super::validation::unusable;
use crate::capacity::XdpMode;
use crate::registry::Uplink;
use crate::resources::{Node, Refusal};

impl Node {
    /// Attaches or detaches XDP on all uplinks of a bridge: each one's need depends on the others.
    ///
    /// # Errors
    /// A driver cannot, and has to (`xdp = "native"`).
    pub(crate) fn serve_natives(&mut self, bridge: u32) -> Result<(), Refusal> {
        let uplinks: Vec<_> =
            self.registry.uplinks.values().filter(|uplink| uplink.bridge.index == bridge).cloned().collect();
        uplinks.iter().try_for_each(|uplink| self.serve_native(uplink, uplinks.len() == 1))
    }

    fn serve_native(&mut self, uplink: &Uplink, is_alone: bool) -> Result<(), Refusal> {
        let name = &uplink.link.name;
        let wanted = self.natives.get(name).copied().unwrap_or_default();
        let obstacle = match wanted {
            XdpMode::Off => Some("its configuration says so".to_owned()),
            // XDP would only process packets to containers twice.
            XdpMode::Auto if is_alone => Some("there is no other wire to forward to".to_owned()),
            XdpMode::Auto | XdpMode::Native => self.obstacle(uplink, wanted)?,
        };
        let obstacle = match obstacle {
            Some(obstacle) => {
                self.datapath.detach_native(uplink.link.index)?;
                obstacle
            }
            None => match self.datapath.attach_native(uplink) {
                Ok(()) => return Ok(()),
                Err(error) => error.to_string(),
            },
        };
        if wanted == XdpMode::Native {
            return Err(unusable(name, format!("cannot run XDP in its driver: {obstacle}")));
        }
        tracing::debug!(uplink = %name, obstacle, "XDP is not used");
        Ok(())
    }

    /// The obstacle; none leaves the decision to the driver.
    fn obstacle(&mut self, uplink: &Uplink, wanted: XdpMode) -> Result<Option<String>, Refusal> {
        let index = uplink.link.index;
        let kind = self.kernel.link(index)?.and_then(|link| link.kind);
        if let Some(kind) = kind {
            // XDP on a veth disables its large packets (GSO), which is slower than no XDP.
            return Ok(Some(format!("it is a {kind} and no hardware")));
        }
        if self.kernel.external(index)?.filters {
            return Ok(Some("others filter what comes in there, and would not see all of it".to_owned()));
        }
        // With hardware VLAN stripping XDP sees frames of all VLANs as untagged.
        if self.kernel.takes_tags_off(index)? && wanted == XdpMode::Native {
            self.kernel.leave_tags(index)?;
        }
        let takes = self.kernel.takes_tags_off(index)?;
        Ok(takes.then(|| "its hardware takes VLAN tags off (`ethtool -K NAME rxvlan off`)".to_owned()))
    }
}
