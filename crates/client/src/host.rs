//! The world of a client: the runtime that polls its tasks, and the network that it dials.

use crate::{NetworkError, Portal};
use framing::{ConnectionObserver, SocketOptions, Wire};
use futures_util::future::{self, BoxFuture, Either};
use pdu::{Duration, Instant};
use policy::tuner::Terms;
use policy::{Placement, ThreadTime, Tuner};
use session::parameters::Established;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

/// A runtime. Any thread may use a client's handles, and therefore this.
pub trait Host: Send + Sync {
    /// The current time. It never goes back.
    fn now(&self) -> Instant;

    /// Polls `task` whenever it is woken, until it is done. Never polls within this call.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Resolves when [`now`](Self::now) has reached `time`.
    fn sleep_until(&self, time: Instant) -> BoxFuture<'static, ()>;

    /// Fills `to` with unpredictable random bytes.
    ///
    /// # Errors
    /// If the system has none.
    fn entropy(&self, to: &mut [u8]) -> io::Result<()>;

    /// How long the calling thread has used or wanted a processor, if the system tells it. It shows when a processor is
    /// the limit.
    fn thread_time(&self) -> Option<ThreadTime> {
        None
    }
}

/// Unpredictable random bytes.
pub(crate) fn random<const BYTES: usize>(host: &dyn Host) -> Result<[u8; BYTES], NetworkError> {
    let mut bytes = [0; BYTES];
    host.entropy(&mut bytes).map_err(|source| NetworkError::Entropy { source })?;
    Ok(bytes)
}

/// Connects to portals: over TCP, or in the simulator's network.
pub trait Dial: Send + Sync {
    /// Opens a byte stream to a portal and sets these options before the first byte.
    ///
    /// # Errors
    /// [`NetworkError::Connect`] if no address of the portal answers, [`NetworkError::SocketOptions`] if an option is
    /// refused.
    fn dial<'a>(
        &'a self,
        to: &'a Portal,
        options: &'a SocketOptions,
    ) -> BoxFuture<'a, Result<Dialed, NetworkError>>;
}

/// A byte stream to a portal, before the login.
pub struct Dialed {
    /// The byte stream.
    pub wire: Box<dyn Wire + Send>,
    /// The address at its other end.
    pub peer: SocketAddr,
    /// Makes the connection's observer after the login, if there is to be one.
    pub observe: Option<Observe>,
}

/// Makes the observer of a connection from the results of its login.
pub type Observe = Box<dyn FnOnce(&Established) -> Box<dyn ConnectionObserver> + Send>;

/// The runtime, the network and the policies of a client.
#[derive(Clone)]
pub struct Environment {
    /// The clock, the source of random numbers, and the executor of tasks.
    pub host: Arc<dyn Host>,
    /// Connects to the target's portals.
    pub network: Arc<dyn Dial>,
    /// Makes the policy that chooses a connection for each command of one target.
    pub placement: Arc<dyn Fn() -> Box<dyn Placement> + Send + Sync>,
    /// Makes the tuner of one target, if its connections are [tuned](crate::Connections::Auto).
    pub tuner: Arc<dyn Fn(Terms) -> Box<dyn Tuner> + Send + Sync>,
}

impl Environment {
    pub(crate) fn now(&self) -> Instant {
        self.host.now()
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.host.spawn(Box::pin(task));
    }

    pub(crate) async fn sleep(&self, pause: Duration) {
        self.host.sleep_until(self.now() + pause).await;
    }

    /// The output of `future`, or `None` if it takes longer than `pause`.
    pub(crate) async fn within<F: Future>(&self, pause: Duration, future: F) -> Option<F::Output> {
        self.until(self.now() + pause, future).await
    }

    /// The output of `future`, or `None` if it is not ready at `time`.
    pub(crate) async fn until<F: Future>(&self, time: Instant, future: F) -> Option<F::Output> {
        match future::select(pin!(future), self.host.sleep_until(time)).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(((), _)) => None,
        }
    }
}
