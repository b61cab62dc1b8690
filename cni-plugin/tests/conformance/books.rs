//! An agent that keeps books: it answers as the real one does, and attaches nothing.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use serde_json::Value;
use shunt_agent_api::{
    AgentError, AgentStatus, Attached, AttachmentKey, BridgePort, CapacityReport, Collected, Detached,
    Envelope, ErrorKind, Reply, Request, frame,
};
use shunt_lab::{Namespace, uninterrupted};

/// What the agent has heard, and how it is to behave.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// The ports that are attached.
    pub(crate) ports: BTreeMap<AttachmentKey, BridgePort>,
    /// Every request's verb, in order.
    pub(crate) verbs: Vec<String>,
    /// Refuses every Attach with this kind, after having half done it.
    pub(crate) refuse_attach: Option<ErrorKind>,
    /// Refuses every Detach with this kind, and does nothing.
    pub(crate) refuse_detach: Option<ErrorKind>,
    /// Speaks this version of the protocol, and no other.
    pub(crate) speaks: Option<u32>,
    /// Does not know the verb `address`, as the agent before it.
    pub(crate) is_older: bool,
    /// What is answered to Capacity.
    pub(crate) capacity: CapacityReport,
    /// Reasons not to be healthy.
    pub(crate) reasons: Vec<String>,
}

/// The agent; it ends with its value.
#[derive(Debug)]
pub(crate) struct Bookkeeper {
    socket: PathBuf,
    books: Arc<Mutex<Books>>,
}

impl Bookkeeper {
    /// Listens at `socket`, and deletes links in `node` when it is asked to.
    pub(crate) fn start(socket: PathBuf, node: &Namespace) -> Self {
        let listener = UnixListener::bind(&socket).unwrap();
        let books = Arc::new(Mutex::new(Books::default()));
        let node = std::fs::File::open(node.path()).unwrap();
        thread::spawn({
            let books = Arc::clone(&books);
            move || {
                nix::sched::setns(&node, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
                for stream in listener.incoming() {
                    let books = Arc::clone(&books);
                    // A thread is born in its maker's namespace.
                    thread::spawn(move || drop(serve(stream.unwrap(), &books)));
                }
            }
        });
        Self { socket, books }
    }

    /// The socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Reads or changes the books.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Books) -> T) -> T {
        look(&mut self.books.lock().unwrap())
    }
}

impl Drop for Bookkeeper {
    fn drop(&mut self) {
        // The thread stays in accept; nobody can reach it any more.
        drop(std::fs::remove_file(&self.socket));
    }
}

fn serve(mut stream: UnixStream, books: &Mutex<Books>) -> std::io::Result<()> {
    let mut buffer = BytesMut::new();
    loop {
        let body = loop {
            if let Some(body) = frame::split(&mut buffer, frame::MAX_REQUEST).unwrap() {
                break body;
            }
            let mut piece = [0; 4096];
            match uninterrupted(|| stream.read(&mut piece))? {
                0 => return Ok(()),
                read => buffer.extend_from_slice(&piece[..read]),
            }
        };
        let envelope: Envelope<Value> = frame::decode(&body).unwrap();
        let verb = envelope.body["verb"].as_str().unwrap().to_owned();
        if let Some(version) = books.lock().unwrap().speaks {
            let body = refusal(ErrorKind::Version, "of another version");
            stream.write_all(&frame::encode(&Envelope { version, ..Envelope::new(body) }).unwrap())?;
            continue;
        }
        let request = serde_json::from_value(envelope.body).unwrap();
        let host = match &request {
            Request::Attach { port, set_up: true } => Some(port.host.name.clone()),
            _ => None,
        };
        let reply = {
            let mut books = books.lock().unwrap();
            books.verbs.push(verb);
            answer(&mut books, request)
        };
        if let (Some(host), Reply::Attached(_)) = (host, &reply) {
            set_up(&host);
        }
        stream.write_all(&frame::encode(&Envelope::new(reply)).unwrap())?;
    }
}

/// Sets a host's end up and waits until it is operational, as the real agent does before it answers.
fn set_up(host: &str) {
    shunt_lab::run("ip", &["link", "set", host, "up"]).unwrap();
    while !shunt_lab::run("ip", &["link", "show", "dev", host]).unwrap().contains("state UP") {
        thread::sleep(Duration::from_millis(1));
    }
}

fn refusal(kind: ErrorKind, message: &str) -> Reply {
    Reply::Error(AgentError { kind, message: message.to_owned() })
}

