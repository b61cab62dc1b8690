//! Sums over all attachments, so that nobody looks at each of them to know whether there is one of a kind.

use super::attachment::Attachment;

/// How many attachments are of each kind.
///
/// Invariant: each attachment of the registry is counted once. What is counted of it changes by [`super::Registry::insert`] only.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// With host ports.
    pub(super) mapped: usize,
    /// Whose packets are masqueraded.
    pub(super) masqueraded: usize,
    /// Of which rules of nf_tables may be made.
    pub(super) ruled: usize,
    /// Whose host ports the kernel opens.
    pub(super) opened: usize,
    /// Of whose flows others' rules are asked.
    pub(super) heeded: usize,
    /// In VLANs of a bridge.
    pub(super) in_vlans: usize,
    /// Whose bridges have uplinks.
    pub(super) uplinked: usize,
}

impl Totals {
    pub(super) fn add(&mut self, attachment: &Attachment) {
        self.count(attachment, |count| *count += 1);
    }

    pub(super) fn subtract(&mut self, attachment: &Attachment) {
        self.count(attachment, |count| *count -= 1);
    }

    fn count(&mut self, attachment: &Attachment, change: fn(&mut usize)) {
        let port = &attachment.port;
        let kinds = [
            (&mut self.mapped, !port.mappings.is_empty()),
            (&mut self.masqueraded, attachment.is_masqueraded()),
            (&mut self.ruled, attachment.has_rules()),
            (&mut self.opened, attachment.opened),
            (&mut self.heeded, attachment.heeded),
            (&mut self.in_vlans, port.restrictions.vlans.is_some()),
            (&mut self.uplinked, port.service.uplink.is_some()),
        ];
        for (count, is_of_kind) in kinds {
            if is_of_kind {
                change(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shunt_agent_api::{AttachmentKey, BridgePort};
    use shunt_dataplane::wire::address::Mac;

    use super::super::{PeerEnd, Registry};
    use super::*;

    fn attachment(number: u32, bridge: u32) -> Attachment {
        let port: BridgePort = serde_json::from_value(json!({
            "key": { "network": "net", "container": format!("c{number}"), "ifname": "eth0" },
            "bridge": { "name": format!("cni{bridge}"), "index": bridge },
            "host": { "name": format!("veth{number}"), "index": number },
            "mac": "02:00:00:00:00:01",
            "ips": [],
            "mtu": 1500,
        }))
        .unwrap();
        Attachment::new(port, Mac::default(), number, PeerEnd::Up)
    }

    fn masqueraded(number: u32, bridge: u32) -> Attachment {
        let mut attachment = attachment(number, bridge);
        attachment.port.masquerade = vec!["10.0.0.0/16".to_owned()];
        attachment
    }

    fn key(number: u32) -> AttachmentKey {
        attachment(number, 1).port.key
    }

    #[test]
    fn an_attachment_that_is_inserted_again_is_counted_as_it_is_now() {
        let mut registry = Registry::default();
        assert!(!registry.has_masqueraded() && !registry.has_ports_on(1));
        registry.insert(attachment(7, 1));
        registry.insert(masqueraded(7, 1));
        registry.insert(Attachment { opened: true, ..masqueraded(7, 1) });
        assert!(registry.has_masqueraded() && registry.has_opened() && registry.has_ports_on(1));
        assert_eq!(registry.of_bridge(1).count(), 1);
        assert_eq!(registry.with_rules().count(), 1);
        registry.insert(attachment(7, 2));
        assert!(!registry.has_masqueraded() && !registry.has_opened() && !registry.has_ports_on(1));
        assert_eq!(registry.with_rules().count(), 0);
        registry.insert(masqueraded(8, 2));
        registry.remove(&key(8));
        assert!(!registry.has_masqueraded() && registry.has_ports_on(2));
        registry.remove(&key(7));
        registry.remove(&key(7));
        assert_eq!(registry.totals, Totals::default());
        assert!(registry.below.is_empty());
    }

    #[test]
    fn a_round_goes_once_through_all_wherever_it_begins() {
        let mut registry = Registry::default();
        let round = |registry: &Registry, from: Option<u32>| -> Vec<u32> {
            registry.round_after(from.map(key).as_ref()).map(|attachment| attachment.slot).collect()
        };
        assert!(round(&registry, Some(1)).is_empty());
        [2, 4, 6].into_iter().for_each(|number| registry.insert(attachment(number, 1)));
        assert_eq!(round(&registry, None), [2, 4, 6]);
        assert_eq!(round(&registry, Some(1)), [2, 4, 6]);
        assert_eq!(round(&registry, Some(4)), [6, 2, 4]);
        assert_eq!(round(&registry, Some(5)), [6, 2, 4], "its attachment is gone");
        assert_eq!(round(&registry, Some(6)), [2, 4, 6]);
    }

    #[test]
    fn the_edition_is_another_one_exactly_when_something_else_is_asked_for() {
        let mut registry = Registry::default();
        let mut last = registry.edition();
        let mut has_changed = |registry: &Registry| std::mem::replace(&mut last, registry.edition()) != last;
        registry.insert(attachment(7, 1));
        assert!(has_changed(&registry));
        registry.insert(Attachment { heeded: true, ..attachment(7, 1) });
        assert!(!has_changed(&registry), "only what the agent found out is another");
        registry.insert(masqueraded(7, 1));
        assert!(has_changed(&registry));
        registry.remove(&key(8));
        assert!(!has_changed(&registry), "it was not there");
        registry.remove(&key(7));
        assert!(has_changed(&registry));
    }
}
