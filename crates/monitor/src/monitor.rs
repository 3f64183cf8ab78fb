//! The monitor's public interface.

use crate::inet_diag::SocketId;
use crate::sampler::{Request, Sampler};
use observe::SocketsReport;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::sockopt::socket_cookie;
use rustix::net::{getpeername, getsockname};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Selects the sockets to sample, how often, and how many samples to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The time between two samples of a socket.
    pub interval: Duration,
    /// Whether to look for connections, besides those that are [watched](Monitor::watch) by name.
    pub discovery: Option<Discovery>,
    /// How many sockets to keep samples of.
    pub sockets_max: usize,
    /// How many samples to keep of all sockets together. One takes some 220 bytes.
    pub samples_max: usize,
}

/// Discovery of the namespace's connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// How often to look. A connection that lives for a shorter time may be missed. The kernel walks its whole table of
    /// connections, whose size follows the machine's: with room for 262144 connections, a look takes a millisecond of
    /// processor time.
    pub interval: Duration,
    /// Restricts discovery to connections with this port at one end.
    pub port: Option<u16>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(10),
            discovery: None,
            sockets_max: 1024,
            samples_max: 1_000_000,
        }
    }
}

impl Default for Discovery {
    fn default() -> Self {
        Self { interval: Duration::from_millis(100), port: None }
    }
}

/// A thread that samples. Dropping it ends the thread and discards its samples.
#[derive(Debug)]
pub struct Monitor {
    requests: Sender<Request>,
    /// Wakes the thread to look for requests.
    bell: Arc<OwnedFd>,
    /// The thread, until it is stopped.
    thread: Option<JoinHandle<SocketsReport>>,
}

/// Why a socket cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The socket has no TCP connection in the monitor's namespace, or the kernel does not report on it.
    #[error("the kernel does not report on this socket: {0}")]
    Unknown(#[from] io::Error),
    /// The limit on sockets is reached.
    #[error("the limit of {0} watched sockets is reached")]
    TooMany(usize),
}

impl Monitor {
    /// Starts to sample connections of the calling thread's network namespace.
    ///
    /// # Errors
    /// If the kernel has no `sock_diag(7)`, or a resource is exhausted.
    pub fn start(options: Options) -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (requests, to_answer) = channel();
        let sampler = Sampler::new(options, to_answer, bell.clone())?;
        let thread = thread::Builder::new().name("monitor".to_owned()).spawn(|| sampler.run())?;
        Ok(Self { requests, bell, thread: Some(thread) })
    }

    /// Takes a first sample of a connected socket, and further ones until it is closed. Returns its cookie. The monitor
    /// does not hold the socket: either end may close it at any time.
    ///
    /// # Errors
    /// [`WatchError`] if the socket cannot be watched.
    pub fn watch(&self, socket: &impl AsFd) -> Result<u64, WatchError> {
        let id = id_of(socket)?;
        let (to, answer) = sync_channel(1);
        self.ask(Request::Watch(id, to));
        let ended = || io::Error::other("the monitor's thread has ended");
        answer.recv().map_err(|_| ended())??;
        Ok(id.cookie)
    }

    /// Takes a last sample of each socket, and ends the thread.
    ///
    /// # Panics
    /// If the monitor's thread has panicked.
    #[must_use]
    pub fn stop(mut self) -> SocketsReport {
        self.end().expect("it is stopped once").unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn end(&mut self) -> Option<thread::Result<SocketsReport>> {
        let thread = self.thread.take()?;
        self.ask(Request::Stop);
        Some(thread.join())
    }

    /// A thread that has panicked does not answer.
    fn ask(&self, request: Request) {
        let _ = self.requests.send(request);
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // A panic of the thread cannot be reported here.
        let _ = self.end();
    }
}

fn id_of(socket: &impl AsFd) -> io::Result<SocketId> {
    let local = SocketAddr::try_from(getsockname(socket)?)?;
    let peer = getpeername(socket)?.ok_or(io::ErrorKind::NotConnected)?;
    let peer = SocketAddr::try_from(peer)?;
    Ok(SocketId { local, peer, cookie: socket_cookie(socket)? })
}
