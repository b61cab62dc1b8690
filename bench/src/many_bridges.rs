//! An agent with thousands of attachments on ten bridges: what another one costs, how long its reports, a scrape and the next start take,
//! how much memory it has, and what it does when nothing happens.
//!
//! The ports are veth pairs with both ends in the node, all of them down: nothing is forwarded, and no container is made.

mod ports;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use shunt_agent_api::{AttachmentKey, BridgePort, Client, Reply, Request};
use shunt_lab::{Agent, Interrupt, Lab, Node, Threads};

use self::ports::ports;
use crate::add_del::milliseconds;
use crate::crowd::{SETTLING, WAKE_UPS, between_ticks, number};
use crate::results::Fact;
use crate::screen::Screen;

/// A bridge has room for 1,023 ports.
const BRIDGES: usize = 10;

/// How long the agent is watched doing nothing.
const IDLE: Duration = Duration::from_secs(20);

/// How often another one is attached and detached.
const ROUNDS: usize = 1000;

/// Where the agent's metrics are, in the node.
const METRICS: &str = "127.0.0.1:9464";

/// How long a scrape may take altogether.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the metrics are asked for while another client is watched.
const SCRAPES: usize = 5;

/// What attaching and detaching beside the others may take of what it takes alone.
const MORE: f64 = 1.5;

/// Milliseconds of a report.
const REPORT: f64 = 500.0;

/// Milliseconds that another client may wait beside scrapes.
const WAIT: f64 = 200.0;

/// Milliseconds until the next agent answers.
const START: f64 = 3000.0;

/// KiB of the agent.
const RESIDENT_KIB: f64 = 80.0 * 1024.0;

/// What there is to see with so many attachments on each bridge.
pub(crate) fn measure(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    per_bridge: usize,
) -> Result<Vec<Fact>> {
    let mut node = Node::start_with(lab, "many-bridges", &["--metrics", METRICS])?;
    screen.progress(0.0, "ten bridges and their links", None);
    let ports = ports(&node, lab, BRIDGES, per_bridge + 1)?;
    let (more, many) = ports.split_at(BRIDGES);
    let [first, ..] = many else { return Ok(Vec::new()) };
    // Its bridge has the program of bridges already, as beside the others.
    ask(node.agent(), attach(first))?;
    let alone = attachment(node.agent(), &more[0])?;
    for (done, port) in many.iter().enumerate() {
        interrupt.check()?;
        screen.progress(done as f64 / many.len() as f64, &format!("{} attachments", many.len()), None);
        ask(node.agent(), attach(port))?;
    }
    let beside = attachment(node.agent(), &more[0])?;
    let mut facts = vec![
        (
            "attach",
            "another one, of what it takes alone",
            beside.as_secs_f64() / alone.as_secs_f64(),
            "×",
            Some(MORE),
        ),
        ("attach-time", "attaching and detaching another one", milliseconds(beside), "ms", None),
    ];
    facts.extend(reports(&node, many.len())?);
    // What the kernel told of is over by then, and leases, entries and programs have been looked at.
    screen.progress(0.0, "the agent does nothing", Some(SETTLING + IDLE));
    sleep(SETTLING);
    facts.extend(idle(&node)?);
    interrupt.check()?;
    let before = resident(&node)?;
    node.agent_mut().kill()?;
    let begun = Instant::now();
    node.restart_agent()?;
    let start = milliseconds(begun.elapsed());
    ensure!(node.agent().status()?.attachments == many.len(), "the next agent has not found all");
    facts.push(("restart", "kill -9 until the next agent answers", start, "ms", Some(START)));
    facts.push(("resident", "agent's memory", before.max(resident(&node)?), "KiB", Some(RESIDENT_KIB)));
    screen.progress(0.0, "all are detached", None);
    detach_all(node.agent(), many)?;
    let fact = |(name, title, value, unit, limit): Figure| Fact {
        name: format!("many-bridges-{name}"),
        title: format!("{title}, {} ports", many.len()),
        value,
        unit: unit.to_owned(),
        limit,
    };
    Ok(facts.into_iter().map(fact).collect())
}

