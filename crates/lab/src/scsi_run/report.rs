//! The result of a run.

use super::ScsiRun;
use super::client::Measured;
use super::tuner_trace::SliceSample;
use crate::decision_record::DecisionRecord;
use crate::diagnosis_record::DiagnosisRecord;
use crate::session_monitor::SessionSamples;
use crate::workload::{Direction, RequestSample};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

/// The result of a run. All times are those of [`monotonic_ns`](crate::monotonic_ns).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScsiReport {
    /// The run; its terms were negotiated.
    pub run: ScsiRun,
    /// The start of the first request.
    pub begun_ns: u64,
    /// The end of the last.
    pub ended_ns: u64,
    /// Requests that succeeded, in the order of their ends.
    pub requests: Vec<RequestSample>,
    /// Requests that ended when there was no room left.
    pub requests_lost: u64,
    /// The congestion controls of all sockets at both ends.
    pub congestion_controls: Vec<String>,
    /// Commands sent again, for any reason.
    pub retries: u64,
    /// Sessions and connections that were lost and came back.
    pub recoveries: u64,
    /// The protocol's events.
    pub session: SessionSamples,
    /// What kept the initiator's sessions from moving more; `None` if too little of them was seen.
    pub diagnosis: Option<DiagnosisRecord>,
    /// What the tuner decided; nothing without one.
    pub decisions: Vec<DecisionRecord>,
    /// What it was shown.
    pub slices: Vec<SliceSample>,
    /// The compared data.
    pub verified: Verified,
}

/// Data that was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Read by the workload.
    pub read_bytes: u64,
    /// Written by the workload, and read on the server after the end; counted once, however often it was written.
    pub read_back_bytes: u64,
}

impl Verified {
    /// All checked bytes, `read_bytes` and `read_back_bytes` together.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.read_bytes + self.read_back_bytes
    }
}

impl ScsiReport {
    pub(super) fn new(run: &ScsiRun, measured: Measured, session: SessionSamples) -> Self {
        let Measured { begun_ns, ended_ns, samples: mut requests, samples_lost, read_bytes, report, slices } =
            measured;
        find_connections(&mut requests, &session);
        let connections = session.connections.iter();
        let congestion_controls =
            connections.filter_map(|connection| connection.congestion_control.clone()).collect();
        let verified = Verified { read_bytes, read_back_bytes: 0 };
        Self {
            run: run.clone(),
            begun_ns,
            ended_ns,
            requests,
            requests_lost: samples_lost,
            congestion_controls,
            retries: report.retries,
            recoveries: report.reinstatements + report.recovered_connections,
            session,
            diagnosis: report.diagnosis.map(DiagnosisRecord::from),
            decisions: DecisionRecord::all_of(&report).collect(),
            slices,
            verified,
        }
    }
}

/// Assigns each request the connection of its first command: the first one at its place that left after it began.
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
