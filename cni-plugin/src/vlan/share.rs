//! What both forms have in common: the plan for the container's side, and the result.

use shunt_netlink::link::Link;

use super::master::Master;
use crate::call::Call;
use crate::config::{Bridge, Config, ConfigError, Vlan};
use crate::error::Error;
use crate::mac::Mac;
use crate::plan::Plan;
use crate::result::{AddResult, Interface};

/// A VLAN's interface that is to be made.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) config: &'a Config,
    pub(super) vlan: &'a Vlan,
    /// With the interface's own name, which differs from the runtime's in a chain.
    pub(super) call: &'a Call,
    pub(super) master: &'a Master,
    /// The result of the plugins before this one.
    pub(super) previous: AddResult,
}

impl Wanted<'_> {
    /// What will be done, with the addresses that the IPAM gave.
    pub(super) fn plan(&self, mac: Mac, addresses: Option<AddResult>) -> Result<Plan, Error> {
        plan(self.config, self.call, self.master.mtu(self.vlan), mac, addresses)
    }

    /// The earlier plugins' result, and behind it what was made here.
    pub(super) fn result(&self, plan: &Plan, inner: &Link) -> AddResult {
        let before = self.previous.interfaces.len();
        let own = Interface { name: plan.key.ifname.clone(), ..Interface::inside(inner, &plan.netns) };
        let mut result = self.previous.clone();
        result.interfaces.push(own);
        result.ips.extend(plan.result.ips.iter().cloned().map(|mut ip| {
            ip.interface = Some(before);
            ip
        }));
        result.routes.extend(plan.result.routes.iter().cloned());
        if result.dns.is_empty() {
            result.dns = plan.result.dns.clone();
        }
        result
    }
}

/// The container's side as it should be. Of a bridge it has nothing.
pub(super) fn plan(
    config: &Config,
    call: &Call,
    mtu: u32,
    mac: Mac,
    addresses: Option<AddResult>,
) -> Result<Plan, Error> {
    let bridge = Bridge { mtu, ..Bridge::default() };
    let mut plan = Plan::new(config, call, &bridge, mac)?.with(config, &bridge, addresses)?;
    for ip in &mut plan.result.ips {
        ip.interface = Some(0);
    }
    plan.result.can_be_expressed_in(config.version)?;
    Ok(plan)
}

/// The result of the plugins before this one; in a chain there has to be one.
pub(super) fn previous(config: &Config, is_chained: bool) -> Result<AddResult, Error> {
    match config.prev_result()? {
        Some(previous) => Ok(previous),
        None if is_chained => {
            let why = "with no `master` the VLAN is on the interface of the plugin before";
            Err(ConfigError::NoPrevResult(why).into())
        }
        None => Ok(AddResult::default()),
    }
}
