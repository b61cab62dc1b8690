//! `shunt-agent attachments`: what the cache of results has, in libcni's own terms.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use shunt_cni::client::Client;
use shunt_cni::proto::v1::ListedAttachment;

use super::cni_query::CniQuery;
use super::table::{Align::Left, Table};

/// Options of `attachments`.
#[derive(Args, Debug)]
pub(crate) struct Attachments {
    #[command(flatten)]
    query: CniQuery,
    /// Only those of this network.
    #[arg(long, value_name = "NAME")]
    network: Option<String>,
}

/// The contract of `--json`.
#[derive(Serialize)]
struct Attachment {
    network: String,
    container: String,
    ifname: String,
    /// May be gone.
    netns: String,
    /// As the last plugin has printed it.
    result: Value,
}

impl Attachments {
    pub(super) fn ask(self) -> ExitCode {
        let network = self.network.unwrap_or_default();
        let ask = |client: &mut Client| {
            let mut found: Vec<_> = client.attachments(&network)?.into_iter().map(Attachment::from).collect();
            found.sort_by(|one, other| one.key().cmp(&other.key()));
            Ok(found)
        };
        self.query.show(ask, text)
    }
}

impl From<ListedAttachment> for Attachment {
    fn from(listed: ListedAttachment) -> Self {
        let key = listed.attachment.unwrap_or_default();
        Self {
            network: listed.network,
            container: key.container_id,
            ifname: key.ifname,
            netns: listed.netns,
            result: serde_json::from_slice(&listed.result).unwrap_or_default(),
        }
    }
}

impl Attachment {
    fn key(&self) -> [&str; 3] {
        [&self.network, &self.container, &self.ifname].map(String::as_str)
    }

    /// The addresses of a result of any version.
    fn addresses(&self) -> Vec<&str> {
        let newer = self.result["ips"].as_array().into_iter().flatten().map(|ip| &ip["address"]);
        let older = ["ip4", "ip6"].into_iter().map(|family| &self.result[family]["ip"]);
        newer.chain(older).filter_map(Value::as_str).collect()
    }
}

fn text(attachments: &[Attachment]) -> String {
    if attachments.is_empty() {
        return "no attachments\n".to_owned();
    }
    let mut table = Table::new([
        ("NETWORK", Left),
        ("CONTAINER", Left),
        ("IF", Left),
        ("ADDRESSES", Left),
        ("NAMESPACE", Left),
    ]);
    for one in attachments {
        table.row([
            one.network.clone(),
            one.container.chars().take(13).collect(),
            one.ifname.clone(),
            one.addresses().join(","),
            one.netns.clone(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(result: &Value) -> Attachment {
        let key = shunt_cni::proto::v1::Attachment { container_id: "c1".into(), ifname: "eth0".into() };
        Attachment::from(ListedAttachment {
            network: "pods".into(),
            attachment: Some(key),
            netns: "/run/netns/x".into(),
            result: result.to_string().into_bytes(),
        })
    }

    #[test]
    fn addresses_are_those_of_a_result_of_any_version() {
        for result in [
            json!({ "ips": [{ "address": "10.0.0.2/24" }, { "address": "fd00::2/64" }] }),
            json!({ "ip4": { "ip": "10.0.0.2/24" }, "ip6": { "ip": "fd00::2/64" } }),
        ] {
            assert_eq!(listed(&result).addresses(), ["10.0.0.2/24", "fd00::2/64"], "{result}");
        }
        assert!(listed(&json!({ "ips": [{}, 7] })).addresses().is_empty());
    }

    #[test]
    fn the_table_has_a_row_for_each() {
        let table = text(&[listed(&json!({ "ips": [{ "address": "10.0.0.2/24" }] }))]);
        assert_eq!(
            table,
            "NETWORK  CONTAINER  IF    ADDRESSES    NAMESPACE\n\
             pods     c1         eth0  10.0.0.2/24  /run/netns/x\n"
        );
        assert_eq!(text(&[]), "no attachments\n");
    }
}
