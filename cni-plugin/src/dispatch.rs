//! Which verb is done how: the choice by personality.

use serde_json::json;

use crate::call::{Call, Verb, Version};
use crate::config::{Config, Personality};
use crate::error::Error;
use crate::json::pretty;
use crate::{
    add, capacity, chained, check, deinit, del, gc, init, ipam_only, loopback, status, validate, vlan,
};

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
        Personality::Loopback => loopback::run(config, call),
        Personality::Ipam => ipam_only::run(config, call),
    }
}

fn port(config: &Config, call: &Call) -> Result<Option<String>, Error> {
    match call.verb {
        Verb::Add => Ok(Some(add::add(config, call)?.print(config.version)?)),
        Verb::Del => del::del(config, call).map(|()| None),
        Verb::Check => check::check(config, call).map(|()| None),
        Verb::Gc => gc::gc(config, call).map(|()| None),
        Verb::Status => status::status(config, call).map(|()| None),
        Verb::Init => init::init(config).map(|()| None),
        Verb::Deinit => deinit::deinit(config).map(|()| None),
        Verb::Finalize => check::finalize(config, call).map(|()| None),
        Verb::Version | Verb::Validate | Verb::Capacity => Ok(None),
    }
}

/// The answer to VERSION.
pub(crate) fn version() -> String {
    let supported: Vec<&str> = Version::ALL.iter().map(|version| version.as_str()).collect();
    pretty(&json!({ "cniVersion": Version::NEWEST.as_str(), "supportedVersions": supported }))
}
