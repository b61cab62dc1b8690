//! `shunt-ipam` as a program of its own: under another main plugin, or first in a chain.

use crate::call::{Call, Verb};
use crate::config::{Config, ValidAttachment};
use crate::error::Error;
use crate::ipam::built_in;

/// Does the IPAM's part of a verb.
pub(crate) fn run(config: &Config, call: &Call) -> Result<Option<String>, Error> {
    match call.verb {
        Verb::Add => return Ok(Some(built_in::add(config, call)?.print(config.version)?)),
        Verb::Del => built_in::del(config, call)?,
        Verb::Check => built_in::check(config, call)?,
        Verb::Gc => {
            if let Some(valid) = config.network.valid_attachments() {
                let pair = |one: &ValidAttachment| (one.container.clone(), one.ifname.clone());
                built_in::gc(config, &valid.iter().map(pair).collect::<Vec<_>>())?;
            }
        }
        Verb::Status => built_in::status(config)?,
        // An IPAM has nothing to make ready or to put right.
        Verb::Version | Verb::Validate | Verb::Init | Verb::Deinit | Verb::Finalize | Verb::Capacity => {}
    }
    Ok(None)
}
