use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use shunt_agent_api::{CarriedReport, Limits, PoolReport, PortReport, SlotsReport, Traffic, UplinkReport};

use super::*;
use crate::cli::top::rates::tests::{drop_report, port, sample};
use crate::cli::top::sample::Sample;
use crate::resources::clock::processor_time;

/// Attachments of a large node.
const MANY: usize = 1_000;

fn shown(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let now = Instant::now();
    terminal.draw(|frame| draw(frame, screen, now)).unwrap();
    let text = terminal.backend().to_string();
    text.lines().map(|line| line.trim_matches('"').trim_end().to_owned() + "\n").collect()
}

/// "one" has sent 2 Mb/s by the fast path towards its limit of 2 Mb/s, "two" has dropped; an uplink; all within two seconds.
fn samples() -> [Sample; 2] {
    let begun = Instant::now();
    let limits = Limits { egress: Some(2_000_000), ingress: None };
    let one = PortReport { limits, namespace: "team".into(), pod: "web".into(), ..port("one") };
    let mut then = sample(begun, 0, vec![one.clone(), port("two")]);
    let sent = Traffic { packets: 3_000, bytes: 500_000, fast: 2_980, kernel: 20, dropped: 0 };
    let received = Traffic { packets: 40, bytes: 5_000, fast: 0, kernel: 40, dropped: 9 };
    let two = PortReport { to: received, kernels_way: vec!["a filter".into()], ..port("two") };
    let mut now = sample(begun, 2, vec![PortReport { from: sent, ..one }, two]);
    now.drops = vec![drop_report("isolated", "veth-two", 9)];
    let pool = PoolReport { total: 10_000_000, reserved: 0, allocated: 2_000_000, free: 8_000_000 };
    let uplink = |egress| UplinkReport {
        name: "uplink0".into(),
        speed: 0,
        egress: pool,
        ingress: pool,
        slots: SlotsReport::default(),
        allocations: Vec::new(),
        unknown: None,
        carried: Some(CarriedReport { egress, ingress: 0 }),
    };
    then.capacity.uplinks = vec![uplink(0)];
    now.capacity.uplinks = vec![uplink(250_000)];
    [then, now]
}

fn screen() -> Screen {
    let mut screen = Screen::default();
    samples().into_iter().for_each(|sample| screen.take(Ok(sample)));
    screen
}

#[test]
fn a_wide_terminal_shows_rates_limits_throttling_reasons_and_uplinks() {
    let text = shown(&mut screen(), 150, 16);
    let has = |parts: &[&str]| {
        let found = text.lines().any(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            words.windows(parts.len()).any(|window| window == parts)
        });
        assert!(found, "{parts:?}\n{text}");
    };
    has(&["2", "attachments", "sent", "2Mb/s", "received", "20kb/s", "over", "2.0", "s"]);
    has(&["team/web:eth0", "2M", "1.49k", "10", "0", "0", "0", "0", "2M/-", "throttled:", "egress"]);
    has(&["pods/two:eth0", "0", "0", "0", "20k", "0", "20", "4.5", "dropped:", "isolated", "4.5/s;", "by"]);
    has(&["uplink0", "egress", "10M", "2M", "0", "1M"]);
    has(&["isolated", "a", "stage", "veth-two", "4.5", "9"]);
    has(&["by", "traffic", "h:", "keys", "q:", "quit"]);
}

#[test]
fn a_small_terminal_shows_the_name_and_the_dearest_figure() {
    let text = shown(&mut screen(), 20, 8);
    assert!(text.contains("team/web:e~       2M\n"), "{text}");
    // Nothing is drawn beyond any size, whatever there is to show.
    for (width, height) in [(1, 1), (1, 40), (2, 3), (5, 2), (20, 1), (300, 2), (300, 100)] {
        let mut screen = screen();
        assert!(!shown(&mut screen, width, height).is_empty());
        screen.shows_keys = true;
        assert!(!shown(&mut screen, width, height).is_empty());
    }
}

