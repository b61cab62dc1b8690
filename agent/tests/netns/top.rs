//! `shunt-agent top` in a real terminal, over real traffic.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use shunt_lab::{Binaries, Terminal, measured};
use tempfile::TempDir;

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::wire::{Wire, frame};

/// Nobody's address.
const NOBODY: [u8; 6] = [2, 0xde, 0xad, 0, 0, 1];

/// Frames a second from the first to the second container, and such with a wrong source.
const SENT: u32 = 400;
const SPOOFED: u32 = 100;

/// Bytes of each.
const SIZE: usize = 1_000;

const WIDE: (u16, u16) = (150, 24);

/// A checked container "one", a limited one "two", and a third.
fn stage() -> Stage {
    let mut stage = Stage::empty();
    let open = stage.network.clone();
    stage.network = open.clone().with("macspoofchk", json!(true));
    stage.add("one");
    // Less than what it will be sent.
    let limit = json!({ "bandwidth": { "ingressRate": 2_000_000, "ingressBurst": 100_000 } });
    stage.network = open.clone().with("runtimeConfig", limit);
    stage.add("two");
    stage.network = open;
    stage.add("three");
    stage
}

/// `top` with these arguments, as a line for a shell.
fn line(stage: &Stage, arguments: &str) -> String {
    let program = Binaries::find().unwrap().agent().to_path_buf();
    let socket = stage.node.agent().socket();
    format!(
        "{} top --socket {} --interval 500ms {arguments}; echo ended $?",
        program.display(),
        socket.display()
    )
}

/// A terminal in which `top` runs.
fn terminal(stage: &Stage, directory: &TempDir) -> Terminal {
    let terminal = Terminal::open(directory.path(), WIDE).unwrap();
    terminal.enter(&line(stage, "")).unwrap();
    terminal.until("the first container", |text| text.contains("pods/one:eth0")).unwrap();
    terminal
}

/// Sends while `work` is done.
fn while_sending<T>(stage: &Stage, work: impl FnOnce() -> T) -> T {
    let wires = [0, 1].map(|index| tap(&stage.sandboxes[index]));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| send(&wires, &is_done));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_done.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn send([from, to]: &[Wire; 2], is_done: &AtomicBool) {
    let frames = [(from.mac(), SENT), (NOBODY, SPOOFED)].map(|(source, rate)| {
        let mut frame = frame(to.mac(), source, "shown");
        frame.resize(SIZE, 0);
        (frame, rate)
    });
    let begun = Instant::now();
    let mut sent = [0; 2];
    while !is_done.load(Ordering::Relaxed) {
        for ((frame, rate), sent) in frames.iter().zip(&mut sent) {
            let due = (begun.elapsed().as_secs_f64() * f64::from(*rate)) as u64;
            (*sent..due).for_each(|_| from.send(frame));
            *sent = due;
        }
        to.at_hand();
        thread::sleep(Duration::from_millis(5));
    }
}

/// The words of the container's line, if it is shown.
fn words(text: &str, container: &str) -> Option<Vec<String>> {
    let line = text.lines().find(|line| line.starts_with(&format!("pods/{container}:eth0")))?;
    Some(line.split_whitespace().map(str::to_owned).collect())
}

