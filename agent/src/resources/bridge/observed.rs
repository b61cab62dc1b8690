//! What of a bridge is missing or altered.

use shunt_dataplane::abi::Port;

use crate::datapath::maps::lookup;
use crate::datapath::{encode, in_map, programs};
use crate::kernel::KernelError;
use crate::registry::Bridge;
use crate::resources::{Finding, Node, Refusal};

impl Node {
    /// Lists the faults of a bridge.
    pub(crate) fn audit_bridge(&mut self, bridge: &Bridge) -> Result<Vec<Finding>, Refusal> {
        let mut findings = self.audit_bridge_alone(bridge)?;
        let name = &bridge.link.name;
        let missing = self.missing_gateways(&bridge.link)?;
        findings
            .extend(missing.into_iter().map(|address| Finding::Address { bridge: name.clone(), address }));
        Ok(findings)
    }

    /// The same, without addresses that are missing only for a moment.
    pub(super) fn audit_bridge_patiently(&mut self, bridge: &Bridge) -> Result<Vec<Finding>, Refusal> {
        let findings = self.audit_bridge(bridge)?;
        Ok(self.repairs.lasting(bridge.link.index, findings))
    }

    /// The same, without its addresses.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn audit_bridge_alone(&mut self, bridge: &Bridge) -> Result<Vec<Finding>, KernelError> {
        let name = &bridge.link.name;
        if self.kernel.link(bridge.link.index)?.is_none_or(|link| link.name != *name) {
            return Ok(vec![Finding::Link(name.clone())]);
        }
        let mut findings = Vec::new();
        let entry = self.datapath.port(bridge.link.index)?;
        if entry.map(|entry| Port { affinity: 0, ..encode::as_written(entry) })
            != Some(encode::bridge_port(bridge))
        {
            findings.push(Finding::entry("PORTS", name, entry.as_ref()));
        }
        if let Some(key) = encode::bridge_station_key(bridge) {
            let station = lookup(&self.datapath.maps.stations, &key).map_err(in_map("FDB"))?;
            if station != Some(encode::bridge_station(bridge)) {
                findings.push(Finding::entry("FDB", name, station.as_ref()));
            }
        }
        findings.extend(self.audit_program(&programs::of_bridge(bridge))?);
        Ok(findings)
    }
}
