//! The uplinks as devices of the kubelet's: which can be used, and what is wrong with the others.

use crate::capacity::slice::device_names;
use crate::resources::Node;

/// An uplink as a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceState {
    /// Its name in the `ResourceSlice`.
    pub(crate) device: String,
    /// What is wrong with it; none while it can be used.
    pub(crate) fault: Option<String>,
}

impl Node {
    /// Every declared uplink's state, of the links as they are now.
    pub(crate) fn devices(&mut self) -> Vec<DeviceState> {
        self.read_speeds();
        let names: Vec<_> = self.ledger.uplinks().map(str::to_owned).collect();
        let devices = device_names(names.iter().map(String::as_str));
        let states = names.iter().zip(devices).map(|(uplink, device)| {
            let fault = match self.speeds.carrier(uplink) {
                Err(error) => Some(format!("uplink {uplink}: {error}")),
                Ok(None) => Some(format!("uplink {uplink}: there is no such link")),
                Ok(Some(false)) => Some(format!("uplink {uplink} has no carrier")),
                Ok(Some(true)) => None,
            };
            DeviceState { device, fault }
        });
        let mut states: Vec<_> = states.collect();
        for shortage in self.ledger.unknown() {
            let state = names.iter().zip(&mut states).find(|(name, _)| shortage.uplink() == name.as_str());
            if let Some((_, state)) = state {
                state.fault.get_or_insert_with(|| shortage.to_string());
            }
        }
        states
    }
}
