//! One session: a client of its own, with a name and parameters of its own.

use crate::plan::Plan;
use crate::tally::Tally;
use crate::worker::Worker;
use anyhow::{Context, Result};
use initiator::{Config, Connections, Lun, PathState, Report, Target, Url};
use session::parameters::{DigestPreference, Offer};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A session that is logged in.
pub struct Client {
    number: usize,
    session: Target,
    lun: Lun,
    connections: usize,
}

/// Sessions that log in at the same time, so that none waits longer for its turn than for a network.
const LOGINS_AT_A_TIME: usize = 32;

/// Memory for each of a session's commands: one that is answered may still be held while the next begins.
const BUFFER_BYTES_PER_COMMAND: usize = 128 << 10;

/// What a session may send unasked with each command.
const FIRST_BURST_BYTES: u32 = 64 << 10;

/// A login may wait for the processor when thousands of others do.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);

impl Client {
    /// Logs all clients of the plan in.
    ///
    /// # Errors
    /// The first that cannot.
    pub async fn connect_all(plan: &Plan, portal: SocketAddr) -> Result<Vec<Self>> {
        let turns = Arc::new(Semaphore::new(LOGINS_AT_A_TIME));
        let mut logins = JoinSet::new();
        for number in 0..plan.sessions {
            let (turns, connections) = (Arc::clone(&turns), plan.connections);
            logins.spawn(async move {
                let _turn = turns.acquire().await?;
                Self::connect(number, connections, portal).await.with_context(|| format!("session {number}"))
            });
        }
        let mut clients = Vec::with_capacity(plan.sessions);
        while let Some(client) = logins.join_next().await {
            clients.push(client??);
        }
        clients.sort_by_key(|client| client.number);
        Ok(clients)
    }

    async fn connect(number: usize, connections: u16, portal: SocketAddr) -> Result<Self> {
        let url: Url = format!("iscsi://{portal}/{}/0", ropewalk_interop::IQN).parse()?;
        let config = Config {
            initiator_name: format!("iqn.2026-11.org.example:client-{number}"),
            connections: Connections::Fixed(connections),
            sessions: Some(1),
            offer: offer(number),
            buffer_budget_bytes: usize::from(connections) * BUFFER_BYTES_PER_COMMAND,
            login_timeout: LOGIN_TIMEOUT,
            ..Config::default()
        };
        let session = initiator::connect(&url, config).await?;
        let lun = session.lun(0).await?;
        Ok(Self { number, session, lun, connections: connections.into() })
    }

    /// Its workers: as many as it has connections.
    pub fn workers(&self, plan: &Plan, tally: &Rc<Tally>) -> Vec<Worker> {
        let all = plan.all_connections();
        let pause = Duration::from_secs_f64(all as f64 / plan.commands_per_second);
        let numbers = (0..self.connections).map(|at| self.number * self.connections + at);
        numbers.map(|at| Worker::new(self.lun.clone(), at, plan.seed, pause, Rc::clone(tally))).collect()
    }

    /// What can be observed of it.
    pub fn report(&self) -> Report {
        self.session.report()
    }

    /// Whether it has all the connections that it should have.
    pub fn is_whole(&self) -> bool {
        let report = self.report();
        report.paths.iter().all(|path| path.state == PathState::Up)
            && report.connections() == self.connections
    }
}

/// What clients propose differs, so that data travels in every way that there is.
fn offer(number: usize) -> Offer {
    let plain =
        Offer { error_recovery_level: 2, first_burst_bytes: FIRST_BURST_BYTES, ..Config::default().offer };
    match number % 4 {
        // Every byte of a write is asked for.
        1 => Offer { initial_r2t: true, immediate_data: false, ..plain },
        2 => Offer {
            header_digest: DigestPreference::Required,
            data_digest: DigestPreference::Required,
            ..plain
        },
        // Long commands take several bursts and many PDUs.
        3 => Offer {
            first_burst_bytes: 8 << 10,
            max_burst_bytes: 32 << 10,
            receive_segment_bytes_max: 8 << 10,
            ..plain
        },
        _ => plain,
    }
}
