//! Every object is what Kubernetes' own types say: each field is known there, and has its type.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::api::resource::v1::DeviceClass;
use serde_json::{Value, json};

use crate::kept::{INSTALL, UNINSTALL, object, objects, text};

/// Why an object is not what its type says. The types ignore what they do not know: what is not there any more after the way through
/// them is such a field.
fn wrong<T>(object: &Value) -> Vec<String>
where
    T: k8s_openapi::Resource + serde::Serialize + serde::de::DeserializeOwned,
{
    let read: T = match serde_json::from_value(object.clone()) {
        Ok(read) => read,
        Err(error) => return vec![error.to_string()],
    };
    let mut lost = Vec::new();
    missing(object, &serde_json::to_value(read).unwrap(), "", &mut lost);
    lost
}

fn missing(wanted: &Value, found: &Value, path: &str, lost: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            for (key, value) in wanted {
                missing(value, found.get(key).unwrap_or(&Value::Null), &format!("{path}.{key}"), lost);
            }
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (n, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                missing(wanted, found, &format!("{path}[{n}]"), lost);
            }
        }
        // An empty map or list is not written.
        (Value::Object(wanted), Value::Null) if wanted.is_empty() => {}
        _ if wanted == found => {}
        _ => lost.push(format!("{path}: {wanted}, not {found}")),
    }
}

fn judge(object: &Value) -> Vec<String> {
    let kind = object["kind"].as_str().unwrap();
    match (object["apiVersion"].as_str().unwrap(), kind) {
        ("apps/v1", "DaemonSet") => wrong::<DaemonSet>(object),
        ("v1", "ConfigMap") => wrong::<ConfigMap>(object),
        ("v1", "ServiceAccount") => wrong::<ServiceAccount>(object),
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => wrong::<ClusterRole>(object),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding") => wrong::<ClusterRoleBinding>(object),
        ("resource.k8s.io/v1", "DeviceClass") => wrong::<DeviceClass>(object),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy") => {
            wrong::<ValidatingAdmissionPolicy>(object)
        }
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding") => {
            wrong::<ValidatingAdmissionPolicyBinding>(object)
        }
        (version, kind) => vec![format!("{version} {kind} is not expected in the manifest")],
    }
}

#[test]
fn every_object_is_one_that_kubernetes_knows() {
    for (manifest, count) in [(INSTALL, 14), (UNINSTALL, 1)] {
        let objects = objects(&text(manifest));
        assert_eq!(objects.len(), count);
        for object in objects {
            let wrong = judge(&object);
            assert!(wrong.is_empty(), "{} {}: {wrong:?}", object["kind"], object["metadata"]["name"]);
        }
    }
}

#[test]
fn an_unknown_field_and_a_wrong_type_are_found() {
    let whole = object(&text(INSTALL), "DaemonSet", "shunt");
    let container = "/spec/template/spec/containers/0";
    let change = |path: &str, value: Value| {
        let mut changed = whole.clone();
        changed.pointer_mut(container).unwrap()[path] = value;
        judge(&changed)
    };
    let unknown = change("securityContxt", json!({ "privileged": true }));
    assert!(unknown.len() == 1 && unknown[0].contains("containers[0].securityContxt"), "{unknown:?}");
    let wrong = change("args", json!("run"));
    assert!(wrong.len() == 1 && wrong[0].contains("invalid type"), "{wrong:?}");
}

#[test]
fn there_are_no_secrets_and_no_rights_but_those_that_publishing_takes() {
    let text = text(INSTALL);
    assert!(!text.contains("kind: Secret") && !text.to_lowercase().contains("secretname"));
    let role = object(&text, "ClusterRole", "shunt");
    assert_eq!(
        role["rules"],
        json!([
            { "apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"],
              "verbs": ["get", "list", "watch", "create", "update"] },
            { "apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"] },
            { "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"] },
            { "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["patch"] },
            { "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/driver"],
              "resourceNames": ["bandwidth.shunt.dev"],
              "verbs": ["associated-node:patch", "associated-node:update"] },
            { "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] },
            { "apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"] },
            { "apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"] },
        ])
    );
}

#[test]
fn only_the_agent_has_a_token_and_only_the_mount_is_privileged() {
    let daemon_set = object(&text(INSTALL), "DaemonSet", "shunt");
    let pod = &daemon_set["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    let mut has_token = Vec::new();
    for list in ["initContainers", "containers"] {
        for container in pod[list].as_array().unwrap() {
            let name = container["name"].as_str().unwrap();
            let security = &container["securityContext"];
            assert_eq!(security["privileged"] == true, name == "mount-bpffs", "{name}");
            assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
            let mounts = container["volumeMounts"].as_array().unwrap();
            has_token.extend(mounts.iter().any(|mount| mount["name"] == "token").then_some(name));
        }
    }
    assert_eq!(has_token, ["agent"]);
    assert_eq!(pod["hostNetwork"], true);
    assert_eq!((&pod["hostPID"], &pod["hostIPC"]), (&Value::Null, &Value::Null));
}
