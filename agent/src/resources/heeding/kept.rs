//! Rules that may judge the packets of one flow differently: while there are any, all flows are the kernel's.

use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::BaseChain;

use crate::resources::Node;
use crate::resources::external_rule::varying;

impl Node {
    /// Looks for such rules behind the chains that bridged packets meet, in this generation of nf_tables; not again while nobody has changed any. Whoever
    /// cannot be asked may have some.
    pub(super) fn find_who_keeps_flows(
        &mut self,
        generation: Option<u32>,
        chains: Result<Vec<BaseChain>, NetlinkError>,
    ) {
        let kept = &mut self.heeding.kept;
        let read = generation.zip(chains.as_ref().ok().cloned());
        if read.is_some() && kept.read == read {
            return;
        }
        let (by, read) = match chains.and_then(|chains| varying::first(&chains)) {
            Ok(by) => (by, read),
            Err(error) => (Some(format!("others' rules cannot be read: {error}")), None),
        };
        kept.read = read;
        if kept.by != by {
            tracing::info!(by, "which rule keeps flows between containers with the kernel has changed");
        }
        kept.by = by;
    }
}
