//! ADD with a plugin of another project, which writes down what it is asked.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::cache::Cache;
use crate::list::NetworkList;
use crate::proto::v1::Attachment;
use crate::settings::Settings;
use crate::trace::Trace;

/// Fails at the verbs that its file `fails` names, with code 106.
const PLUGIN: &str = r#"#!/bin/sh
cat > /dev/null
echo "$CNI_COMMAND" >> "$0.calls"
echo "$CNI_NETNS" >> "$0.netns"
if grep -qsx "$CNI_COMMAND" "$0.fails"; then
  echo '{"cniVersion": "1.1.0", "code": 106, "msg": "refused at '$CNI_COMMAND'"}'
  exit 1
fi
[ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion": "1.1.0", "dns": {}}'
"#;

struct World {
    folder: TempDir,
    settings: Settings,
    cache: Cache,
    begun: Cache,
    subject: Subject,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("fake"), PLUGIN).unwrap();
        fs::set_permissions(root.join("fake"), Permissions::from_mode(0o755)).unwrap();
        fs::write(root.join("netns"), "first").unwrap();
        let settings = Settings {
            agent_socket: PathBuf::new(),
            cni_path: vec![root.clone()],
            cache_dir: root.clone(),
            networks_dir: PathBuf::new(),
            netns_dirs: vec![root.clone()],
            program_limit: Duration::from_secs(60),
        };
        let netns = root.join("netns").to_str().unwrap().to_owned();
        let subject =
            Subject { container: "c".to_owned(), ifname: "eth0".to_owned(), netns, ..Subject::default() };
        let (cache, begun) = (Cache::in_directory(&root), Cache::of_begun(&root));
        Self { folder, settings, cache, begun, subject }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn with<T>(&self, list: &NetworkList, work: impl FnOnce(&Chain<'_>) -> T) -> T {
        let trace = Trace::default();
        let at =
            Surroundings { settings: &self.settings, subject: &self.subject, trace: &trace, caller: None };
        work(&Chain { list, cache: &self.cache, begun: &self.begun, at, netns_id: looked_at })
    }

    fn add(&self, list: &NetworkList) -> Result<Added, Failure> {
        self.with(list, |chain| chain.add())
    }

    fn fail_at(&self, verbs: &str) {
        fs::write(self.path().join("fake.fails"), verbs).unwrap();
    }

    /// What the plugin has been asked since the last time.
    fn calls(&self) -> Vec<String> {
        let path = self.path().join("fake.calls");
        let calls = fs::read_to_string(&path).unwrap_or_default();
        let _none = fs::remove_file(path);
        calls.lines().map(str::to_owned).collect()
    }

    fn has_begun(&self) -> bool {
        self.begun.read("net", &self.subject).is_some()
    }
}

/// A namespace here is a file, and another one has another text.
fn looked_at(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().filter(|text| !text.is_empty())
}

fn list(version: &str, more: &Value) -> NetworkList {
    let mut list = json!({ "cniVersion": version, "name": "net", "plugins": [{ "type": "fake" }] });
    list.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    NetworkList::read(list.to_string().as_bytes()).unwrap()
}

#[test]
fn an_attachment_that_check_finds_broken_is_not_the_repeated_add_s_to_delete() {
    let (world, list) = (World::new(), list("1.1.0", &Value::Null));
    assert!(world.add(&list).unwrap().is_new);
    world.fail_at("CHECK");
    assert!(!world.add(&list).unwrap().is_new);
    assert_eq!(world.calls(), ["ADD", "CHECK", "ADD"]);
}

#[test]
fn where_check_cannot_be_asked_the_same_request_has_the_same_answer() {
    for list in [list("0.3.1", &Value::Null), list("1.1.0", &json!({ "disableCheck": true }))] {
        let world = World::new();
        let first = world.add(&list).unwrap();
        world.fail_at("ADD\nCHECK");
        let again = world.add(&list).unwrap();
        assert_eq!((again.result, again.is_new), (first.result, false));
        assert_eq!(world.calls(), ["ADD"]);
        // A container that was started anew has nothing of it.
        fs::write(world.path().join("netns"), "second").unwrap();
        assert!(world.add(&list).is_err());
        assert_eq!(world.calls(), ["DEL", "ADD", "DEL"]);
        world.fail_at("");
        assert!(world.add(&list).unwrap().is_new);
        world.add(&list).unwrap();
        assert_eq!(world.calls(), ["ADD"], "the second one's is known then");
    }
}

#[test]
fn an_attachment_whose_namespace_is_another_one_now_is_deleted_without_entering_that() {
    let (world, list) = (World::new(), list("1.1.0", &Value::Null));
    world.add(&list).unwrap();
    fs::write(world.path().join("netns"), "second").unwrap();
    world.fail_at("DEL");
    let refused = world.add(&list).unwrap_err();
    assert!(refused.msg.contains("DEL of an earlier attachment"), "{refused:?}");
    assert!(world.cache.read("net", &world.subject).is_some(), "it is known until it is deleted");
    world.fail_at("");
    assert!(world.add(&list).unwrap().is_new);
    assert_eq!(world.calls(), ["ADD", "DEL", "DEL", "ADD"], "CHECK might find nothing");
    let entered = fs::read_to_string(world.path().join("fake.netns")).unwrap();
    assert_eq!(entered.lines().map(str::is_empty).collect::<Vec<_>>(), [false, true, true, false]);
}

#[test]
fn where_it_cannot_be_known_which_namespace_it_is_the_chain_is_run() {
    let (world, list) = (World::new(), list("0.3.1", &Value::Null));
    fs::write(world.path().join("netns"), "").unwrap();
    world.add(&list).unwrap();
    world.add(&list).unwrap();
    assert_eq!(world.calls(), ["ADD", "ADD"]);
}

#[test]
fn who_is_refused_because_check_fails_is_told_what_it_says() {
    let (world, list) = (World::new(), list("1.1.0", &Value::Null));
    world.add(&list).unwrap();
    world.fail_at("ADD\nCHECK");
    let refused = world.add(&list).unwrap_err();
    assert_eq!((refused.code, refused.msg.as_str()), (codes::EXISTS, "refused at ADD"));
    assert!(refused.details.contains("code 106: refused at CHECK"), "{refused:?}");
}

#[test]
fn what_check_says_is_before_what_may_be_cut() {
    let long = Failure { details: "x".repeat(600), ..Failure::new(codes::EXISTS, "refused") };
    let details = told(long, Some(&Failure::new(11, "no route"))).details;
    assert!(details.starts_with("CHECK of the attachment failed with code 11: no route; xxx"), "{details}");
}

#[test]
fn what_a_killed_process_has_begun_is_deleted_before_the_next_add() {
    let (world, list) = (World::new(), list("1.1.0", &Value::Null));
    world.begun.write(&Cached::of(&list, &world.subject, (None, Value::Null))).unwrap();
    assert!(world.add(&list).unwrap().is_new);
    assert_eq!(world.calls(), ["DEL", "ADD"]);
    assert!(!world.has_begun());
    assert!(!world.add(&list).unwrap().is_new);
}

#[test]
fn what_a_killed_process_has_begun_is_deleted_by_delete_and_gc() {
    let (world, list) = (World::new(), list("1.0.0", &Value::Null));
    let begin = || world.begun.write(&Cached::of(&list, &world.subject, (None, Value::Null))).unwrap();
    begin();
    world.with(&list, |chain| chain.delete()).unwrap();
    assert!(!world.has_begun());
    begin();
    world.with(&list, |chain| chain.collect(&[])).unwrap();
    assert!(!world.has_begun());
    assert_eq!(world.calls(), ["DEL", "DEL"]);
}

#[test]
fn an_add_that_fails_has_begun_nothing_unless_it_cannot_be_undone() {
    let (world, list) = (World::new(), list("1.1.0", &Value::Null));
    world.fail_at("ADD");
    world.add(&list).unwrap_err();
    assert!(!world.has_begun());
    world.fail_at("ADD\nDEL");
    world.add(&list).unwrap_err();
    assert!(world.has_begun());
    assert_eq!(world.calls(), ["ADD", "DEL", "ADD", "DEL"]);
    world.fail_at("");
    world.add(&list).unwrap();
    assert_eq!(world.calls(), ["DEL", "ADD"]);
}

#[test]
fn names_of_which_there_can_be_no_result_begin_nothing() {
    let (mut world, list) = (World::new(), list("1.1.0", &Value::Null));
    let other = NetworkList { name: "net-c".to_owned(), ..list.clone() };
    let subject = Subject { container: "d".to_owned(), ..world.subject.clone() };
    world.cache.write(&Cached::of(&other, &subject, (None, Value::Null))).unwrap();
    world.subject.container = "c-d".to_owned();
    assert_eq!(world.add(&list).unwrap_err().code, codes::EXISTS);
    world.subject.container = "c".repeat(250);
    assert_eq!(world.add(&list).unwrap_err().code, codes::ENVIRONMENT);
    assert!(world.calls().is_empty());
    world.with(&list, |chain| chain.delete()).unwrap();
}

#[test]
fn check_of_an_attachment_that_is_not_known_says_so() {
    let (world, list) = (World::new(), list("1.1.0", &Value::Null));
    let refused = world.with(&list, |chain| chain.check()).unwrap_err();
    assert_eq!(refused.code, codes::UNKNOWN_CONTAINER);
    assert!(world.calls().is_empty());
}

#[test]
fn a_mark_beside_a_result_is_removed_by_add_and_gc_and_nothing_is_deleted() {
    let (world, list) = (World::new(), list("1.1.0", &Value::Null));
    world.add(&list).unwrap();
    let mark = || world.begun.write(&Cached::of(&list, &world.subject, (None, Value::Null))).unwrap();
    mark();
    assert!(!world.add(&list).unwrap().is_new);
    assert!(!world.has_begun());
    mark();
    let valid = [Attachment { container_id: "c".to_owned(), ifname: "eth0".to_owned() }];
    world.with(&list, |chain| chain.collect(&valid)).unwrap();
    assert!(!world.has_begun() && world.cache.read("net", &world.subject).is_some());
    assert_eq!(world.calls(), ["ADD", "CHECK", "GC"]);
}

#[test]
fn a_mark_whose_del_fails_stays_and_fails_the_add() {
    let (world, list) = (World::new(), list("1.1.0", &Value::Null));
    world.begun.write(&Cached::of(&list, &world.subject, (Some("old".to_owned()), Value::Null))).unwrap();
    let mark = world.begun.read("net", &world.subject);
    world.fail_at("DEL");
    let refused = world.add(&list).unwrap_err();
    assert!(refused.msg.contains("not finished") && refused.msg.contains("refused at DEL"), "{refused:?}");
    assert_eq!(world.calls(), ["DEL"], "no ADD is begun");
    assert_eq!(world.begun.read("net", &world.subject), mark);
}
