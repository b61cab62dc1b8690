//! The chart's agents as the cluster's network.

use serde_json::{Value, json};
use shunt_agent::config::{ClusterOptions, Options, Routes, VxlanOptions};

use crate::kept::object;
use crate::rendered::chart;

fn options(rendered: &str) -> Options {
    let map = object(rendered, "ConfigMap", "shunt");
    toml::from_str(map["data"]["agent.toml"].as_str().unwrap()).unwrap()
}

#[test]
fn the_agent_is_told_and_has_the_directories_and_rights_that_it_needs() {
    let Some(chart) = chart() else { return };
    let settings =
        ["--set", "cluster.enabled=true,kubernetes.publish=off", "--set", "cluster.confDir=/data/net.d"];
    let rendered = chart.render(&settings).unwrap();
    let cluster = options(&rendered).cluster.unwrap();
    let conflist = "/data/net.d/10-shunt.conflist".into();
    assert_eq!(cluster, ClusterOptions { enabled: true, conflist, ..ClusterOptions::default() });
    assert!(options(&rendered).kubernetes.is_none(), "nothing is published");
    let role = object(&rendered, "ClusterRole", "shunt");
    let rules: Vec<&Value> = role["rules"].as_array().unwrap().iter().collect();
    let rights: Vec<_> = rules.iter().map(|rule| (&rule["resources"], &rule["verbs"])).collect();
    let [events, nodes, status] = [json!(["events"]), json!(["nodes"]), json!(["nodes/status"])];
    let [create, read, patch] = [json!(["create"]), json!(["get", "list", "watch"]), json!(["patch"])];
    assert_eq!(rights, [(&events, &create), (&nodes, &read), (&status, &patch)]);
    for policy in ["shunt-node", "shunt-events"] {
        object(&rendered, "ValidatingAdmissionPolicyBinding", policy);
    }
    let daemon_set = object(&rendered, "DaemonSet", "shunt");
    let mounts = &daemon_set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"];
    let mount = |path: &str| mounts.as_array().unwrap().iter().find(|mount| mount["mountPath"] == path);
    assert!(mount("/data/net.d").unwrap()["readOnly"].is_null());
    assert_eq!(mount("/opt/cni/bin").unwrap()["readOnly"], true);
    assert!(mount("/var/run/secrets/kubernetes.io/serviceaccount").is_some());
}

#[test]
fn whoever_names_pod_cidrs_has_them_and_nothing_is_mounted_for_others() {
    let Some(chart) = chart() else { return };
    let settings = [
        "--set",
        "cluster.enabled=true,cluster.routes=off",
        "--set",
        "cluster.podCidrs={10.1.0.0/24,fd01::/64}",
    ];
    let cluster = options(&chart.render(&settings).unwrap()).cluster.unwrap();
    assert_eq!(cluster.pod_cidrs, ["10.1.0.0/24".parse().unwrap(), "fd01::/64".parse().unwrap()]);
    let rendered = chart.render(&[]).unwrap();
    assert!(!rendered.contains("net.d") && options(&rendered).cluster.is_none());
}

#[test]
fn a_node_that_is_uninstalled_loses_the_configuration_too() {
    let Some(chart) = chart() else { return };
    // As `uninstall.yaml` is rendered, whatever was set when the agents came.
    for network in ["false", "true"] {
        let rendered =
            chart.render(&["--set", &format!("uninstall=true,cluster.enabled={network}")]).unwrap();
        let daemon_set = object(&rendered, "DaemonSet", "shunt");
        let arguments = &daemon_set["spec"]["template"]["spec"]["initContainers"][0]["args"];
        let named = ["--conf-dir=/etc/cni/net.d", "--conflist=/etc/cni/net.d/10-shunt.conflist"];
        assert!(named.iter().all(|name| arguments.as_array().unwrap().contains(&json!(name))), "{arguments}");
    }
}

#[test]
fn the_vxlan_device_reaches_the_agent_as_it_reads_it() {
    let Some(chart) = chart() else { return };
    let settings = "cluster.enabled=true,cluster.routes=vxlan,cluster.vxlan.id=16777215,cluster.vxlan.port=4789,\
                    cluster.vxlan.device=tunnel0";
    let cluster = options(&chart.render(&["--set", settings]).unwrap()).cluster.unwrap();
    assert_eq!(cluster.routes, Routes::Vxlan);
    assert_eq!(cluster.vxlan, VxlanOptions { device: "tunnel0".to_owned(), id: 16_777_215, port: 4789 });
    let defaults = options(&chart.render(&["--set", "cluster.enabled=true"]).unwrap()).cluster.unwrap();
    assert_eq!((defaults.routes, defaults.vxlan), (Routes::Auto, VxlanOptions::default()));
}
