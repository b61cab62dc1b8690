//! Which destinations see the container's own address although the network is masqueraded: `nonMasqueradeCIDRs`.

use std::collections::BTreeSet;

use ipnet::IpNet;
use shunt_netlink::prefix;

use super::bridge::Bridge;
use super::error::ConfigError;

const KEY: &str = "nonMasqueradeCIDRs";

/// As many may be named; the agent takes no more.
const MOST: usize = 256;

/// The destinations, each once, in order, without bits behind the prefix. None without `ipMasq`: all see the container's own address.
///
/// # Errors
/// [`ConfigError::Invalid`] for too many, and for what is no prefix. An address without a length is none.
pub(crate) fn unmasqueraded(bridge: &Bridge) -> Result<Vec<String>, ConfigError> {
    let named = &bridge.non_masquerade_cidrs;
    if named.len() > MOST {
        return Err(invalid(format!("names {} prefixes, and may name {MOST}", named.len())));
    }
    let prefixes: BTreeSet<IpNet> = named.iter().map(|text| read(text)).collect::<Result<_, _>>()?;
    Ok(prefixes.iter().filter(|_| bridge.ip_masq).map(IpNet::to_string).collect())
}

fn read(text: &str) -> Result<IpNet, ConfigError> {
    let prefix = prefix::parse(text)
        .map_err(|_| invalid(format!("`{text}` is no prefix, as 10.2.0.0/16 and fd02::7/128 are")))?;
    if prefix::is_mapped(&prefix) {
        return Err(invalid(format!("`{text}` holds mapped IPv4 addresses: write them as IPv4")));
    }
    Ok(prefix.trunc())
}

fn invalid(why: String) -> ConfigError {
    ConfigError::Invalid { key: KEY, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(ip_masq: bool, named: &[&str]) -> Result<Vec<String>, ConfigError> {
        let non_masquerade_cidrs = named.iter().map(|text| (*text).to_owned()).collect();
        unmasqueraded(&Bridge { ip_masq, non_masquerade_cidrs, ..Bridge::default() })
    }

    #[test]
    fn prefixes_are_sorted_and_named_once() {
        let read = read_as(true, &["fd02::9/64", "10.2.3.4/16", "10.2.0.0/16", "0.0.0.0/0"]).unwrap();
        assert_eq!(read, ["0.0.0.0/0", "10.2.0.0/16", "fd02::/64"]);
        assert!(read_as(false, &["10.2.0.0/16"]).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_prefix_is_named() {
        for wrong in ["10.2.0.1", "10.2.0.0/33", "", "::ffff:10.0.0.0/104", "pods"] {
            let error = read_as(false, &[wrong]).unwrap_err().to_string();
            assert!(error.contains(KEY) && error.contains(wrong), "{error}");
        }
        assert!(read_as(true, &["10.0.0.0/8"; 256]).is_ok());
        assert!(read_as(true, &["10.0.0.0/8"; 257]).unwrap_err().to_string().contains("257"));
    }
}
