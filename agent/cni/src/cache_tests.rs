//! The files of results.

use serde_json::json;

use super::*;

fn list(name: &str) -> NetworkList {
    let list = json!({ "cniVersion": "1.0.0", "name": name, "plugins": [{ "type": "shunt" }] });
    NetworkList::read(list.to_string().as_bytes()).unwrap()
}

fn subject(container: &str) -> Subject {
    let args = [("A".to_owned(), "b".to_owned())].into();
    Subject {
        container: container.to_owned(),
        ifname: "eth0".to_owned(),
        netns: "/run/netns/x".to_owned(),
        args,
        ..Subject::default()
    }
}

#[test]
fn what_is_written_is_read_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(folder.path());
    let (list, subject) = (list("net"), subject("c"));
    let cached = Cached::of(&list, &subject, (None, json!({ "ips": [] })));
    cache.write(&cached).unwrap();
    assert!(folder.path().join("results/net-c-eth0").is_file());
    let read = cache.read("net", &subject).unwrap();
    assert_eq!(read, cached);
    assert!(read.is_of(&list, &subject) && !read.is_of(&list, &Subject::default()));
    assert_eq!(read.list().unwrap().name, "net");
    assert_eq!(read.subject().cni_args(), "A=b");
    cache.remove("net", &subject).unwrap();
    cache.remove("net", &subject).unwrap();
    assert_eq!(cache.read("net", &subject), None);
}

#[test]
fn a_network_whose_name_begins_like_another_s_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(folder.path());
    cache.write(&Cached::of(&list("a"), &subject("b-c"), (None, Value::Null))).unwrap();
    cache.write(&Cached::of(&list("a"), &subject("d"), (None, Value::Null))).unwrap();
    assert_eq!(cache.of_network("a").len(), 2);
    assert!(cache.of_network("a-b").is_empty());
    assert_eq!(cache.read("a-b", &subject("c")), None);
    cache.write(&Cached::of(&list("b"), &subject("d"), (None, Value::Null))).unwrap();
    let mut networks: Vec<_> =
        cache.of_interface("d", "eth0").into_iter().map(|cached| cached.network_name).collect();
    networks.sort();
    assert_eq!(networks, ["a", "b"]);
    assert!(cache.of_interface("c", "eth0").is_empty());
}

#[test]
fn two_attachments_whose_files_have_one_name_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(folder.path());
    let first = Cached::of(&list("a"), &subject("b-c"), (None, Value::Null));
    cache.write(&first).unwrap();
    cache.remove("a-b", &subject("c")).unwrap();
    assert_eq!(cache.read("a", &subject("b-c")), Some(first), "it is not the other's to remove");
    let refused = cache.admits("a-b", &subject("c")).unwrap_err();
    assert!(refused.code == codes::EXISTS && refused.msg.contains("b-c"), "{refused:?}");
    cache.admits("a", &subject("b-c")).unwrap();
}

#[test]
fn names_that_make_no_file_are_refused_and_nothing_is_there_to_remove() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(folder.path());
    let longest = "c".repeat(LONGEST_NAME - "a--eth0".len());
    cache.admits("a", &subject(&longest)).unwrap();
    cache.write(&Cached::of(&list("a"), &subject(&longest), (None, Value::Null))).unwrap();
    let refused = cache.admits("a", &subject(&(longest + "c"))).unwrap_err();
    assert!(refused.code == codes::ENVIRONMENT && refused.msg.contains("250"), "{refused:?}");
    cache.remove("a", &subject(&"c".repeat(300))).unwrap();
}

#[test]
fn a_file_that_is_being_written_is_no_attachment() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(folder.path());
    cache.write(&Cached::of(&list("a"), &subject("c"), (None, Value::Null))).unwrap();
    let results = folder.path().join("results");
    fs::copy(results.join("a-c-eth0"), results.join(".a-c-eth0.new")).unwrap();
    assert_eq!(cache.page("", 0, "").0.len(), 1);
    assert_eq!(cache.of_interface("c", "eth0").len(), 1);
    assert_eq!(cache.of_network("a").len(), 1);
}

#[test]
fn attachments_are_listed_a_page_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(folder.path());
    assert_eq!(cache.page("", 0, ""), (Vec::new(), None));
    for (network, container) in [("a", "c"), ("a", "d"), ("a-b", "c"), ("b", "c")] {
        cache.write(&Cached::of(&list(network), &subject(container), (None, json!({ "ips": [] })))).unwrap();
    }
    fs::write(folder.path().join("results/a-broken-eth0"), "{").unwrap();
    let page = |network: &str, size: usize, after: &str| {
        let (found, next) = cache.page(network, size, after);
        let keys = found.into_iter().map(|listed| {
            assert_eq!(listed.result, br#"{"ips":[]}"#);
            format!("{} {}", listed.network, listed.attachment.unwrap().container_id)
        });
        (keys.collect::<Vec<_>>(), next)
    };
    assert_eq!(page("", 0, "").0, ["a-b c", "a c", "a d", "b c"]);
    assert_eq!(page("a", 0, "").0, ["a c", "a d"]);
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let (keys, next) = page("", 1, &after);
        assert!(keys.len() <= 1);
        found.extend(keys);
        match next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(found, ["a-b c", "a c", "a d", "b c"]);
}

/// As libcni 1.2 writes it.
#[test]
fn a_file_of_libcni_s_is_read_and_one_of_another_kind_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, path) = (Cache::in_directory(folder.path()), folder.path().join("results/net-c-eth0"));
    fs::create_dir_all(folder.path().join("results")).unwrap();
    let config = STANDARD.encode(&list("net").raw);
    let mut file = json!({
        "kind": "cniCacheV1", "containerId": "c", "config": config, "ifName": "eth0", "networkName": "net",
        "netns": "/run/netns/x", "cniArgs": [["IgnoreUnknown", "1"]], "capabilityArgs": { "mac": "x" },
        "result": { "cniVersion": "1.0.0", "dns": {} }
    });
    fs::write(&path, file.to_string()).unwrap();
    let read = cache.read("net", &subject("c")).unwrap();
    assert_eq!(read.subject().cni_args(), "IgnoreUnknown=1");
    assert_eq!(read.result["cniVersion"], "1.0.0");
    file["kind"] = "cniCacheV2".into();
    fs::write(&path, file.to_string()).unwrap();
    assert_eq!(cache.read("net", &subject("c")), None);
}
