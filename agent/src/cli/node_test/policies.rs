//! Who is kept apart: `portIsolation` and `ingressPolicy`.
//!
//! What a policy refuses may be dropped without a count, as a request for an address by the kernel's bridge is. So each case also tries
//! that the same containers are alive to those who are let in.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::attempt::{Family, does_not_forward, failed, no_address, tried};
use super::chain::Chain;
use super::directory::LEASES;
use super::ground::{Ground, SERVER};
use super::namespace::Namespace;
use super::other_bridge::{self, BRIDGE, CONTAINER};
use super::row::Row;
use super::sandbox::{Sandbox, SandboxError};
use super::talk::{Ends, is_reached, tcp};
use super::undeleted::Undeleted;

/// Bytes of a message to somebody who is let in.
const SMALL: usize = 64;

/// The subnets of the other network: RFC 2544's, and a random ULA (RFC 4193).
const SUBNETS: [&str; 2] = ["198.18.84.0/24", "fd8a:51c7:3e02:84::/64"];

/// Two isolated containers do not reach each other, and both reach a third one.
pub(super) fn port_isolation(ground: &Ground, family: Family) -> Row {
    let case = "policy: portIsolation";
    restricted(ground, case, family, "portIsolation", json!(true), |[left, right]| {
        refused(&left.namespace, right, family)?;
        let Some(open) = ground.one.address(family.0) else { return Ok(()) };
        [left, right].into_iter().try_for_each(|isolated| talk(&isolated.namespace, &ground.one, open))
    })
}

/// Two containers that take nothing from any container: the node reaches both.
pub(super) fn isolated(ground: &Ground, family: Family) -> Row {
    let case = "policy: ingressPolicy isolated";
    restricted(ground, case, family, "ingressPolicy", json!("isolated"), |[left, right]| {
        refused(&left.namespace, right, family)?;
        refused(&ground.one.namespace, left, family)?;
        [left, right].into_iter().try_for_each(|isolated| let_in(&ground.node, isolated, family))
    })
}

/// A container of another bridge reaches an open one, and none that takes packets of its own bridge only.
pub(super) fn same_bridge(ground: &Ground, family: Family) -> Row {
    let case = "policy: ingressPolicy same-bridge";
    if let Some(row) = not_of_network(ground, case, family) {
        return row;
    }
    if let Some(why) = does_not_forward(family) {
        return Row::skipped(case, family.1, why);
    }
    let other = match Other::make(ground) {
        Ok(other) => other,
        Err(error) => return failed(case, family, &error),
    };
    let client = &other.container.namespace;
    match is_let_in(client, &ground.one, family) {
        Ok(true) => {}
        Ok(false) => {
            let why = "the node forwards nothing between its bridges, whatever the policy";
            return Row::skipped(case, family.1, why);
        }
        Err(error) => return failed(case, family, &error),
    }
    restricted(ground, case, family, "ingressPolicy", json!("same-bridge"), |[left, right]| {
        refused(client, left, family)?;
        let_in(&left.namespace, right, family)?;
        let_in(&ground.one.namespace, left, family)
    })
}

/// Why the network has no such policy, or not of this family.
fn not_of_network(ground: &Ground, case: &'static str, family: Family) -> Option<Row> {
    if !ground.chain.is_of_bridge() {
        return Some(Row::skipped(case, family.1, "the network is not one of a bridge"));
    }
    ground.one.address(family.0).is_none().then(|| no_address(case, family))
}

/// Makes two containers with this key of the configuration, and tries them.
fn restricted(
    ground: &Ground,
    case: &'static str,
    family: Family,
    key: &str,
    value: Value,
    work: impl FnOnce([&Sandbox; 2]) -> io::Result<()>,
) -> Row {
    if let Some(row) = not_of_network(ground, case, family) {
        return row;
    }
    let chain = ground.chain.clone().with(key, value);
    match ["left", "right"].map(|name| ground.add(name, &chain, Value::Null)) {
        [Ok(left), Ok(right)] => tried(ground, case, family, &[&left, &right], || work([&left, &right])),
        [Err(error), _] | [_, Err(error)] => failed(case, family, &error),
    }
}

fn ends<'a>(client: &'a Namespace, server: &'a Sandbox, to: IpAddr) -> Ends<'a> {
    let listens = SocketAddr::new(to, SERVER);
    Ends { client, server: &server.namespace, listens, through: None }
}

fn talk(client: &Namespace, server: &Sandbox, to: IpAddr) -> io::Result<()> {
    tcp(ends(client, server, to), 1, SMALL)
}

fn own(server: &Sandbox, (is_ipv6, family): Family) -> io::Result<IpAddr> {
    server.address(is_ipv6).ok_or_else(|| io::Error::other(format!("{} has no {family} address", server.id)))
}

fn let_in(client: &Namespace, server: &Sandbox, family: Family) -> io::Result<()> {
    talk(client, server, own(server, family)?)
}

fn is_let_in(client: &Namespace, server: &Sandbox, family: Family) -> io::Result<bool> {
    is_reached(ends(client, server, own(server, family)?))
}

fn refused(client: &Namespace, server: &Sandbox, family: Family) -> io::Result<()> {
    match is_let_in(client, server, family)? {
        true => Err(io::Error::other(format!("{} is reached by whom it is to be kept from", server.id))),
        false => Ok(()),
    }
}

/// A container of another network of the node's, whose bridge goes with it.
struct Other {
    container: Sandbox,
    _bridge: Bridge,
}

/// The bridge and the leases, which go after the container.
struct Bridge {
    chain: Chain,
    leases: PathBuf,
    undeleted: Undeleted,
}

impl Other {
    fn make(ground: &Ground) -> Result<Self, SandboxError> {
        let leases = ground.directory().join(LEASES);
        let chain = ground.chain.beside(BRIDGE, &SUBNETS, &leases);
        let bridge = Bridge { chain, leases, undeleted: ground.undeleted.clone() };
        let container = ground.add(CONTAINER, &bridge.chain, Value::Null)?;
        Ok(Self { container, _bridge: bridge })
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        other_bridge::take_down(&self.chain, &self.undeleted);
        // What is left of them keeps the directory, which is told.
        let _gone = fs::remove_dir_all(&self.leases);
    }
}
