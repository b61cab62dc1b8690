//! One readout for scripts: two samples, and what has happened between them.

use std::fmt::Write as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde::Serialize;

use super::cells::{DROP_HEADS, PORT_HEADS, UPLINK_HEADS, drop_cells, port_cells, uplink_cells};
use super::rates::{DropRate, PortRates, Readout, UplinkRates};
use super::sample::{Sample, SampleError};
use super::selection::Selection;
use crate::cli::table::Table;

/// The contract of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Chosen<'a> {
    version: &'a str,
    healthy: bool,
    reasons: &'a [String],
    seconds: f64,
    ports: Vec<&'a PortRates>,
    uplinks: &'a [UplinkRates],
    drops: &'a [DropRate],
}

/// What happens within the interval from now on.
///
/// # Errors
/// The agent does not answer.
pub(super) fn read(socket: &Path, interval: Duration) -> Result<Readout, SampleError> {
    let earlier = Sample::take(socket)?;
    sleep(interval);
    Ok(Readout::between(Some(&earlier), &Sample::take(socket)?))
}

/// The ports that are chosen, in their order.
pub(super) fn choose<'a>(readout: &'a Readout, selection: &Selection) -> Chosen<'a> {
    Chosen {
        version: &readout.version,
        healthy: readout.healthy,
        reasons: &readout.reasons,
        seconds: readout.seconds,
        ports: selection.of(&readout.ports),
        uplinks: &readout.uplinks,
        drops: &readout.drops,
    }
}

/// The same as tables.
pub(super) fn text(chosen: &Chosen<'_>) -> String {
    let mut text = String::new();
    let mut ports = Table::new(PORT_HEADS);
    chosen.ports.iter().for_each(|port| ports.row(port_cells(port)));
    // Writing to a text does not fail.
    let _written = write!(text, "{ports}");
    if !chosen.uplinks.is_empty() {
        let mut uplinks = Table::new(UPLINK_HEADS);
        chosen.uplinks.iter().flat_map(uplink_cells).for_each(|cells| uplinks.row(cells));
        let _written = write!(text, "\n{uplinks}");
    }
    if !chosen.drops.is_empty() {
        let mut drops = Table::new(DROP_HEADS);
        chosen.drops.iter().for_each(|drop| drops.row(drop_cells(drop)));
        let _written = write!(text, "\n{drops}");
    }
    text
}
