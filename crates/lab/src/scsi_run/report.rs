//! What came of a run.

use super::ScsiRun;
use super::client::Measured;
use crate::session_monitor::SessionSamples;
use crate::workload::{Direction, RequestSample, Throughput};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

/// What came of a run. All times are those of [`monotonic_ns`](crate::monotonic_ns).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScsiReport {
    /// What was run; what it says of the session was negotiated.
    pub run: ScsiRun,
    /// When the first request began.
    pub begun_ns: u64,
    /// When the last had ended.
    pub ended_ns: u64,
    /// Requests that succeeded, in the order of their ends.
    pub requests: Vec<RequestSample>,
    /// Those that ended when there was no room left. Totals contain them.
    pub requests_lost: u64,
    /// What ended when.
    pub throughput: Throughput,
    /// Of all connections at both ends, those that their sockets had.
    pub congestion_controls: Vec<String>,
    /// Commands that were sent again, for whatever reason.
    pub retries: u64,
    /// Sessions and connections that were lost and came back.
    pub recoveries: u64,
    /// What the protocol did.
    pub session: SessionSamples,
    /// What was compared.
    pub verified: Verified,
}

/// Data that was compared with what must be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// As the workload read it.
    pub read_bytes: u64,
    /// What it had written, read on the server when it was over; once, however often it was written.
    pub read_back_bytes: u64,
}

impl Verified {
    /// Both.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.read_bytes + self.read_back_bytes
    }
}

impl ScsiReport {
    pub(super) fn new(run: &ScsiRun, measured: Measured, session: SessionSamples) -> Self {
        let Measured { begun_ns, ended_ns, samples: mut requests, samples_lost, throughput, report } =
            measured;
        find_connections(&mut requests, &session);
        let connections = session.connections.iter();
        let congestion_controls =
            connections.filter_map(|connection| connection.congestion_control.clone()).collect();
        let verified = Verified { read_bytes: throughput.total().read_bytes, read_back_bytes: 0 };
        Self {
            run: run.clone(),
            begun_ns,
            ended_ns,
            requests,
            requests_lost: samples_lost,
            throughput,
            congestion_controls,
            retries: report.retries,
            recoveries: report.reinstatements + report.recovered_connections,
            session,
            verified,
        }
    }
}

/// Tells of each request on which connection its first command went: the first of its place that left after it began.
fn find_connections(requests: &mut [RequestSample], session: &SessionSamples) {
    let mut commands: HashMap<(u64, bool), VecDeque<(u64, u16)>> = HashMap::new();
    let mut in_order: Vec<_> = session.commands.iter().collect();
    in_order.sort_unstable_by_key(|command| command.pulled_ns);
    for command in in_order {
        let (Some(lba), Some(direction)) = (command.lba, command.direction) else { continue };
        let place = commands.entry((lba, direction == Direction::Read)).or_default();
        place.push_back((command.pulled_ns, command.connection));
    }
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_unstable_by_key(|index| requests[*index].begun_ns);
    for index in order {
        let request = &mut requests[index];
        let Some(place) = commands.get_mut(&(request.lba, request.direction == Direction::Read)) else {
            continue;
        };
        while place.front().is_some_and(|(pulled_ns, _)| *pulled_ns < request.begun_ns) {
            place.pop_front();
        }
        request.connection = place.pop_front().map(|(_, connection)| connection);
    }
}