/// A fact's name, what a person reads, the figure with its unit, and what it should be at most; none where nothing is asked.
type Figure = (&'static str, &'static str, f64, &'static str, Option<f64>);

/// What a look at all of them takes, and how long others wait for it.
fn reports(node: &Node, attachments: usize) -> Result<[Figure; 3]> {
    let begun = Instant::now();
    let listed = ask(node.agent(), Request::Ports)?;
    let took = milliseconds(begun.elapsed());
    ensure!(matches!(listed, Reply::Ports(ports) if ports.len() == attachments), "`ports` does not say all");
    let begun = Instant::now();
    let page = scrape(node)?;
    let scraped = milliseconds(begun.elapsed());
    let said = format!("\nshunt_attachments {attachments}\n");
    ensure!(page.contains(&said), "the metrics do not say all");
    let waited = milliseconds(answered_beside_scrapes(node)?);
    Ok([
        ("ports", "`ports`", took, "ms", Some(REPORT)),
        ("metrics", "a scrape of the metrics", scraped, "ms", Some(REPORT)),
        ("wait", "another client's longest wait beside scrapes", waited, "ms", Some(WAIT)),
    ])
}

/// What the agent does when there is nothing to do.
fn idle(node: &Node) -> Result<[Figure; 2]> {
    between_ticks()?;
    let agent = node.agent().id().context("the agent runs")?;
    let before = Threads::of(agent)?;
    sleep(IDLE);
    let done = Threads::of(agent)?.since(&before);
    let seconds = IDLE.as_secs_f64();
    Ok([
        ("wake-ups", "agent's wake-ups when idle", done.sleeps as f64 / seconds, "1/s", Some(WAKE_UPS)),
        (
            "idle",
            "agent's time when idle, of a processor",
            100.0 * done.ran.as_secs_f64() / seconds,
            "%",
            None,
        ),
    ])
}

fn resident(node: &Node) -> Result<f64> {
    let agent = node.agent().id().context("the agent runs")?;
    number(&format!("/proc/{agent}/status"), "VmRSS:")
}

fn ask(agent: &Agent, request: Request) -> Result<Reply> {
    Ok(Client::connect(agent.socket())?.ask(request)?)
}

/// Else the kernel would wait for a grace period for each interface of the namespace with a program (`tcx_uninstall`, kernel/bpf/tcx.c),
/// for minutes in which nobody can make an interface, the next part neither.
fn detach_all(agent: &Agent, ports: &[BridgePort]) -> Result<()> {
    ports.iter().try_for_each(|port| ask(agent, detach(port)).map(drop))
}

fn detach(port: &BridgePort) -> Request {
    Request::Detach { key: port.key.clone(), link: None }
}

fn attach(port: &BridgePort) -> Request {
    Request::Attach { port: port.clone(), set_up: false }
}

/// The median of attaching and detaching `port`.
fn attachment(agent: &Agent, port: &BridgePort) -> Result<Duration> {
    let once = |_| {
        let begun = Instant::now();
        ask(agent, attach(port))?;
        ask(agent, detach(port))?;
        Ok(begun.elapsed())
    };
    let mut times = (0..ROUNDS).map(once).collect::<Result<Vec<_>>>()?;
    times.sort();
    times.get(ROUNDS / 2).copied().context("there were rounds")
}

/// The longest time that a client waits beside scrapes, who asks for what takes no time.
fn answered_beside_scrapes(node: &Node) -> Result<Duration> {
    let nobody = AttachmentKey { network: "none".into(), container: "none".into(), ifname: "eth0".into() };
    std::thread::scope(|scope| {
        let scraper = scope.spawn(|| (0..SCRAPES).try_for_each(|_| scrape(node).map(drop)));
        let mut longest = Duration::ZERO;
        while !scraper.is_finished() {
            let begun = Instant::now();
            ask(node.agent(), Request::Detach { key: nobody.clone(), link: None })?;
            longest = longest.max(begun.elapsed());
            sleep(Duration::from_millis(2));
        }
        match scraper.join() {
            Ok(scraped) => scraped.map(|()| longest),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The page of the metrics.
fn scrape(node: &Node) -> Result<String> {
    let address: SocketAddr = METRICS.parse().context("the address of the metrics")?;
    let mut stream = node.namespace().enter(|| TcpStream::connect_timeout(&address, PATIENCE))??;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page).context("read the metrics")?;
    Ok(page)
}