#[test]
fn without_attachments_or_an_agent_the_screen_says_so() {
    let mut screen = Screen::default();
    assert!(shown(&mut screen, 80, 10).contains("waiting for the agent"));
    screen.take(Err("nobody listens\u{1b}[2J".to_owned()));
    assert!(shown(&mut screen, 80, 10).contains("NO ANSWER  nobody listens\\u{1b}[2J"));
    screen.take(Ok(sample(Instant::now(), 0, Vec::new())));
    let text = shown(&mut screen, 80, 10);
    assert!(text.contains("0 attachments") && text.contains("healthy"), "{text}");
}

#[test]
fn an_agent_that_is_gone_leaves_its_figures_with_their_age_and_a_new_one_goes_on() {
    let mut screen = screen();
    screen.take(Err("gone".to_owned()));
    let text = shown(&mut screen, 120, 12);
    assert!(text.contains("NO ANSWER  figures of ") && text.contains("team/web:eth0"), "{text}");
    let [_, mut later] = samples();
    later.at += Duration::from_secs(2);
    screen.take(Ok(later));
    assert!(!shown(&mut screen, 120, 12).contains("NO ANSWER"));
}

#[test]
fn the_foot_says_how_ports_are_chosen_and_what_is_typed() {
    let mut screen = screen();
    screen.selection.is_reversed = true;
    screen.selection.filter = "we\u{7}b".into();
    screen.is_paused = true;
    let text = shown(&mut screen, 100, 12);
    assert!(text.contains("by traffic, reversed, filter we\\u{7}b") && text.contains("PAUSED"), "{text}");
    screen.is_typing = true;
    assert!(shown(&mut screen, 100, 12).contains("/we\\u{7}b_"));
}

#[test]
fn a_long_list_is_scrolled_and_never_past_its_end() {
    let begun = Instant::now();
    let ports = || (0..MANY).map(|at| port(&format!("c{at:04}"))).collect();
    let mut screen = Screen::default();
    screen.take(Ok(sample(begun, 0, ports())));
    screen.take(Ok(sample(begun, 2, ports())));
    assert!(shown(&mut screen, 80, 24).contains("pods/c0000:eth0"));
    screen.scroll(isize::MAX);
    let text = shown(&mut screen, 80, 24);
    assert!(text.contains("pods/c0999:eth0") && text.contains("pods/c0980:eth0"), "{text}");
    screen.selection.filter = "c0500".into();
    assert!(shown(&mut screen, 80, 24).contains("pods/c0500:eth0"));
}

/// The answer of an agent with a thousand attachments as it comes over the socket, read, put into rates and drawn.
#[test]
fn a_thousand_attachments_take_a_small_part_of_a_processor() {
    let ports: Vec<_> = (0..MANY as u64)
        .map(|at| PortReport {
            from: Traffic { packets: at, bytes: at * 1_000, fast: at, kernel: 0, dropped: 0 },
            container: format!("{at:064x}"),
            namespace: "a-namespace".into(),
            pod: format!("a-deployment-5d8f7c9b4-{at:05}"),
            ..port("one")
        })
        .collect();
    let answer = serde_json::to_vec(&ports).unwrap();
    let mut screen = Screen::default();
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
    let (begun, worked) = (Instant::now(), processor_time());
    let times = 10;
    for at in 0..times {
        let ports = serde_json::from_slice(&answer).unwrap();
        screen.take(Ok(sample(begun, 2 * at, ports)));
        terminal.draw(|frame| draw(frame, &mut screen, begun)).unwrap();
    }
    let each = (processor_time() - worked) / u32::try_from(times).unwrap();
    // An unoptimized build: ten times what the manual says of a shipped one.
    assert!(each < Duration::from_millis(400), "{each:?} for each of them");
    assert!(terminal.backend().to_string().contains("1 000 attachments"));
}
