//! A DaemonSet's pod, its containers run by podman with what the manifest grants them and nothing else: user, capabilities, read-only
//! root, mounts and their propagation, the node's network, the default seccomp profile.

use std::process::Output;

use serde_json::Value;

use crate::host::Host;

/// Where the host keeps what is not a path of its own: `ConfigMap`s and tokens.
const OBJECTS: &str = "/run/objects";

pub(crate) struct Pod<'a> {
    host: &'a Host,
    spec: Value,
}

impl<'a> Pod<'a> {
    /// The pod of the DaemonSet in this manifest; the objects that it mounts are written to the host.
    pub(crate) fn of(host: &'a Host, manifest: &str) -> Self {
        let objects: Vec<Value> = serde_saphyr::from_multiple(manifest).unwrap();
        let find = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
        let spec = find("DaemonSet").unwrap()["spec"]["template"]["spec"].clone();
        for volume in list(&spec["volumes"]).iter().filter(|volume| volume["hostPath"].is_null()) {
            host.run(&["mkdir", "-p", &format!("{OBJECTS}/{}", text(&volume["name"]))]);
        }
        if let Some(config) = find("ConfigMap") {
            let file = &config["data"]["agent.toml"];
            host.write(&format!("{OBJECTS}/config/agent.toml"), text(file));
        }
        Self { host, spec }
    }

    /// Runs the init container of this name to its end.
    pub(crate) fn initialize(&self, name: &str) -> Output {
        self.podman("initContainers", name, &["--rm"])
    }

    /// Starts the container of this name.
    pub(crate) fn start(&self, name: &str) {
        let output = self.podman("containers", name, &["--detach"]);
        assert!(output.status.success(), "{output:?}");
    }

    /// The command of a container's probe, run in the container.
    pub(crate) fn probe(&self, name: &str, probe: &str) -> Output {
        let container = self.container("containers", name);
        let mut words = vec!["podman", "--storage-driver", "vfs", "exec", name];
        words.extend(list(&container[probe]["exec"]["command"]).iter().map(text));
        self.host.command(&words).output().unwrap()
    }

    /// Ends the container as a kubelet does, and says how it ended.
    pub(crate) fn stop(&self, name: &str) -> String {
        let [podman, vfs] = [["podman", "--storage-driver"], ["vfs", "stop"]];
        self.host.run(&[&podman[..], &vfs, &["--time", "20", name]].concat());
        let format = ["inspect", "--format", "{{.State.ExitCode}}", name];
        let code = self.host.run(&[&podman[..], &["vfs"], &format].concat());
        self.host.run(&[&podman[..], &["vfs", "rm", name]].concat());
        code.trim().to_owned()
    }

    fn container(&self, kind: &str, name: &str) -> &Value {
        list(&self.spec[kind]).iter().find(|container| container["name"] == name).unwrap()
    }

    fn podman(&self, kind: &str, name: &str, options: &[&str]) -> Output {
        let container = self.container(kind, name);
        let mut words: Vec<String> = ["podman", "--storage-driver", "vfs", "--log-level", "error", "run"]
            .into_iter()
            .chain(options.iter().copied())
            .chain(["--name", name, "--pull", "never", "--network", "host", "--pids-limit", "0"])
            .map(str::to_owned)
            .collect();
        if self.spec["hostPID"] == true {
            words.push("--pid=host".to_owned());
        }
        words.extend(security(&container["securityContext"]));
        words.extend(list(&container["env"]).iter().map(environment));
        words.extend(list(&container["volumeMounts"]).iter().map(|mount| self.volume(mount)));
        words.push(text(&container["image"]).to_owned());
        words.extend(list(&container["args"]).iter().map(|word| text(word).to_owned()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.host.command(&words).output().unwrap()
    }

    fn volume(&self, mount: &Value) -> String {
        let volumes = list(&self.spec["volumes"]);
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
        let from = match &volume["hostPath"]["path"] {
            Value::String(path) => path.clone(),
            _ => format!("{OBJECTS}/{}", text(&volume["name"])),
        };
        // A kubelet makes the directory of such a volume.
        if volume["hostPath"]["type"] == "DirectoryOrCreate" {
            self.host.run(&["mkdir", "-p", &from]);
        }
        let propagation = match mount["mountPropagation"].as_str() {
            Some("Bidirectional") => "rshared",
            Some("HostToContainer") => "rslave",
            _ => "rprivate",
        };
        let access = if mount["readOnly"] == true { "ro" } else { "rw" };
        format!("--volume={from}:{}:{access},{propagation}", text(&mount["mountPath"]))
    }
}

fn security(context: &Value) -> Vec<String> {
    assert_eq!(context["readOnlyRootFilesystem"], true);
    let mut words = ["--read-only", "--read-only-tmpfs=false"].map(str::to_owned).to_vec();
    if context["privileged"] == true {
        words.push("--privileged".to_owned());
        return words;
    }
    let of = |what: &'static str| list(&context["capabilities"][what]).iter();
    words.extend(of("drop").map(|name| format!("--cap-drop={}", text(name))));
    words.extend(of("add").map(|name| format!("--cap-add={}", text(name))));
    if context["allowPrivilegeEscalation"] == false {
        words.push("--security-opt=no-new-privileges".to_owned());
    }
    words
}

fn environment(variable: &Value) -> String {
    // The one that is taken from the pod is the node's name.
    let value = variable["value"].as_str().unwrap_or("node");
    format!("--env={}={value}", text(&variable["name"]))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}
