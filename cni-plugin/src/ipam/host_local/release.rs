//! DEL and GC: addresses given back.

use std::{collections::HashMap, net::IpAddr};

use serde_json::Value;
use shunt_leases::{Record, Store};

use super::{config::data_dir, error::Error, request::Request};

/// Releases every address of the attachment, whatever range it is in; fine when there is none.
///
/// Of the configuration only `dataDir` matters: ranges that were changed or broken since the ADD do not stop a release.
/// An old record, which does not tell the interface, is taken to be this attachment's when no other one is.
///
/// # Errors
/// [`Error::Unreleased`] after having tried all.
pub fn del(request: &Request<'_>) -> Result<(), Error> {
    let attachment = Record::of(request.container, request.ifname);
    let Some(store) = Store::open(&data_dir(request.config)?, request.network)? else {
        return Ok(());
    };
    store.tidy();
    let (mut exact, mut old) = recorded(&store, &store.candidates(attachment)?, attachment);
    if exact.is_empty() && old.is_empty() {
        // Mostly a repeated DEL. A file that another tool has rewritten is found here too: its second name does not show that.
        (exact, old) = recorded(&store, &store.addresses()?, attachment);
    }
    let released = if exact.is_empty() { old } else { exact };
    release(released.into_iter().map(|address| store.release(address, attachment)))
}

/// Which of the addresses are recorded as the attachment's: by records that tell the interface, and by old ones.
fn recorded(store: &Store, addresses: &[IpAddr], attachment: Record<'_>) -> (Vec<IpAddr>, Vec<IpAddr>) {
    let (mut exact, mut old) = (Vec::new(), Vec::new());
    for &address in addresses {
        let Some(content) = store.content(address) else { continue };
        let record = Record::parse(&content);
        if record == attachment {
            exact.push(address);
        } else if record.is_old_record_of(attachment) {
            old.push(address);
        }
    }
    (exact, old)
}

/// Releases every address of the network whose holder, (container, ifname), is not among the valid ones.
///
/// An old record is valid with any interface of its container. An empty file stays: it may have been made by hand to
/// keep an address out of use.
///
/// # Errors
/// [`Error::Unreleased`] after having tried all.
pub fn gc(network: &str, config: &Value, valid: &[(String, String)]) -> Result<(), Error> {
    let Some(store) = Store::open(&data_dir(config)?, network)? else {
        return Ok(());
    };
    let mut staying: HashMap<&[u8], Vec<Record<'_>>> = HashMap::new();
    for (container, ifname) in valid {
        staying.entry(container.as_bytes()).or_default().push(Record::of(container, ifname));
    }
    let mut stale = Vec::new();
    for address in store.sweep()? {
        let Some(content) = store.content(address) else { continue };
        let record = Record::parse(&content);
        let mut parents = staying.get(record.container()).into_iter().flatten();
        let is_valid = parents.any(|parent| record.may_be(*parent) || record.is_on(*parent));
        if !is_valid && !record.is_empty() {
            stale.push((address, content));
        }
    }
    release(stale.iter().map(|(address, content)| store.release(*address, Record::parse(content))))
}

/// All are tried, whatever becomes of some.
fn release(each: impl Iterator<Item = Result<(), shunt_leases::Error>>) -> Result<(), Error> {
    let failures: Vec<Error> = each.filter_map(Result::err).map(Error::from).collect();
    if failures.is_empty() { Ok(()) } else { Err(Error::Unreleased(failures)) }
}
