//! What an agent does about connections before it serves, and when it ends: another agent may not know `ASSURED`.
//!
//! Until now every connection was in `FLOWS`. The programs of such an agent go on with what they find there, so an agent that ends writes the
//! assured ones there. One that starts finds in `FLOWS` what such programs have begun or led on.

use aya::maps::MapError;
use shunt_dataplane::abi::translation::Translation;
use shunt_dataplane::nat::connection::is_assured;

use super::entries::{Entries, Found};
use super::pairs;
use crate::datapath::Datapath;
use crate::resources::clock::boot_time;

/// Leaves the connections so that an agent that knows `FLOWS` only can take over. The programs go on with `ASSURED`.
pub(crate) fn leave(datapath: &Datapath) {
    match copy(datapath) {
        Ok(copied) => tracing::debug!(copied, "entries of connections left for the next agent"),
        Err(error) => tracing::warn!(%error, "connections cannot be left to an older agent"),
    }
}

/// Takes over the connections of whoever came before.
pub(crate) fn enter(datapath: &Datapath) {
    match settle(datapath) {
        Ok((0, 0)) => {}
        Ok((released, assured)) => tracing::info!(released, assured, "entries of connections taken over"),
        Err(error) => {
            tracing::warn!(%error, "connections cannot be taken over: an earlier agent's may be forgotten");
        }
    }
}

/// Writes all assured connections to `FLOWS`. Returns how many entries.
///
/// # Errors
/// The kernel's.
fn copy(datapath: &Datapath) -> Result<usize, MapError> {
    let mut entries = Entries::open(|name| datapath.map_pin(name))?;
    let Found { assured, .. } = entries.read()?;
    Ok(assured.keys().filter(|key| entries.copy_assured(key)).count())
}

/// Releases the connections that other programs have led on since, and assures those of `FLOWS` that are to be. Returns how many entries of
/// each.
///
/// # Errors
/// The kernel's.
fn settle(datapath: &Datapath) -> Result<(usize, usize), MapError> {
    let mut entries = Entries::open(|name| datapath.map_pin(name))?;
    let found = entries.read()?;
    let is_older = |key, flow: &_| found.flows.get(key).is_some_and(|known| is_later(known, flow));
    let older = found.assured.iter().filter(|(key, flow)| is_older(key, flow));
    // Either half of a connection goes with the other.
    let keys = older.flat_map(|(key, flow)| [*key, flow.becomes.reversed(flow.becomes.domain)]);
    let released = keys.filter(|key| entries.release(key)).count();

    let now = boot_time();
    let mut assured = 0;
    for connection in pairs::connections(&found.flows) {
        if !is_assured(&connection.opener, &connection.answerer, now) {
            continue;
        }
        for (key, flow) in connection.entries() {
            // Of what the programs have assured meanwhile they know more.
            assured += usize::from(entries.assure(&key, &flow).is_ok());
        }
    }
    Ok((released, assured))
}

/// Whether an entry is another connection's than `known`, or has seen a later packet.
const fn is_later(flow: &Translation, known: &Translation) -> bool {
    flow.begun > known.begun || flow.begun == known.begun && flow.touched > known.touched
}