fn answer(books: &mut Books, request: Request) -> Reply {
    match request {
        Request::Attach { port, .. } => {
            if books.refuse_attach != Some(ErrorKind::Exists) {
                books.ports.insert(port.key.clone(), port);
            }
            match books.refuse_attach {
                Some(kind) => refusal(kind, "told to refuse"),
                None => Reply::Attached(Attached { programs: Vec::new(), packets: None }),
            }
        }
        Request::Detach { .. } if books.refuse_detach.is_some() => {
            refusal(books.refuse_detach.unwrap(), "told to refuse")
        }
        Request::Detach { key, link } => {
            if let Some(link) = link {
                thread::spawn(move || drop(shunt_lab::run("ip", &["link", "delete", &link.name])));
            }
            Reply::Detached(Detached { port: books.ports.remove(&key).map(Box::new) })
        }
        Request::Check { port }
            if books.ports.get(&port.key).is_some_and(|known| is_the_same(known, &port)) =>
        {
            Reply::Checked
        }
        Request::Check { port } => {
            refusal(ErrorKind::Altered, &format!("{} is not as it was attached", port.key))
        }
        Request::Collect { network, valid } => {
            let stale = |key: &AttachmentKey| key.network == network && !valid.contains(key);
            let keys: Vec<_> = books.ports.keys().filter(|key| stale(key)).cloned().collect();
            let removed = keys.iter().filter_map(|key| books.ports.remove(key)).collect();
            Reply::Collected(Collected { removed })
        }
        Request::CheckLimit { key, bandwidth } => match books.ports.get(&key) {
            Some(port) if port.bandwidth == bandwidth => Reply::Checked,
            Some(_) => refusal(ErrorKind::Altered, "other limits"),
            None => refusal(ErrorKind::NotAttached, "not in these books"),
        },
        Request::Limit { key, bandwidth } => match books.ports.get_mut(&key) {
            Some(port) => {
                port.bandwidth = bandwidth;
                Reply::Limited
            }
            None => refusal(ErrorKind::NotAttached, "not in these books"),
        },
        Request::Update { port, .. } | Request::Restore { port } => {
            books.ports.insert(port.key.clone(), port);
            Reply::Attached(Attached { programs: Vec::new(), packets: None })
        }
        Request::Address { .. } if books.is_older => refusal(
            ErrorKind::Malformed,
            "not a message of this protocol: unknown variant `address`, expected",
        ),
        Request::Address { port } => match books.ports.get_mut(&port.key) {
            Some(known) => {
                *known = port;
                Reply::Attached(Attached { programs: Vec::new(), packets: None })
            }
            None => refusal(ErrorKind::NotAttached, "not in these books"),
        },
        Request::Map { key, mappings } => match books.ports.get_mut(&key) {
            Some(port) => {
                port.mappings = mappings;
                Reply::Attached(Attached { programs: Vec::new(), packets: None })
            }
            None => refusal(ErrorKind::NotAttached, "not in these books"),
        },
        Request::CheckMap { key, mappings } => match books.ports.get(&key) {
            Some(port) if port.mappings == mappings => Reply::Checked,
            Some(_) => refusal(ErrorKind::Altered, "other host ports"),
            None => refusal(ErrorKind::NotAttached, "not in these books"),
        },
        Request::Status => Reply::Status(AgentStatus {
            version: "0.0.0".to_owned(),
            abi: 1,
            healthy: books.reasons.is_empty(),
            obstacles: books.reasons.clone(),
            sold_out: Vec::new(),
            repairs: 0,
            unrepaired: 0,
            flows_in_use: 0,
            flow_evictions: 0,
            grace_periods: None,
            filters: None,
            reasons: books.reasons.clone(),
            warnings: Vec::new(),
            attachments: books.ports.len(),
            programs: Vec::new(),
            uplinks: Vec::new(),
            bridge_uplinks: Vec::new(),
            relocations: Vec::new(),
            vlan_gateways: Vec::new(),
        }),
        Request::Capacity => Reply::Capacity(books.capacity.clone()),
        _ => refusal(ErrorKind::Malformed, "not in these books"),
    }
}

/// What the bridge was told, where addresses are leased and whose the container is, is no part of what CHECK compares: it is not in the result.
fn is_the_same(known: &BridgePort, port: &BridgePort) -> bool {
    let (service, lease_dir, pod) = (port.service.clone(), port.lease_dir.clone(), port.pod.clone());
    BridgePort { service, lease_dir, pod, ..known.clone() } == *port
}
