//! One file per verb, and the choice between them by personality.

mod add;
mod add_adopted;
mod add_bridged;
mod add_update;
mod capacity;
mod chained;
mod check;
mod deinit;
mod del;
mod finalize;
mod gc;
mod init;
mod ipam_only;
mod limit;
mod map;
mod metadata;
mod status;
mod validate;

use serde_json::json;

pub(crate) use capacity::CapacityError;
pub(crate) use check::CheckError;
pub(crate) use del::del;
pub(crate) use gc::gc;
pub(crate) use status::{StatusError, serves};

use crate::config::{Config, Personality};
use crate::error::Error;
use crate::json::pretty;
use crate::protocol::{Call, Verb, Version};
use crate::vlan;

/// Does what was asked; answers what is to be printed, if anything.
pub(crate) fn run(config: &Config, call: &Call) -> Result<Option<String>, Error> {
    if config.version < call.verb.since() {
        return Err(Error::VerbTooNew { verb: call.verb, version: config.version });
    }
    if call.verb == Verb::Validate {
        return validate::validate(config).map(|()| None);
    }
    // What the node has is the same whatever the plugin stands in for.
    if call.verb == Verb::Capacity {
        return Ok(Some(pretty(&capacity::capacity(config)?)));
    }
    match config.personality {
        _ if config.is_vlan() => vlan::run(config, call),
        Personality::Shunt | Personality::Bridge => port(config, call),
        Personality::Portmap | Personality::Bandwidth | Personality::Vlan => chained::run(config, call),
        Personality::Ipam => ipam_only::run(config, call),
    }
}

fn port(config: &Config, call: &Call) -> Result<Option<String>, Error> {
    match call.verb {
        Verb::Add => Ok(Some(add::add(config, call)?.print(config.version)?)),
        Verb::Del => del(config, call).map(|()| None),
        Verb::Check => check::check(config, call).map(|()| None),
        Verb::Gc => gc(config, call).map(|()| None),
        Verb::Status => status::status(config, call).map(|()| None),
        Verb::Init => init::init(config).map(|()| None),
        Verb::Deinit => deinit::deinit(config).map(|()| None),
        Verb::Finalize => finalize::finalize(config, call).map(|()| None),
        Verb::Version | Verb::Validate | Verb::Capacity => Ok(None),
    }
}

/// The answer to VERSION.
pub(crate) fn version() -> String {
    let supported: Vec<&str> = Version::ALL.iter().map(|version| version.as_str()).collect();
    pretty(&json!({ "cniVersion": Version::NEWEST.as_str(), "supportedVersions": supported }))
}
