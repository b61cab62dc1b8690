//! What the agent logs: one line for each change of an attachment, and none for a packet.

use serde_json::Value;
use shunt_agent_api::{Bandwidth, Rate, Request};

use crate::rig::Rig;

fn lines(rig: &Rig) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    rig.log().lines().map(parse).collect()
}

/// Message and result of each change of this attachment; every one has a duration.
fn changes(rig: &Rig, key: &str) -> Vec<(String, String)> {
    let lines = lines(rig);
    let changes = lines.iter().filter(|line| line["key"] == key && !line["result"].is_null());
    let text = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
    changes
        .map(|line| {
            assert!(line["took_ms"].as_f64().is_some_and(|took| took > 0.0), "{line}");
            assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
            (text(line, "message"), text(line, "result"))
        })
        .collect()
}

fn change(message: &str, result: &str) -> (String, String) {
    (message.to_owned(), result.to_owned())
}

#[test]
fn each_change_of_an_attachment_is_one_line_with_its_key_duration_and_result() {
    let mut rig = Rig::bare();
    rig.run_with_json_logs();
    let (one, two) = (rig.container(2), rig.container(3));
    rig.attach(&one).unwrap();
    rig.attach(&two).unwrap();
    let mut taken = two.clone();
    taken.key.container = "c4".into();
    rig.attach(&taken).unwrap_err();
    let limit = Rate { rate: 1_000_000, burst: 100_000 };
    let bandwidth = Bandwidth { ingress: Some(limit), ..Bandwidth::default() };
    rig.ask(Request::Limit { key: one.key.clone(), bandwidth }).unwrap();

    let before = lines(&rig).len();
    rig.exchange(0, 1, 50);
    // The kernel's news of the limit may come meanwhile.
    assert!(lines(&rig).len() < before + 5, "no line is a packet's: {}", rig.log());

    rig.detach(&one).unwrap();
    assert!(rig.detach(&one).is_none());
    let again = change("detach", "ok");
    let expected = [change("attach", "ok"), change("limit", "ok"), again.clone(), again];
    assert_eq!(changes(&rig, "net/c2/eth0"), expected, "{}", rig.log());
    assert_eq!(changes(&rig, "net/c3/eth0"), [change("attach", "ok")]);
    assert_eq!(changes(&rig, "net/c4/eth0"), [change("attach", "refused")]);
}