/// A figure as it is written, with its unit.
fn figure(text: &str) -> f64 {
    let (number, times) = match text.chars().last() {
        Some('k') => (&text[..text.len() - 1], 1e3),
        Some('M') => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    number.parse::<f64>().map_or(f64::NAN, |number| number * times)
}

/// The figure in a column of a container's line, when it is right, or else as it was last.
fn shown(terminal: &Terminal, container: &str, column: usize, right: f64) -> f64 {
    let begun = Instant::now();
    loop {
        let text = terminal.text().unwrap();
        let figure = words(&text, container).map_or(f64::NAN, |words| figure(&words[column]));
        if (0.7 * right..1.3 * right).contains(&figure) || begun.elapsed() > Duration::from_secs(10) {
            return figure;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn assert_shown(terminal: &Terminal, container: &str, column: usize, right: f64) {
    let range = 0.7 * right..1.3 * right;
    let figure = measured(&range, || shown(terminal, container, column, right));
    assert!(range.contains(&figure), "{container}, column {column}: {figure}, not about {right}");
}

#[test]
fn traffic_is_shown_at_its_rate_drops_with_their_reason_and_who_is_throttled() {
    let stage = stage();
    let directory = tempfile::tempdir().unwrap();
    let terminal = terminal(&stage, &directory);
    while_sending(&stage, || {
        let bits = f64::from(SENT) * SIZE as f64 * 8.0;
        assert_shown(&terminal, "one", 1, bits);
        assert_shown(&terminal, "one", 2, SENT.into());
        assert_shown(&terminal, "one", 7, SPOOFED.into());
        assert_shown(&terminal, "two", 4, bits);
        let text = terminal.until("the reason", |text| text.contains("dropped: source_spoofed")).unwrap();
        let two = words(&text, "two").unwrap();
        assert_eq!(&two[8..11], ["-/2M", "throttled:", "ingress"], "{text}");
        // The table of the node's drops.
        assert!(text.lines().any(|line| line.starts_with("source_spoofed")), "{text}");
        assert!(text.contains("3 attachments"), "{text}");
    });
    terminal.until("silence", |text| words(text, "one").is_some_and(|words| words[1] == "0")).unwrap();
}

#[test]
fn keys_sort_filter_and_pause() {
    let stage = stage();
    let directory = tempfile::tempdir().unwrap();
    let terminal = terminal(&stage, &directory);
    let order = |text: &str| {
        let names = text.lines().filter_map(|line| line.strip_prefix("pods/")?.split(':').next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    while_sending(&stage, || {
        terminal.press(&["s"]).unwrap();
        let is_sorted = |text: &str| text.contains("by sent") && order(text) == ["one", "three", "two"];
        terminal.until("who sends most comes first", is_sorted).unwrap();
        terminal.press(&["r"]).unwrap();
        let is_reversed = |text: &str| order(text) == ["two", "three", "one"];
        terminal.until("who sends most comes last", is_reversed).unwrap();
        terminal.press(&["/", "H", "R", "E", "E", "Enter"]).unwrap();
        terminal.until("the one that is left", |text| order(text) == ["three"]).unwrap();
        terminal.press(&["Escape"]).unwrap();
        terminal.until("all of them", |text| order(text).len() == 3).unwrap();
        terminal.press(&["t"]).unwrap();
        terminal.until("who is throttled", |text| order(text) == ["two"]).unwrap();
        terminal.press(&["t", "p"]).unwrap();
        let paused = terminal.until("a pause", |text| text.contains("PAUSED") && order(text).len() == 3);
        let paused = paused.unwrap();
        thread::sleep(Duration::from_secs(2));
        assert_eq!(terminal.text().unwrap(), paused);
        terminal.press(&["p"]).unwrap();
        terminal.until("it goes on", |text| !text.contains("PAUSED") && text != paused).unwrap();
    });
}

#[test]
fn a_dead_agent_a_new_one_and_a_terminal_of_any_size_are_lived_with() {
    let mut stage = stage();
    let directory = tempfile::tempdir().unwrap();
    let terminal = terminal(&stage, &directory);
    stage.node.agent_mut().kill().unwrap();
    let is_dead = |text: &str| text.contains("NO ANSWER") && text.contains("pods/one:eth0");
    terminal.until("that nobody answers", is_dead).unwrap();
    stage.node.restart_agent().unwrap();
    terminal.until("a new agent", |text| text.contains("healthy") && !text.contains("NO ANSWER")).unwrap();
    for size in [(20, 10), (2, 2), (20, 1), (200, 60), WIDE] {
        terminal.resize(size).unwrap();
        // What is drawn for the old size may be seen for a moment.
        let is_drawn = |text: &str| size.1 < 10 || text.contains("pods/one");
        terminal.until("a screen of the new size", is_drawn).unwrap();
    }
    terminal.until("the whole", |text| text.contains("by traffic  h: keys  q: quit")).unwrap();
}

/// The process of `top`.
fn process(stage: &Stage) -> Pid {
    let mine = format!("top\0--socket\0{}", stage.node.agent().socket().display());
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let id: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let said = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
        String::from_utf8_lossy(&said).contains(&mine).then_some(Pid::from_raw(id))
    });
    processes.last().expect("top runs")
}

#[test]
fn the_terminal_is_given_back_by_a_key_and_by_a_signal() {
    let stage = stage();
    let directory = tempfile::tempdir().unwrap();
    let terminal = terminal(&stage, &directory);
    assert_eq!(terminal.state().unwrap(), (true, false), "the screen is the program's");
    let assert_given_back = |code: &str| {
        let ended = format!("ended {code}\n");
        terminal.until("the end", |text| text.contains(&ended)).unwrap();
        assert_eq!(terminal.state().unwrap(), (false, true), "the screen is the shell's");
        terminal.enter("clear; stty -a").unwrap();
        let modes = terminal.until("the modes", |text| text.contains("icanon")).unwrap();
        assert!(!modes.contains("-icanon") && !modes.contains("-echo "), "{modes}");
        terminal.enter("clear").unwrap();
    };
    terminal.press(&["q"]).unwrap();
    assert_given_back("0");
    for (signal, code) in [(Signal::SIGTERM, "143"), (Signal::SIGHUP, "129")] {
        terminal.enter(&line(&stage, "")).unwrap();
        terminal.until("top", |text| text.contains("pods/one:eth0")).unwrap();
        kill(process(&stage), signal).unwrap();
        assert_given_back(code);
    }
    // An agent that hangs keeps nobody from quitting.
    let agent = Pid::from_raw(stage.node.agent().id().unwrap().cast_signed());
    terminal.enter(&line(&stage, "")).unwrap();
    terminal.until("top", |text| text.contains("pods/one:eth0")).unwrap();
    kill(agent, Signal::SIGSTOP).unwrap();
    terminal.press(&["C-c"]).unwrap();
    let quit = terminal.until("the end", |text| text.contains("ended 0\n"));
    kill(agent, Signal::SIGCONT).unwrap();
    quit.unwrap();
}

fn once(stage: &Stage, arguments: &[&str]) -> Output {
    let mut command = Command::new(Binaries::find().unwrap().agent());
    command.args(["top", "--interval", "1s", "--socket"]).arg(stage.node.agent().socket());
    command.args(arguments).output().unwrap()
}

#[test]
fn scripts_get_one_interval_as_text_or_json_and_no_screen() {
    let mut stage = stage();
    while_sending(&stage, || {
        let right = 0.7 * f64::from(SENT)..1.3 * f64::from(SENT);
        let fast = measured(&right, || {
            let output = once(&stage, &["--json", "--sort", "sent"]);
            let told: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(told["ports"][0]["container"], "one", "{told:#}");
            let reasons = told["ports"][0]["drops"].as_array().unwrap();
            assert!(reasons.iter().any(|drop| drop["reason"] == "source_spoofed"), "{told:#}");
            told["ports"][0]["sent"]["fast"].as_f64().unwrap()
        });
        assert!(right.contains(&fast), "{fast} packets a second");
        let output = once(&stage, &["--once", "--throttled"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("pods/two:eth0") && !text.contains("pods/one:eth0"), "{text}");
        assert!(text.contains("throttled: ingress") && output.status.success(), "{text}");
    });
    let output = once(&stage, &[]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("top --once"), "{told}");
    assert_eq!(once(&stage, &["--interval", "1ms", "--once"]).status.code(), Some(2));
    stage.node.agent_mut().kill().unwrap();
    assert_eq!(once(&stage, &["--once"]).status.code(), Some(1));
}

/// Attachments of a large node: a bridge has 1,024 ports.
const MANY: usize = 1_000;

/// Seconds of processor time that a process has used.
fn used(process: Pid) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // Fields 14 and 15 of proc_pid_stat(5), behind the name in parentheses, which is the second, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    [11, 12].iter().map(|at| fields[*at].parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

#[test]
#[ignore = "a thousand containers take minutes: xtask test --long, with SHUNT_BIN_DIR for a shipped build"]
fn a_thousand_attachments_are_followed_for_a_small_part_of_a_processor() {
    const TIME: Duration = Duration::from_secs(20);
    /// The part of one processor that `top` and what it asks of the agent may take, in per cent.
    const MOST: f64 = 2.0;
    let mut stage = Stage::empty();
    stage.network = stage.node.network("many", "cni0", &["10.78.0.0/16"]);
    for at in 0..MANY {
        stage.add(&format!("c{at}"));
    }
    let directory = tempfile::tempdir().unwrap();
    let terminal = Terminal::open(directory.path(), WIDE).unwrap();
    let agent = Pid::from_raw(stage.node.agent().id().unwrap().cast_signed());
    let figure = |processes: &[Pid]| {
        let used = || processes.iter().map(|process| used(*process)).collect::<Vec<_>>();
        let before = used();
        thread::sleep(TIME);
        let parts =
            used().into_iter().zip(before).map(|(after, before)| (after - before) / TIME.as_secs_f64());
        parts.map(|part| part * 100.0).collect::<Vec<_>>()
    };
    let idle = figure(&[agent]);
    let line = line(&stage, "").replace("--interval 500ms", "");
    terminal.enter(&line).unwrap();
    terminal.until("all of them", |text| text.contains("1 000 attachments")).unwrap();
    let followed = figure(&[agent, process(&stage)]);
    println!("agent alone {idle:.2?}, agent and top {followed:.2?} % of one processor");
    assert!(followed[0] - idle[0] < MOST && followed[1] < MOST, "{idle:?} {followed:?}");
    // What somebody sends who asks for help.
    let mut report = Command::new(Binaries::find().unwrap().agent());
    let (archive, running) = (directory.path().join("report.tar.gz"), stage.node.agent());
    report.args(["bugreport", "--output"]).arg(&archive).arg("--socket").arg(running.socket());
    report.arg("--state-dir").arg(running.state()).arg("--bpffs").arg(running.bpffs());
    let begun = Instant::now();
    let said = stage.node.namespace().enter(|| report.output()).unwrap().unwrap();
    let took = begun.elapsed();
    let bytes = archive.metadata().map_or(0, |archive| archive.len());
    println!("bugreport took {took:.2?} for {bytes} bytes");
    assert!(bytes > 10_000, "{}", String::from_utf8_lossy(&said.stderr));
    assert!(took < Duration::from_secs(5), "{took:?}");
}
