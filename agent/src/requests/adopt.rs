//! Attaches a port whose container is at work.

use shunt_agent_api::{Attached, BridgePort};

use crate::resources::{Node, Refusal};

impl Node {
    /// As an attach; the flows that the kernel has of the container stay with the kernel.
    ///
    /// # Errors
    /// [`Refusal`]; the port is as it was.
    pub(crate) fn adopt(&mut self, port: BridgePort) -> Result<Attached, Refusal> {
        let host = port.host.index;
        self.repairs.in_use.insert(host);
        let attached = self.attach_as(port, false);
        self.repairs.in_use.remove(&host);
        attached
    }
}
