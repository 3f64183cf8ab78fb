//! An asynchronous iSCSI initiator with many connections (RFC 7143), on tokio and TCP.
//!
//! [`connect`] reaches a [`Target`] over as many TCP connections as configured: in one iSCSI session as far as the target
//! allows (MC/S), then in further sessions. A [`Lun`] is one of its disks; it reads and writes owned buffers, and is a
//! [`block::Backend`] too. [`begin`] does not wait for the connections after the first. [`discover`] asks a portal for targets.
//!
//! ```no_run
//! # async fn example() -> Result<(), ropewalk_initiator::Error> {
//! use ropewalk_initiator::{Config, Url, connect};
//!
//! let url: Url = "iscsi://192.0.2.1/iqn.2026-11.com.example:disk/0".parse()?;
//! let target = connect(&url, Config::default()).await?;
//! let lun = target.lun(url.lun).await?;
//! let first = lun.read(0, 4096).await?;
//! lun.write(4096, first, false).await?;
//! lun.flush().await?;
//! target.close().await
//! # }
//! ```
//!
//! The crate `client` is the initiator itself, without sockets and runtime. This crate adds its runtime, its network,
//! and the user's credentials.

#![forbid(unsafe_code)]

mod credentials;
mod name;
mod network;
mod runtime;
mod tuned_congestion;

pub use client::{
    Algorithms, Compared, Config, ConnectionReport, Connections, Credentials, DEFAULT_PORT, Error, Executed,
    Generation, InvalidUrl, LaneRole, LoginError, Lun, NetworkError, OPERATIONS_MAX, PathReport, PathState,
    Portal, Reconnect, Report, ReservationHolder, Reserved, Reset, SplitLanes, Target, TargetError,
    TargetRecord, Transfer, Tuning, Unit, UnknownSplit, Url, UsageError,
};
pub use credentials::{CredentialsError, credentials_from_environment, credentials_from_file};

pub use policy::tuner::{Decision, Experience, Found, Law, Pool, Slice, Terms};
pub use policy::{PlacementPolicy, Tuner, TunerChoice};

use client::Environment;
use congestion::Offered;
use network::TcpNetwork;
use runtime::TokioHost;
use std::sync::Arc;
use transport::Observer;

/// Logs in to the URL's target with as many connections as configured. Fewer connections than configured are no error:
/// [`Target::report`] says how many there are, and why. The target lives on the tokio runtime of this call.
///
/// # Errors
/// If the first connection cannot be made. This function does not retry: a caller that waits for a target knows better
/// for how long.
///
/// # Panics
/// Outside of a tokio runtime.
pub async fn connect(url: &Url, config: Config) -> Result<Target, Error> {
    let (environment, config) = complete(of_url(url, config)?, None, Policies::default());
    Target::connect(environment, &url.target_name, &url.portal, config).await
}

/// As [`connect`], but returns with the first connection. The others log in meanwhile: [`Target::complete`] waits for
/// them. `policies` decide over the connections.
///
/// # Errors
/// As [`connect`].
///
/// # Panics
/// Outside of a tokio runtime.
pub async fn begin(url: &Url, config: Config, policies: Policies) -> Result<Target, Error> {
    let (environment, config) = complete(of_url(url, config)?, None, policies);
    Target::begin(environment, &url.target_name, &url.portal, config).await
}

/// What decides over the connections of a target.
#[derive(Clone)]
pub struct Policies {
    /// Chooses a connection for each command.
    pub placement: PlacementPolicy,
    /// Begins what chooses their number, where it is [tuned](Connections::Auto).
    pub tuner: Arc<dyn Fn(Terms) -> Box<dyn Tuner> + Send + Sync>,
}

impl Default for Policies {
    fn default() -> Self {
        let tuner = Arc::new(|terms| TunerChoice::default().begin(terms));
        Self { placement: PlacementPolicy::default(), tuner }
    }
}

impl Policies {
    /// Those of a target whose connections are of the same pool as those of others.
    #[must_use]
    pub fn of_pool(pool: Pool) -> Self {
        let begin =
            move |terms| -> Box<dyn Tuner> { Box::new(pool.join(TunerChoice::default().begin(terms))) };
        Self { tuner: Arc::new(begin), ..Self::default() }
    }
}

/// As [`connect`]; `observer` is told of every connection, and `policies` decide over them.
///
/// # Errors
/// As [`connect`].
///
/// # Panics
/// Outside of a tokio runtime.
pub async fn connect_observed(
    url: &Url,
    config: Config,
    observer: Arc<dyn Observer>,
    policies: Policies,
) -> Result<Target, Error> {
    let (environment, config) = complete(of_url(url, config)?, Some(observer), policies);
    Target::connect(environment, &url.target_name, &url.portal, config).await
}

/// Asks a portal for the targets that this initiator may use, and for their addresses.
///
/// # Errors
/// If the portal cannot be reached, refuses the login, or breaks the protocol.
///
/// # Panics
/// Outside of a tokio runtime.
pub async fn discover(portal: &Portal, config: &Config) -> Result<Vec<TargetRecord>, Error> {
    let (environment, config) = complete(config.clone(), None, Policies::default());
    client::discover(&environment, portal, &config).await
}

/// The configuration with what the URL says.
fn of_url(url: &Url, mut config: Config) -> Result<Config, InvalidUrl> {
    if let Some(congestion) = &url.congestion {
        congestion::check(congestion).map_err(|error| InvalidUrl::Congestion(error.to_string()))?;
        config.socket.congestion = Some(congestion.clone());
    }
    Ok(config)
}

/// The world of a client, and its configuration with what this machine adds.
fn complete(
    mut config: Config,
    observer: Option<Arc<dyn Observer>>,
    policies: Policies,
) -> (Environment, Config) {
    if config.initiator_name.is_empty() {
        config.initiator_name = name::of_this_machine();
    }
    tuned_congestion::choose(&mut config, &Offered::here());
    let environment = Environment {
        host: Arc::new(TokioHost::current()),
        network: Arc::new(TcpNetwork::new(observer)),
        placement: Arc::new(move || policies.placement.begin()),
        tuner: policies.tuner,
    };
    (environment, config)
}
