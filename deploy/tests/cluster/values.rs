//! What the chart's values do, and which are refused.

use serde_json::{Value, json};
use shunt_agent::config::Options;

use crate::kept::{object, objects};
use crate::rendered::chart;

/// Each is refused, and the error names the value.
const REFUSED: [(&str, &str); 18] = [
    ("imagge.tag=1", "imagge"),
    ("image.pullPolicy=Sometimes", "image/pullPolicy"),
    ("image.digest=sha256:12", "image/digest"),
    ("plugin.binDir=opt/cni/bin", "plugin/binDir"),
    ("plugin.dropIn=maybe", "plugin/dropIn"),
    ("kubernetes.publish=yes-please", "kubernetes/publish"),
    ("agent.config.socket=/run/other.sock", "socket"),
    ("agent.config.admission=never", "agent/config/admission"),
    ("agent.config.max_flows=0", "agent/config/max_flows"),
    ("agent.config.uplinks.eth0.egress=fast", "uplinks/eth0/egress"),
    ("agent.config.uplinks.eth0.factor=0", "uplinks/eth0/factor"),
    ("maxUnavailable=0", "maxUnavailable"),
    ("cluster.routes=tunnel", "cluster/routes"),
    ("cluster.vxlan.id=16777216", "cluster/vxlan/id"),
    ("cluster.vxlan.port=0", "cluster/vxlan/port"),
    ("cluster.vxlan.device=sixteen-bytes-is", "cluster/vxlan/device"),
    ("cluster.conflist=shunt.conf", "cluster/conflist"),
    ("cluster.podCidrs={10.1.0.0}", "cluster/podCidrs"),
];

#[test]
fn values_that_cannot_be_meant_are_refused_and_named() {
    let Some(chart) = chart() else { return };
    for (setting, named) in REFUSED {
        let error = chart.render(&["--set", setting]).expect_err(setting).to_string();
        assert!(error.contains("schema") && error.contains(named), "{setting}: {error}");
    }
}

fn agent_toml(rendered: &str) -> Options {
    let map = object(rendered, "ConfigMap", "shunt");
    toml::from_str(map["data"]["agent.toml"].as_str().unwrap()).unwrap()
}

#[test]
fn the_agents_keys_reach_the_agent_as_it_reads_them() {
    let Some(chart) = chart() else { return };
    let config = json!({
        "max_flows": 4096,
        "max_flows_per_container": 512,
        "mark_mask": 0x1060,
        "metrics": "[::1]:9100",
        "admission": "enforce",
        "masquerade": "kernel",
        "announcements": "all",
        "filters": "auto",
        "filter_lease": "500ms",
        "filter_host_ports": false,
        "big_tcp": 131072,
        "grace_periods": "normal",
        "uplinks": { "eth0": { "egress": "10G", "ingress": "2.5G", "factor": 1, "reserve": "100M",
                               "networks": ["pods"], "xdp": "off", "guarantee": true }, "eth1.5": {} },
    });
    let rendered = chart.render(&["--set-json", &format!("agent.config={config}")]).unwrap();
    let wanted = r#"
        max_flows = 4096
        max_flows_per_container = 512
        mark_mask = 0x1060
        metrics = "[::1]:9100"
        admission = "enforce"
        masquerade = "kernel"
        announcements = "all"
        filters = "auto"
        filter_host_ports = false
        filter_lease = "500ms"
        big_tcp = 131072
        grace_periods = "normal"
        [api]
        cni_path = ["/opt/cni/bin"]
        [kubernetes]
        publish = "auto"
        kubelet_root = "/var/lib/kubelet"
        [uplinks.eth0]
        egress = "10G"
        ingress = "2.5G"
        factor = 1.0
        reserve = "100M"
        networks = ["pods"]
        xdp = "off"
        guarantee = true
        [uplinks."eth1.5"]
    "#;
    assert_eq!(agent_toml(&rendered), toml::from_str(wanted).unwrap());
}

#[test]
fn without_claims_nothing_of_the_kubelets_is_mounted_and_no_claim_is_read() {
    let Some(chart) = chart() else { return };
    for setting in ["kubernetes.claims=false", "kubernetes.publish=node", "kubernetes.publish=off"] {
        let rendered = chart.render(&["--set", setting]).unwrap();
        assert!(!rendered.contains("kubelet-") && !rendered.contains("resourceclaims"), "{setting}");
        assert!(
            agent_toml(&rendered).kubernetes.is_none_or(|options| options.kubelet().is_none()),
            "{setting}"
        );
    }
    let rendered = chart.render(&["--set", "host.kubelet=/data/kubelet"]).unwrap();
    let options = agent_toml(&rendered).kubernetes.unwrap();
    assert_eq!(options.kubelet(), Some(std::path::Path::new("/data/kubelet")));
    for directory in ["plugins", "plugins_registry"] {
        assert!(rendered.contains(&format!("mountPath: /data/kubelet/{directory}\n")), "{rendered}");
    }
}

fn kinds(rendered: &str) -> Vec<String> {
    let mut kinds: Vec<_> =
        objects(rendered).iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect();
    kinds.sort();
    kinds
}

#[test]
fn who_publishes_nothing_has_no_rights_and_no_token() {
    let Some(chart) = chart() else { return };
    let off = ["--set", "kubernetes.publish=off,kubernetes.deviceClass=false,service.enabled=false"];
    let rendered = chart.render(&off).unwrap();
    assert_eq!(kinds(&rendered), ["ConfigMap", "DaemonSet", "ServiceAccount"]);
    assert!(!rendered.contains("serviceAccountToken:"), "{rendered}");
    assert_eq!(agent_toml(&rendered), Options::default());
}

