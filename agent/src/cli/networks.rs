//! `shunt-agent networks`: those that are registered, and those that only their attachments name.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shunt_cni::client::{Client, ClientError};

use super::cni_query::CniQuery;
use super::table::{Align::Left, Align::Right, Table, grouped};

/// Options of `networks`.
#[derive(Args, Debug)]
pub(crate) struct Networks {
    #[command(flatten)]
    query: CniQuery,
}

/// The contract of `--json`.
#[derive(Debug, PartialEq, Serialize)]
struct Network {
    name: String,
    /// Whether a call can name it.
    registered: bool,
    /// How many attachments have a cached result.
    attachments: u64,
}

impl Networks {
    pub(super) fn ask(self) -> ExitCode {
        self.query.show(gather, text)
    }
}

fn gather(client: &mut Client) -> Result<Vec<Network>, ClientError> {
    let registered = client.networks()?;
    let attached = client.attachments("")?.into_iter().map(|attachment| attachment.network);
    Ok(merge(registered, attached))
}

fn merge(registered: Vec<String>, attached: impl Iterator<Item = String>) -> Vec<Network> {
    let mut networks: BTreeMap<_, _> = registered.into_iter().map(|name| (name, (true, 0))).collect();
    for name in attached {
        networks.entry(name).or_insert((false, 0)).1 += 1;
    }
    let all = networks.into_iter();
    all.map(|(name, (registered, attachments))| Network { name, registered, attachments }).collect()
}

fn text(networks: &[Network]) -> String {
    if networks.is_empty() {
        return "no networks\n".to_owned();
    }
    let mut table = Table::new([("NETWORK", Left), ("REGISTERED", Left), ("ATTACHMENTS", Right)]);
    for Network { name, registered, attachments } in networks {
        let registered = if *registered { "yes" } else { "no" };
        table.row([name.clone(), registered.to_owned(), grouped(*attachments)]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_listed_once_whoever_knows_it() {
        let registered = ["idle", "pods"].map(str::to_owned).into();
        let networks = merge(registered, ["pods", "podman", "pods"].map(str::to_owned).into_iter());
        assert_eq!(
            text(&networks),
            "NETWORK  REGISTERED  ATTACHMENTS\n\
             idle     yes                   0\n\
             podman   no                    1\n\
             pods     yes                   2\n"
        );
        assert_eq!(text(&[]), "no networks\n");
    }
}
