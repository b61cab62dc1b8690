//! A pod of the draft in the words of the service.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::keys::{CONTAINER, NETWORK};
use super::registration::range_of;
use crate::failure::{Failure, codes};
use crate::proto::draft::{
    AssociatedConfiguration, DnsConfig, LinuxAttachmentConfig, PodConfig, PodMetadata, PortMapping, Protocol,
};
use crate::proto::v1;
use crate::proto::v1::network::Source;

/// What a configuration of a pod's own has to be.
const CONFIG: [&str; 2] = ["cni.dev/v1", "NetworkConfigurationList"];

/// Whom a call of the draft is about.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) attachment: v1::Attachment,
    pub(crate) sandbox: v1::Sandbox,
    /// The network, where the request says which.
    pub(crate) network: Option<Source>,
    /// By which a network is found else.
    pub(super) labels: HashMap<String, String>,
}

impl Pod {
    /// # Errors
    /// Code 2: something is asked for that no plugin can be told; 4: the pod has no id. All else is checked by the call that follows.
    pub(super) fn of(
        ifname: String,
        config: Option<PodConfig>,
        extradata: &HashMap<String, String>,
    ) -> Result<Self, Failure> {
        let config = config.unwrap_or_default();
        let unsupported = |what: &str| Err(Failure::new(codes::UNSUPPORTED_FIELD, what));
        if config.windows_config.is_some() {
            return unsupported("`WindowsConfig`: this node runs Linux");
        }
        if !config.routes.is_empty() {
            return unsupported("`podconfig.routes`: a pod's routes are its network's, register them there");
        }
        let capability_args = capabilities(&config)?.to_string().into_bytes();
        let metadata = config.metadata.unwrap_or_default();
        let container_id = match extradata.get(CONTAINER) {
            Some(id) => id.clone(),
            None => container_id(&metadata)?,
        };
        let LinuxAttachmentConfig { netns_path: netns, .. } = config.linux_config.unwrap_or_default();
        let sandbox = v1::Sandbox { netns, args: args(metadata, &container_id), capability_args };
        Ok(Self {
            attachment: v1::Attachment { container_id, ifname },
            sandbox,
            network: network(config.config, extradata)?,
            labels: config.labels,
        })
    }
}

/// What tells one sandbox of a pod from the next.
fn container_id(metadata: &PodMetadata) -> Result<String, Failure> {
    match metadata {
        PodMetadata { uid, .. } if uid.is_empty() => {
            let why = "`podconfig.metadata.uid` is empty, of which the container's id is made";
            Err(Failure::new(codes::ENVIRONMENT, why))
        }
        PodMetadata { uid, attempt: 0, .. } => Ok(uid.clone()),
        PodMetadata { uid, attempt, .. } => Ok(format!("{uid}-{attempt}")),
    }
}

/// `CNI_ARGS` as runtimes of Kubernetes give them.
fn args(metadata: PodMetadata, container: &str) -> HashMap<String, String> {
    let PodMetadata { name, uid, namespace, .. } = metadata;
    let args = [
        ("IgnoreUnknown", "1".to_owned()),
        ("K8S_POD_INFRA_CONTAINER_ID", container.to_owned()),
        ("K8S_POD_NAME", name),
        ("K8S_POD_NAMESPACE", namespace),
        ("K8S_POD_UID", uid),
    ];
    let said = args.into_iter().filter(|(_, value)| !value.is_empty());
    said.map(|(key, value)| (key.to_owned(), value)).collect()
}

fn network(
    config: Option<AssociatedConfiguration>,
    extradata: &HashMap<String, String>,
) -> Result<Option<Source>, Failure> {
    match config {
        None => Ok(extradata.get(NETWORK).cloned().map(Source::Name)),
        Some(config) if [config.api_version.as_str(), config.kind.as_str()] == CONFIG => {
            Ok(Some(Source::ConfigList(config.raw)))
        }
        Some(AssociatedConfiguration { api_version, kind, .. }) => {
            let why = format!("`podconfig.config` is {api_version} {kind}, and not {CONFIG:?}");
            Err(Failure::new(codes::UNSUPPORTED_FIELD, why))
        }
    }
}

/// The capabilities' values; each plugin gets those that it declares.
fn capabilities(config: &PodConfig) -> Result<Value, Failure> {
    let mut values = Map::new();
    let mappings: Vec<Value> = config
        .port_mappings
        .iter()
        .filter(|mapping| mapping.host_port != 0)
        .map(port_mapping)
        .collect::<Result<_, _>>()?;
    if !mappings.is_empty() {
        values.insert("portMappings".to_owned(), mappings.into());
    }
    if let Some(DnsConfig { servers, searches, options, .. }) = &config.dns {
        let dns = json!({ "servers": servers, "searches": searches, "options": options });
        values.insert("dns".to_owned(), dns);
    }
    if !config.ipam.is_empty() {
        let sets: Vec<Value> = config.ipam.iter().map(|range| json!([range_of(range)])).collect();
        values.insert("ipRanges".to_owned(), sets.into());
    }
    if !config.annotations.is_empty() {
        values.insert("io.kubernetes.cri.pod-annotations".to_owned(), json!(config.annotations));
    }
    match &config.linux_config {
        Some(linux) if !linux.cgroup_path.is_empty() => {
            values.insert("cgroupPath".to_owned(), linux.cgroup_path.as_str().into());
        }
        _ => {}
    }
    Ok(values.into())
}

