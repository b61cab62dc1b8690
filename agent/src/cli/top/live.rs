//! The screen that follows the node, until a key or a signal ends it.
//!
//! One thread reads keys, one asks the agent, one waits for signals; this one draws. So a hanging agent keeps nobody from quitting.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, raise};
use ratatui::crossterm::event::{self, Event};

use super::input::{Next, press};
use super::sample::{Sample, SampleError};
use super::screen::Screen;
use super::terminal::{Taken, give_back};
use super::view::draw;

/// The signals that end it.
const ENDING: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// How long the drawing may take to see a signal: a stopped terminal takes no output.
const PATIENCE: Duration = Duration::from_secs(1);

/// Messages that wait to be looked at; whoever has more waits.
const WAITING: usize = 64;

/// What the other threads tell.
enum Message {
    Input(io::Result<Event>),
    Sample(Box<Result<Sample, SampleError>>),
    Signal(Signal),
}

/// Shows the node, asked every `interval`.
///
/// # Errors
/// The terminal's.
pub(super) fn follow(screen: Screen, socket: &Path, interval: Duration) -> io::Result<()> {
    let signals = SigSet::from_iter(ENDING);
    // Threads that are made from now on leave these to the one that waits for them.
    signals.thread_block()?;
    let (tell, told) = sync_channel(WAITING);
    let (ask, asked) = sync_channel(1);
    let mut terminal = Taken::take()?;
    start("signals", {
        let tell = tell.clone();
        move || wait_for(signals, &tell)
    })?;
    start("keys", {
        let tell = tell.clone();
        move || read_keys(&tell)
    })?;
    start("agent", {
        let socket = socket.to_path_buf();
        move || answer(&socket, &asked, &tell)
    })?;
    let ended = Live { screen, told, ask, interval, due: Instant::now(), is_asked: false }.run(&mut terminal);
    drop(terminal);
    match ended? {
        Some(signal) => end_by(signal, signals),
        None => Ok(()),
    }
}

/// The drawing thread's.
struct Live {
    screen: Screen,
    told: Receiver<Message>,
    ask: SyncSender<()>,
    interval: Duration,
    /// When the agent is asked next.
    due: Instant,
    /// Whether an answer is to come.
    is_asked: bool,
}

impl Live {
    /// Follows until it is to end; answers by which signal.
    fn run(&mut self, terminal: &mut Taken) -> io::Result<Option<Signal>> {
        loop {
            self.ask();
            terminal.0.draw(|frame| draw(frame, &mut self.screen, Instant::now()))?;
            let mut message = self.told.recv_timeout(self.due.saturating_duration_since(Instant::now()));
            // What has come meanwhile is drawn together.
            loop {
                match message {
                    Ok(Message::Signal(signal)) => return Ok(Some(signal)),
                    Ok(Message::Sample(sample)) => self.take(*sample),
                    Ok(Message::Input(input)) => {
                        if self.hear(&input?) == Next::Quit {
                            return Ok(None);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
                }
                message = self.told.recv_timeout(Duration::ZERO);
            }
        }
    }

    /// Asks the agent if it is time to, and sets the next time.
    fn ask(&mut self) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        self.due = now + self.interval;
        if !self.screen.is_paused && !self.is_asked {
            self.is_asked = self.ask.try_send(()).is_ok();
        }
    }

    fn take(&mut self, sample: Result<Sample, SampleError>) {
        self.is_asked = false;
        // Figures that stand still are not to move by an answer that was on its way.
        if !self.screen.is_paused {
            self.screen.take(sample.map_err(|error| error.to_string()));
        }
    }

    fn hear(&mut self, event: &Event) -> Next {
        let was_paused = self.screen.is_paused;
        let next = event.as_key_press_event().map_or(Next::GoOn, |key| press(&mut self.screen, key));
        if was_paused && !self.screen.is_paused {
            self.due = Instant::now();
        }
        next
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Asks the agent whenever it is told to.
fn answer(socket: &Path, asked: &Receiver<()>, tell: &SyncSender<Message>) {
    for () in asked {
        if tell.send(Message::Sample(Box::new(Sample::take(socket)))).is_err() {
            return;
        }
    }
}

/// Reads keys and new sizes until the terminal is gone.
fn read_keys(tell: &SyncSender<Message>) {
    loop {
        let input = event::read();
        let is_over = input.is_err();
        if tell.send(Message::Input(input)).is_err() || is_over {
            return;
        }
    }
}

/// Tells a signal; if nobody has ended the program in time, ends it.
fn wait_for(signals: SigSet, tell: &SyncSender<Message>) {
    let Ok(signal) = signals.wait() else { return };
    // A full channel has a drawing thread behind it that does not draw.
    let _full = tell.try_send(Message::Signal(signal));
    thread::sleep(PATIENCE);
    give_back();
    let _ended = end_by(signal, signals);
}

/// Ends the program as the signal would have, which its parent sees.
fn end_by(signal: Signal, signals: SigSet) -> io::Result<()> {
    signals.thread_unblock()?;
    Ok(raise(signal)?)
}
