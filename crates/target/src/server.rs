//! The server for its owner: start, observation, stop.

use crate::catalog::{Catalog, DISCOVERY_SHARD};
use crate::chap::SecretError;
use crate::config::{Config, InvalidConfig};
use crate::counters::{Counters, Gauges};
use crate::observers::Observers;
use crate::opening::OpenError;
use crate::portal_group::Portal;
use crate::shard::{self, Message, ShardPlan};
use crate::shutdown::ShutdownReport;
use crate::state_directory::{StateDirectory, StateError};
use block::Slab;
use device::Memory;
use framing::SocketOptionsError;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// A running target server. Dropping it ends it at once, like a power failure; see [`Server::shutdown`].
#[derive(Debug)]
pub struct Server {
    local_addrs: Vec<SocketAddr>,
    shards: Vec<ShardHandle>,
    gauges: Arc<Gauges>,
}

#[derive(Debug)]
struct ShardHandle {
    door: mpsc::UnboundedSender<Message>,
    thread: JoinHandle<()>,
    own: Arc<device::Gauges>,
    transfers: Slab,
}

/// The reason why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum StartError {
    /// The configuration is contradictory or unsafe.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// A secret is unavailable.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A LUN cannot be opened.
    #[error(transparent)]
    Lun(#[from] OpenError),
    /// Reservations cannot be stored in the state directory.
    #[error(transparent)]
    State(#[from] StateError),
    /// The server cannot listen on an address.
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    /// The kernel refuses an option.
    #[error(transparent)]
    Socket(#[from] SocketOptionsError),
    /// The system refuses a thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A shard ended before it started; the log has the reason.
    #[error("an event loop ended at its start")]
    Shard,
}

impl Server {
    /// Opens every LUN, listens, and serves from then on, on threads of its own. It needs a tokio runtime only to wait.
    ///
    /// # Errors
    /// The defect and its remedy. Nothing is left running.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_observed(config, Observers::default()).await
    }

    /// Starts a server with observers.
    ///
    /// # Errors
    /// As those of [`start`](Self::start).
    pub async fn start_observed(config: Config, observers: Observers) -> Result<Self, StartError> {
        config.validate()?;
        let offer = config.offer()?;
        let state = config.state_directory().map(StateDirectory::open).transpose()?;
        let listeners = listen(&config)?;
        let portal = |(listener, tag): &(TcpListener, u16)| {
            Some(Portal { address: listener.local_addr().ok()?, tag: *tag })
        };
        let portals: Vec<_> = listeners.iter().filter_map(portal).collect();
        let local_addrs = portals.iter().map(|portal| portal.address).collect();
        let catalog = Arc::new(Catalog::new(&config, portals)?);
        let gauges = Arc::new(Gauges::default());
        let count = config.shards();
        let (doors, mut inboxes): (Vec<_>, Vec<_>) = (0..count).map(|_| mpsc::unbounded_channel()).unzip();
        let memory_bytes = usize::try_from(config.limits.buffer_bytes.0).unwrap_or(usize::MAX) / count;
        let memories: Arc<[Memory]> = (0..count).map(|_| Memory::new(memory_bytes)).collect();
        let config = Arc::new(config);
        let mut server = Self { local_addrs, shards: Vec::new(), gauges: Arc::clone(&gauges) };
        let mut listeners = Some(listeners);
        for (index, messages) in inboxes.drain(..).enumerate() {
            let (opened, result) = oneshot::channel();
            let plan = ShardPlan {
                index,
                config: Arc::clone(&config),
                offer,
                catalog: Arc::clone(&catalog),
                gauges: Arc::clone(&gauges),
                own: Arc::default(),
                memory: memories[index].clone(),
                memories: Arc::clone(&memories),
                listeners: Vec::new(),
                doors: doors.clone(),
                messages,
                state: state.clone(),
                observers: observers.clone(),
                opened,
            };
            server.start_shard(plan, &doors, &mut listeners)?;
            result.await.map_err(|_| StartError::Shard)??;
        }
        Ok(server)
    }

    fn start_shard(
        &mut self,
        mut plan: ShardPlan,
        doors: &[mpsc::UnboundedSender<Message>],
        listeners: &mut Option<Vec<(TcpListener, u16)>>,
    ) -> Result<(), StartError> {
        let index = plan.index;
        if index == DISCOVERY_SHARD {
            plan.listeners = listeners.take().unwrap_or_default();
        }
        let (own, transfers) = (Arc::clone(&plan.own), plan.memory.transfers.clone());
        let thread = std::thread::Builder::new().name(format!("shard-{index}"));
        let thread = thread.spawn(move || shard::run(plan)).map_err(StartError::Thread)?;
        self.shards.push(ShardHandle { door: doors[index].clone(), thread, own, transfers });
        Ok(())
    }

    /// The listening addresses, including ports that the system chose.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local_addrs
    }

    /// A sample of the server's state and totals.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters::read(&self.gauges, self.shards.iter().map(|shard| (&*shard.own, &shard.transfers)))
    }

    /// Stops in order: accepts no more connections, flushes every LUN, asks initiators to log out, cuts off sessions
    /// that remain after `grace`, waits for writes to come to rest, and flushes every LUN again.
    pub async fn shutdown(mut self, grace: Duration) -> ShutdownReport {
        let deadline = Instant::now() + grace;
        let mut report = ShutdownReport::default();
        let ask = |shard: &ShardHandle| {
            let (done, reported) = oneshot::channel();
            // A shard that has ended has nothing to report.
            let _ = shard.door.send(Message::Shutdown { deadline, done });
            reported
        };
        let waiting: Vec<_> = self.shards.iter().map(ask).collect();
        for reported in waiting {
            if let Ok(part) = reported.await {
                report.merge(part);
            }
        }
        for shard in std::mem::take(&mut self.shards) {
            if shard.thread.join().is_err() {
                tracing::error!("an event loop ended by a panic");
            }
        }
        report
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for shard in &self.shards {
            // A shard that has ended needs no message.
            let _ = shard.door.send(Message::Abandon);
        }
    }
}

/// All portals, each with its group's tag.
fn listen(config: &Config) -> Result<Vec<(TcpListener, u16)>, StartError> {
    let options = config.socket.options();
    let listen = |address: &SocketAddr| {
        let failed = |source| StartError::Listen { address: *address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        // Before the first connection, because the listener's options determine its announced window.
        transport::apply(&options, &listener)?;
        Ok::<_, StartError>(listener)
    };
    let groups = config.portal_groups();
    let portals = groups.iter().flat_map(|group| group.portals.iter().map(|address| (address, group.tag)));
    portals.map(|(address, tag)| Ok((listen(address)?, tag))).collect()
}
