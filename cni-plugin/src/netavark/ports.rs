//! Published ports as CNI's `portMappings`: a mapping for each port of a range and each protocol.

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{NetavarkError, invalid};

/// Ports that one container may publish.
const MAX_PORTS: usize = 65_536;

/// One or more ports in a row.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PortMapping {
    container_port: u16,
    host_port: u16,
    /// Empty for every address of the node.
    #[serde(default)]
    host_ip: String,
    /// `tcp`, `udp`, `sctp`, or several with commas; empty for `tcp`.
    #[serde(default)]
    protocol: String,
    /// How many; 0 is one.
    #[serde(default)]
    range: u16,
}

/// All of them, one by one.
///
/// # Errors
/// A range that goes beyond the last port, or too many.
pub(super) fn mappings(published: &[PortMapping]) -> Result<Vec<Value>, NetavarkError> {
    let mut mappings = Vec::new();
    for each in published {
        let last = each.range.max(1) - 1;
        if each.host_port.checked_add(last).is_none() || each.container_port.checked_add(last).is_none() {
            let why = format!(
                "{} ports from {} to {} on go beyond 65535",
                last + 1,
                each.host_port,
                each.container_port
            );
            return Err(invalid("port_mappings", why));
        }
        for protocol in each.protocol.split(',').map(str::trim) {
            mappings.extend((0..=last).map(|step| {
                json!({
                    "hostPort": each.host_port + step,
                    "containerPort": each.container_port + step,
                    "protocol": protocol,
                    "hostIP": each.host_ip,
                })
            }));
        }
        if mappings.len() > MAX_PORTS {
            return Err(invalid("port_mappings", format!("more than {MAX_PORTS} ports")));
        }
    }
    Ok(mappings)
}
