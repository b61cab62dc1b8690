//! Sockets' own ports of containers.

use shunt_dataplane::abi::{Alias, AliasKey};
use shunt_dataplane::tables::Aliases;
use std::net::{IpAddr, SocketAddr};

use super::super::asked::Asked;
use super::LiveTables;

impl Aliases for LiveTables<'_> {
    fn alias(&self, key: &AliasKey) -> Option<Alias> {
        let called = SocketAddr::new(IpAddr::from(key.address), key.port.number()).to_string();
        let found = |alias: &Alias| format!("port {} for a socket of the node", alias.port.number());
        self.look((Asked::Translation, "ALIASES"), &self.maps.aliases, (key, called), found)
    }

    fn claim_alias(&self, _key: &AliasKey, _alias: &Alias) -> bool {
        true
    }

    fn renew_alias(&self, _key: &AliasKey, _alias: &Alias) {}

    fn forget_alias(&self, _key: &AliasKey) {}
}
