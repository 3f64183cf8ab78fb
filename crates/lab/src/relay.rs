//! The relay: a thread that carries real packets between two interfaces as a path model says, and a second thread that
//! stands by.

pub(crate) mod buffers;
mod clock;
mod direction;
mod event_loop;
mod forwarder;
mod links;
pub(crate) mod packet_socket;
mod report;
pub(crate) mod scheduling;
mod standby;
mod tap;
mod wakefulness;
mod watch;

use crate::interface::relay_interface;
use crate::namespace::Namespace;
use crate::topology::Host;
use direction::{Direction, Tools};
use event_loop::{EventLoop, Request};
use forwarder::Forwarder;
use links::Links;
use netem::{InvalidModel, PathModel};
use packet_socket::{Batch, PacketSocket};
use rustix::event::{EventfdFlags, eventfd};
use scheduling::Division;
use standby::Standby;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wakefulness::Wakefulness;
use watch::Watch;

pub use report::{Distribution, Reason, RelayReport, Verdict, WayReport};
pub(crate) use tap::Window;
pub use tap::{Point, Sighting, Tap, Way};

/// A running relay. Dropping it stops it, and loses the frames under way.
#[derive(Debug)]
pub struct Relay {
    requests: Sender<Request>,
    bell: Arc<OwnedFd>,
    /// Taken when it is stopped.
    thread: Option<JoinHandle<Result<RelayReport, RelayError>>>,
}

/// A relay that could not start.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The path model is invalid.
    #[error(transparent)]
    Model(#[from] InvalidModel),
    /// The system refused a resource.
    #[error("starting the relay: {0}")]
    System(#[from] io::Error),
}

impl Relay {
    /// Starts a relay in a namespace that has an interface to each host. The second path is that of the server's second
    /// address.
    pub(crate) fn start(
        namespace: &Namespace,
        (path, second): (&PathModel, Option<&PathModel>),
        seed: u64,
        tap: Option<Tap>,
    ) -> Result<Self, RelayError> {
        let (requests, to_answer) = channel();
        let bell =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let (begun, has_begun) = sync_channel(1);
        let round_trip = [Some(path), second].into_iter().flatten().map(PathModel::round_trip).min();
        let round_trip = round_trip.unwrap_or_default();
        let (namespace, path, second) = (namespace.clone(), path.clone(), second.cloned());
        let beginning = Beginning { namespace, path, second, round_trip, seed, tap };
        let thread_bell = bell.clone();
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || {
            let event_loop = EventLoop::new(beginning.forwarder()?, to_answer, thread_bell.clone())?;
            let _standby = Standby::start(event_loop.forwarder(), thread_bell.clone(), round_trip)?;
            // If refused, threads wake late now and then, which the relay measures.
            let _wakefulness = Wakefulness::begin(&event_loop.forwarder(), &thread_bell);
            if let Some(division) = Division::of_this_thread() {
                // If refused, it shares a processor with the hosts' packets now and then, and is late.
                let _ = scheduling::stay_at(division.relay);
            }
            // The caller waits for this.
            let _ = begun.send(());
            Ok(event_loop.run())
        })?;
        match has_begun.recv() {
            Ok(()) => Ok(Self { requests, bell, thread: Some(thread) }),
            Err(_) => Err(join(thread).err().unwrap_or_else(|| io::Error::from(io::ErrorKind::Other).into())),
        }
    }

    /// Its report so far.
    ///
    /// # Panics
    /// If its thread has.
    #[must_use]
    pub fn report(&self) -> RelayReport {
        let (to, report) = sync_channel(1);
        self.ask(Request::Report(to));
        report.recv().expect("the relay's thread ends only when it is stopped")
    }

    /// Stops it, and loses the frames under way.
    ///
    /// # Panics
    /// If its thread has.
    #[must_use]
    pub fn stop(mut self) -> RelayReport {
        let thread = self.thread.take().expect("it is stopped once");
        self.ask(Request::Stop);
        join(thread).expect("a relay that has begun does not fail")
    }

    /// A thread that has panicked does not answer.
    fn ask(&self, request: Request) {
        let _ = self.requests.send(request);
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.ask(Request::Stop);
            // Nobody could receive a panic here.
            let _ = thread.join();
        }
    }
}

/// Gives the second path other accidents than the first.
const SECOND_SEED: u64 = 1 << 32;

/// The parameters of the relay's thread.
struct Beginning {
    namespace: Namespace,
    path: PathModel,
    second: Option<PathModel>,
    /// The shorter one.
    round_trip: Duration,
    seed: u64,
    tap: Option<Tap>,
}

impl Beginning {
    /// Called on the relay's thread.
    fn forwarder(self) -> Result<Forwarder, RelayError> {
        self.namespace.enter()?;
        let (forward, backward) = self.path.links(self.seed)?;
        let second =
            self.second.map(|second| second.links(self.seed.wrapping_add(SECOND_SEED))).transpose()?;
        let (second_forward, second_backward) = second.unzip();
        Ok(Forwarder {
            has_priority: scheduling::be_punctual(),
            tools: Tools::new(self.tap),
            batch: Batch::new(),
            client: PacketSocket::open(relay_interface(Host::Client))?,
            server: PacketSocket::open(relay_interface(Host::Server))?,
            forward: Direction::new(Way::Forward, Links::new(Way::Forward, forward, second_forward)),
            backward: Direction::new(Way::Backward, Links::new(Way::Backward, backward, second_backward)),
            watch: Watch::new(),
            due: None,
            wakes_at: None,
            is_watched: false,
            last_look: Arc::default(),
            round_trip: self.round_trip,
            keeps_processors_awake: false,
        })
    }
}

fn join(thread: JoinHandle<Result<RelayReport, RelayError>>) -> Result<RelayReport, RelayError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