#[test]
fn rights_are_those_of_the_way_of_publishing() {
    let Some(chart) = chart() else { return };
    for (publish, resources, named) in [
        (
            "slice",
            vec![
                json!(["resourceslices"]),
                json!(["events"]),
                json!(["resourceclaims"]),
                json!(["resourceclaims/status"]),
                json!(["resourceclaims/driver"]),
                json!(["pods"]),
            ],
            vec!["shunt-slices", "shunt-events", "shunt-claims"],
        ),
        (
            "node",
            vec![json!(["events"]), json!(["nodes"]), json!(["nodes/status"])],
            vec!["shunt-node", "shunt-events"],
        ),
    ] {
        let rendered = chart.render(&["--set", &format!("kubernetes.publish={publish}")]).unwrap();
        let role = object(&rendered, "ClusterRole", "shunt");
        let of: Vec<Value> =
            role["rules"].as_array().unwrap().iter().map(|rule| rule["resources"].clone()).collect();
        assert_eq!(of, resources);
        let policies = kinds(&rendered).into_iter().filter(|kind| kind == "ValidatingAdmissionPolicy");
        assert_eq!(policies.count(), named.len());
        for policy in named {
            object(&rendered, "ValidatingAdmissionPolicyBinding", policy);
        }
    }
}

#[test]
fn claims_are_listed_where_admission_counts_them_and_nowhere_else() {
    let Some(chart) = chart() else { return };
    for (admission, verbs) in [
        ("off", json!(["get"])),
        ("warn", json!(["get", "list", "watch"])),
        ("enforce", json!(["get", "list", "watch"])),
    ] {
        let rendered = chart.render(&["--set", &format!("agent.config.admission={admission}")]).unwrap();
        let role = object(&rendered, "ClusterRole", "shunt");
        let mut rules = role["rules"].as_array().unwrap().iter();
        let claims = rules.find(|rule| rule["resources"] == json!(["resourceclaims"])).unwrap();
        assert_eq!(claims["verbs"], verbs, "{admission}");
    }
}

#[test]
fn a_node_is_uninstalled_by_a_pod_without_a_token_whose_main_container_does_nothing() {
    let Some(chart) = chart() else { return };
    let force = ["--set", "uninstall=true,uninstallForce=true", "--set", "plugin.binDir=/usr/lib/cni"];
    let rendered = chart.render(&force).unwrap();
    assert_eq!(kinds(&rendered), ["DaemonSet", "ServiceAccount"]);
    let daemon_set = object(&rendered, "DaemonSet", "shunt");
    let pod = &daemon_set["spec"]["template"]["spec"];
    assert_eq!(
        pod["initContainers"][0]["args"],
        json!([
            "uninstall",
            "--on-host",
            "--bin-dir=/usr/lib/cni",
            "--conf-dir=/etc/cni/net.d",
            "--conflist=/etc/cni/net.d/10-shunt.conflist",
            "--force"
        ])
    );
    assert_eq!(pod["containers"][0]["args"], json!(["idle"]));
    assert_eq!((&pod["hostPID"], &pod["volumes"]), (&json!(true), &Value::Null));
}

#[test]
fn the_chart_takes_every_key_of_an_uplink_that_is_documented() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let operations = read("docs/operations.md");
    let table = operations.split("| key of `[uplinks.NAME]`").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = table.lines().skip(2).filter_map(|row| row.split('|').nth(1));
    let documented: Vec<_> =
        names.flat_map(|names| names.split(',')).map(|name| name.trim().trim_matches('`')).collect();
    let schema: Value = serde_json::from_str(&read("deploy/helm/shunt/values.schema.json")).unwrap();
    let uplink = &schema["definitions"]["config"]["properties"]["uplinks"]["additionalProperties"];
    let taken = uplink["properties"].as_object().unwrap();
    assert!(documented.len() >= 7, "{documented:?}");
    for key in documented {
        assert!(taken.contains_key(key), "{key} is not among {taken:?}");
    }
}

#[test]
fn cni_is_served_unless_somebody_says_otherwise() {
    let Some(chart) = chart() else { return };
    let plugins = "mountPath: /data/bin\n";
    for (setting, is_served) in [
        ("plugin.loopback=true", true),
        ("service.enabled=false", false),
        // As an upgrade with the values of an earlier chart has it.
        ("service=null", true),
    ] {
        let rendered = chart.render(&["--set", &format!("{setting},plugin.binDir=/data/bin")]).unwrap();
        let served = agent_toml(&rendered).api.map(|api| api.cni_path);
        assert_eq!(served, is_served.then(|| vec!["/data/bin".into()]), "{setting}");
        assert_eq!(rendered.contains(plugins), is_served, "{setting}");
    }
    assert!(chart.render(&["--set", "service=null,uninstall=true"]).is_ok());
    assert!(chart.render(&["--set", "service.enabled=perhaps"]).is_err());
}

#[test]
fn the_agent_has_the_variables_that_it_is_given() {
    let Some(chart) = chart() else { return };
    let rendered =
        chart.render(&["--set", "agent.env.OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317"]).unwrap();
    let variable = "- name: OTEL_EXPORTER_OTLP_ENDPOINT\n          value: \"http://127.0.0.1:4317\"\n";
    assert!(rendered.contains(variable), "{rendered}");
}
