//! Chains with plugins of other projects.

use std::fs;

use serde_json::{Value, json};

use crate::client::OfCni as _;
use crate::world::World;

/// Writes down what it is asked and given, and hands the previous result on. `FAIL` names a verb that it refuses.
const RECORDER: &str = r#"
config=$(cat)
echo "$config" >> "$0.configs"
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME ${CNI_NETNS##*/} $CNI_ARGS ${TRACEPARENT-none}" >> "$0.calls"
if [ "$CNI_COMMAND" = "$(cat "$0.refuses" 2>/dev/null)" ]; then
  echo '{"cniVersion": "1.1.0", "code": 42, "msg": "refused", "details": "as it was told"}'
  exit 1
fi
if [ "$CNI_COMMAND" = ADD ]; then
  echo "$config" | sed 's/.*"prevResult"://; s/,"runtimeConfig".*//; s/,"type":"recorder".*//'
fi
"#;

fn lines(world: &World, what: &str) -> Vec<String> {
    let path = world.lab.root().join("foreign").join(format!("recorder.{what}"));
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn recorder() -> Value {
    json!({ "type": "recorder", "capabilities": { "mac": true } })
}

#[test]
fn a_program_in_a_chain_is_run_as_libcni_runs_it() {
    let mut world = World::start();
    world.write_plugin("recorder", RECORDER);
    let list = world.list(&[world.shunt(), recorder()]);
    let mut asked = world.container_of("one", &list);
    asked.sandbox.args =
        [("IgnoreUnknown", "1"), ("K8S_POD_NAME", "p")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    asked.sandbox.capability_args = br#"{"mac":"02:00:00:00:00:07","ips":["10.78.0.77"]}"#.to_vec();
    let mut client = world.client();
    let mut request = tonic::Request::new(asked.add());
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    request.metadata_mut().insert("traceparent", trace.parse().unwrap());
    let result = client.runtime.block_on(client.stub.add(request)).unwrap().into_inner().result;
    client.check(&asked).unwrap();
    client.collect(asked.network.clone(), Some(&["one"])).unwrap();
    client.delete(&asked).unwrap();
    let args = "IgnoreUnknown=1;K8S_POD_NAME=p";
    let of = |verb: &str, trace: &str| format!("{verb} one eth0 one.netns {args} {trace}");
    let calls = [of("ADD", trace), of("CHECK", "none"), "GC     none".to_owned(), of("DEL", "none")];
    assert_eq!(lines(&world, "calls"), calls);
    let configs: Vec<Value> =
        lines(&world, "configs").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result: Value = serde_json::from_slice(&result).unwrap();
    for (config, is_given) in configs.iter().zip([true, true, false, true]) {
        assert_eq!((&config["name"], &config["cniVersion"]), (&json!("pods"), &json!("1.1.0")));
        assert_eq!(config.get("prevResult"), is_given.then_some(&result), "{config}");
    }
    assert_eq!(configs[0]["runtimeConfig"], json!({ "mac": "02:00:00:00:00:07" }));
    assert_eq!(configs[2]["cni.dev/valid-attachments"], json!([{ "containerID": "one", "ifname": "eth0" }]));
    world.assert_empty();
}

#[test]
fn a_program_that_fails_has_its_error_passed_on_and_the_chain_undone() {
    let mut world = World::start();
    world.write_plugin("recorder", RECORDER);
    fs::write(world.lab.root().join("foreign/recorder.refuses"), "ADD").unwrap();
    let list = world.list(&[world.shunt(), recorder()]);
    let asked = world.container_of("one", &list);
    let failure = world.client().add(&asked).unwrap_err().of_cni();
    assert_eq!(
        (failure.code, failure.msg.as_str(), failure.details.as_str()),
        (42, "refused", "as it was told")
    );
    assert_eq!(lines(&world, "calls").len(), 2, "ADD, and DEL to undo it");
    world.assert_empty();
}

#[test]
fn a_delete_goes_on_past_a_program_that_fails_and_can_be_repeated() {
    let mut world = World::start();
    world.write_plugin("recorder", RECORDER);
    let list = world.list(&[world.shunt(), recorder()]);
    let asked = world.container_of("one", &list);
    let mut client = world.client();
    client.add(&asked).unwrap();
    let refuses = world.lab.root().join("foreign/recorder.refuses");
    fs::write(&refuses, "DEL").unwrap();
    assert_eq!(client.delete(&asked).unwrap_err().of_cni().code, 42);
    assert_eq!(world.left(), Vec::<String>::new(), "shunt's part is gone");
    assert_eq!(world.cached(), ["pods-one-eth0"], "it will be asked for once more");
    fs::remove_file(refuses).unwrap();
    client.delete(&asked).unwrap();
    world.assert_empty();
}

#[test]
fn a_program_that_is_nowhere_is_named() {
    let mut world = World::start();
    let list = world.list(&[json!({ "type": "absent" })]);
    let asked = world.container_of("one", &list);
    let failure = world.client().add(&asked).unwrap_err().of_cni();
    assert!(failure.code == 7 && failure.msg.contains("absent"), "{failure:?}");
    world.assert_empty();
}

/// Writes down what it is asked, and makes nothing.
const FIRST: &str = r#"
cat > /dev/null
echo "$CNI_COMMAND" >> "$0.calls"
[ "$CNI_COMMAND" = ADD ] && echo '{"cniVersion": "1.1.0", "interfaces": [], "ips": [], "dns": {}}'
exit 0
"#;

#[test]
fn another_request_for_a_living_attachment_begins_nothing_and_ends_nothing() {
    let mut world = World::start();
    world.write_plugin("first", FIRST);
    let list = world.list(&[json!({ "type": "first" }), world.shunt()]);
    let asked = world.container_of("one", &list);
    let mut client = world.client();
    let result = client.add(&asked).unwrap();
    let mut other = asked.clone();
    other.sandbox.args = [("IgnoreUnknown".to_owned(), "1".to_owned())].into();
    let refused = client.add(&other).unwrap_err().of_cni();
    assert_eq!(refused.code, 106, "{refused:?}");
    client.check(&asked).unwrap();
    assert_eq!(client.add(&asked).unwrap(), result);
    let calls = fs::read_to_string(world.lab.root().join("foreign/first.calls")).unwrap();
    assert!(!calls.contains("DEL"), "{calls}");
    // What CHECK finds broken is made by nobody twice, and undone by nobody but a Delete.
    world.containers[0].namespace().command("ip", &["route", "del", "default"]).unwrap();
    client.add(&asked).unwrap_err();
    let calls = fs::read_to_string(world.lab.root().join("foreign/first.calls")).unwrap();
    assert!(!calls.contains("DEL"), "{calls}");
    client.delete(&asked).unwrap();
    world.assert_empty();
}

#[test]
fn a_chain_with_a_program_that_is_nowhere_begins_nothing() {
    let mut world = World::start();
    let list = world.list(&[world.shunt(), json!({ "type": "absent" })]);
    let asked = world.container_of("one", &list);
    let refused = world.client().add(&asked).unwrap_err().of_cni();
    assert!(refused.msg.contains("absent"), "{refused:?}");
    world.assert_empty();
}
