//! The agent's CNI service beside a node's bookkeeping agent: what `viaAgent` hands calls over to.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use shunt_cni::{Server, Settings};
use shunt_lab::{Lab, Namespace};
use tokio::net::UnixListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// How long calls may take when it ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// The service; it ends with its value.
#[derive(Debug)]
pub(crate) struct Service {
    socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Serves in the node's namespace; other plugins are in `plugins`.
    pub(crate) fn start(lab: &Lab, node: &Namespace, agent: &Path, plugins: &Path) -> Self {
        let (root, socket) = (lab.root(), lab.root().join("cni.sock"));
        let settings = Settings {
            agent_socket: agent.to_owned(),
            cni_path: vec![plugins.to_owned()],
            cache_dir: root.join("cache"),
            networks_dir: root.join("networks"),
            netns_dirs: vec![root.to_owned()],
            program_limit: Duration::from_secs(60),
        };
        let (namespace, path) = (File::open(node.path()).unwrap(), socket.clone());
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = thread::spawn(move || {
            // A thread is born in its maker's namespace.
            setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
            let serving = serve(settings, &path, ready, stopped);
            Builder::new_current_thread().enable_all().build().unwrap().block_on(serving);
        });
        is_ready.recv().unwrap();
        Self { socket, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

async fn serve(settings: Settings, path: &Path, ready: mpsc::Sender<()>, mut stopped: oneshot::Receiver<()>) {
    let mut server = Server::new(settings, false).await.unwrap();
    let listener = UnixListener::bind(path).unwrap();
    ready.send(()).unwrap();
    loop {
        tokio::select! {
            accepted = listener.accept() => server.welcome(accepted.unwrap().0),
            _ = &mut stopped => break,
        }
    }
    drop(listener);
    server.leave(FAREWELL).await;
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.stop.take());
        drop(self.thread.take().map(JoinHandle::join));
    }
}