fn port_mapping(mapping: &PortMapping) -> Result<Value, Failure> {
    let protocol = match Protocol::try_from(mapping.protocol) {
        Ok(Protocol::Tcp) => "tcp",
        Ok(Protocol::Udp) => "udp",
        Ok(Protocol::Sctp) => "sctp",
        Err(_) => {
            let why = format!("the protocol {} of a port mapping", mapping.protocol);
            return Err(Failure::new(codes::UNSUPPORTED_FIELD, why));
        }
    };
    let mut said = json!({
        "hostPort": mapping.host_port, "containerPort": mapping.container_port, "protocol": protocol
    });
    if !mapping.host_ip.is_empty() {
        said["hostIP"] = mapping.host_ip.as_str().into();
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::draft::{Ipam, Route, WindowsAttachmentConfig};

    fn metadata() -> PodMetadata {
        PodMetadata { name: "web".into(), uid: "u-1".into(), namespace: "team".into(), attempt: 0 }
    }

    fn read(config: PodConfig) -> Result<Pod, Failure> {
        Pod::of("eth0".to_owned(), Some(config), &HashMap::new())
    }

    #[test]
    fn a_pod_is_a_container_with_arguments_and_capabilities() {
        let mapping = |host_port, protocol: Protocol| PortMapping {
            protocol: protocol.into(),
            container_port: 80,
            host_port,
            host_ip: String::new(),
        };
        let config = PodConfig {
            metadata: Some(metadata()),
            linux_config: Some(LinuxAttachmentConfig {
                netns_path: "/run/netns/x".into(),
                cgroup_path: "/pods/x".into(),
                ..LinuxAttachmentConfig::default()
            }),
            port_mappings: vec![mapping(8080, Protocol::Sctp), mapping(0, Protocol::Tcp)],
            dns: Some(DnsConfig { servers: vec!["10.0.0.53".into()], ..DnsConfig::default() }),
            ipam: vec![Ipam { subnet: "10.0.0.0/24".into(), ..Ipam::default() }],
            ..PodConfig::default()
        };
        let pod = read(config).unwrap();
        assert_eq!(pod.attachment, v1::Attachment { container_id: "u-1".into(), ifname: "eth0".into() });
        assert_eq!(pod.sandbox.netns, "/run/netns/x");
        assert_eq!(pod.sandbox.args["K8S_POD_NAMESPACE"], "team");
        assert_eq!(pod.sandbox.args["K8S_POD_UID"], "u-1");
        assert_eq!(
            serde_json::from_slice::<Value>(&pod.sandbox.capability_args).unwrap(),
            json!({
                "portMappings": [{ "hostPort": 8080, "containerPort": 80, "protocol": "sctp" }],
                "dns": { "servers": ["10.0.0.53"], "searches": [], "options": [] },
                "ipRanges": [[{ "subnet": "10.0.0.0/24" }]],
                "cgroupPath": "/pods/x"
            })
        );
        assert!(pod.network.is_none());
    }

    #[test]
    fn a_later_attempt_is_another_container_and_an_id_can_be_given() {
        let config =
            PodConfig { metadata: Some(PodMetadata { attempt: 2, ..metadata() }), ..PodConfig::default() };
        assert_eq!(read(config.clone()).unwrap().attachment.container_id, "u-1-2");
        let given = [(CONTAINER.to_owned(), "c9".to_owned()), (NETWORK.to_owned(), "pods".to_owned())];
        let pod = Pod::of("eth0".to_owned(), Some(config), &given.into()).unwrap();
        assert_eq!(pod.attachment.container_id, "c9");
        assert_eq!(pod.network, Some(Source::Name("pods".to_owned())));
    }

    #[test]
    fn what_no_plugin_can_be_told_is_refused() {
        let with = |config: PodConfig| {
            let config = PodConfig { metadata: Some(metadata()), ..config };
            read(config).unwrap_err().code
        };
        let windows = Some(WindowsAttachmentConfig::default());
        assert_eq!(with(PodConfig { windows_config: windows, ..PodConfig::default() }), 2);
        assert_eq!(with(PodConfig { routes: vec![Route::default()], ..PodConfig::default() }), 2);
        let config =
            Some(AssociatedConfiguration { kind: "Other".into(), ..AssociatedConfiguration::default() });
        assert_eq!(with(PodConfig { config, ..PodConfig::default() }), 2);
        let unknown = PortMapping { protocol: 7, host_port: 1, ..PortMapping::default() };
        assert_eq!(with(PodConfig { port_mappings: vec![unknown], ..PodConfig::default() }), 2);
        assert_eq!(read(PodConfig::default()).unwrap_err().code, codes::ENVIRONMENT);
    }
}
