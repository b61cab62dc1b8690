//! `CNI_ARGS`: `KEY=VALUE;KEY=VALUE`, in the keys' exact case.

use shunt_agent_api::Pod;

/// Bytes of a pod's namespace, name or UID that are taken on. Kubernetes' own names have 253 at most.
const MAX_NAME: usize = 253;

/// The keys of `CNI_ARGS` that mean something here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// `MAC`: the address that the container's end is to have.
    pub mac: Option<String>,
    /// `IP`: the addresses to ask the IPAM for, separated by commas.
    pub ips: Vec<String>,
    /// `K8S_POD_NAMESPACE`, `K8S_POD_NAME` and `K8S_POD_UID`. As with the reference plugins these are unknown keys, for which the
    /// runtime sets `IgnoreUnknown`.
    pub pod: Pod,
}

/// `CNI_ARGS` is not what the rule says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// Not `KEY=VALUE`.
    #[error("CNI_ARGS: `{0}` is not a pair KEY=VALUE")]
    Pair(String),
    /// `IgnoreUnknown` is neither.
    #[error("CNI_ARGS: IgnoreUnknown is `{0}`, which is neither true nor false")]
    Flag(String),
    /// Keys without a meaning, and `IgnoreUnknown` is not set.
    #[error("CNI_ARGS: unknown keys {0:?} (IgnoreUnknown=1 would allow them)")]
    Unknown(Vec<String>),
}

impl Arguments {
    /// Reads the variable's text; an empty one says nothing.
    ///
    /// # Errors
    /// Every kind of [`ArgumentsError`].
    pub fn parse(text: &str) -> Result<Self, ArgumentsError> {
        let mut arguments = Self::default();
        let mut unknown = Vec::new();
        let mut ignore = false;
        for pair in text.split(';').filter(|_| !text.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| ArgumentsError::Pair(pair.to_owned()))?;
            if value.contains('=') {
                return Err(ArgumentsError::Pair(pair.to_owned()));
            }
            match key {
                "IgnoreUnknown" => ignore = flag(value)?,
                "MAC" => arguments.mac = Some(value.to_owned()).filter(|mac| !mac.is_empty()),
                "IP" => {
                    arguments.ips = value.split(',').filter(|ip| !ip.is_empty()).map(str::to_owned).collect();
                }
                "GATEWAY" => {}
                _ => {
                    arguments.take_pod(key, value);
                    unknown.push(key.to_owned());
                }
            }
        }
        if unknown.is_empty() || ignore { Ok(arguments) } else { Err(ArgumentsError::Unknown(unknown)) }
    }

    /// Takes on what a key says of the pod, if it is one of those.
    fn take_pod(&mut self, key: &str, value: &str) {
        let field = match key {
            "K8S_POD_NAMESPACE" => &mut self.pod.namespace,
            "K8S_POD_NAME" => &mut self.pod.name,
            "K8S_POD_UID" => &mut self.pod.uid,
            _ => return,
        };
        if value.len() <= MAX_NAME {
            value.clone_into(field);
        }
    }
}

fn flag(value: &str) -> Result<bool, ArgumentsError> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(ArgumentsError::Flag(value.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_unless_they_are_to_be_ignored() {
        let unknown = ArgumentsError::Unknown(vec!["K8S_POD_NAME".to_owned()]);
        assert_eq!(Arguments::parse("K8S_POD_NAME=a;IP=10.0.0.9"), Err(unknown));
        let arguments = Arguments::parse("K8S_POD_NAME=a;IP=10.0.0.9;IgnoreUnknown=True").unwrap();
        assert_eq!(arguments.ips, ["10.0.0.9"]);
        assert!(Arguments::parse("X=1;IgnoreUnknown=0").is_err());
    }

    #[test]
    fn a_pod_is_read_from_what_runtimes_send() {
        let text = "IgnoreUnknown=1;K8S_POD_NAMESPACE=team;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u-1";
        let Pod { namespace, name, uid, .. } = Arguments::parse(text).unwrap().pod;
        assert_eq!([namespace, name, uid], ["team", "web-0", "u-1"]);
        let long = format!("IgnoreUnknown=1;K8S_POD_NAME={}", "x".repeat(MAX_NAME + 1));
        assert_eq!(Arguments::parse(&long).unwrap().pod, Pod::default());
    }

    #[test]
    fn what_is_not_a_pair_is_refused_even_when_unknown_keys_are_ignored() {
        for text in
            ["A", "IgnoreUnknown=1;A", "IgnoreUnknown=1;A=b=c", "IgnoreUnknown=1;", "IgnoreUnknown=yes"]
        {
            assert!(Arguments::parse(text).is_err(), "{text}");
        }
        assert_eq!(Arguments::parse(""), Ok(Arguments::default()));
    }
}
