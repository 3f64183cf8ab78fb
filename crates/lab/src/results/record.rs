//! What is kept of one attempt at a run.

use super::machine::load_average;
use super::manifest::unix_seconds;
use super::program::Program;
use crate::capture::CaptureRecord;
use crate::experiment::{Plan, Quantity};
use crate::kernel_trace::KernelTrace;
use crate::relay::RelayReport;
use crate::rights::Rights;
use crate::run::RunOutcome;
use crate::session_record::SessionRecord;
use observe::SocketsReport;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use toml::Table;

/// An attempt at a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// From 1, in the order of the manifest.
    pub run: usize,
    /// From 1.
    pub attempt: u32,
    /// The value of everything that is varied.
    pub values: BTreeMap<String, String>,
    /// From 1.
    pub repetition: u32,
    /// Of all that looks random.
    pub seed: u64,
    /// When it had ended, in seconds since 1970.
    pub ended_unix_seconds: u64,
    /// What measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// How many processes wanted a processor in its last minute, this run's among them.
    pub load_average: Option<f64>,
    /// By which rights the lab was built.
    pub rights: Rights,
    /// Whether it is to be believed.
    pub valid: bool,
    /// Why not.
    pub reasons: Vec<String>,
    /// What was measured, each in the base of its unit.
    pub measured: BTreeMap<Quantity, f64>,
    /// Of each connection, as its socket says.
    pub congestion_controls: Vec<String>,
    /// Of the client's host.
    pub client_settings: BTreeMap<String, String>,
    /// Of the server's.
    pub server_settings: BTreeMap<String, String>,
    /// What was run, as it was written.
    pub setup: Table,
    /// The same with the value of everything that was not written; null is left to the kernel, or not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_setup: Option<Value>,
    /// What the sessions did, of a workload that has any; commands and single intervals are samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRecord>,
    /// The client's connections, and what it cost to look at them; the samples are in a file of their own.
    pub sockets: SocketsReport,
    /// What came of tracing the kernel's events, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_trace: Option<KernelTrace>,
    /// What the relay says of itself.
    pub relay: RelayReport,
    /// What was captured, if anything was to be; the capture is in a file of its own, and its commands are samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureRecord>,
}

impl RunRecord {
    /// The attempt `attempt` at the run of this index, which has just ended.
    pub(crate) fn new(plan: &Plan, index: usize, attempt: u32, outcome: &RunOutcome) -> Self {
        let run = plan.runs[index];
        let [client_settings, server_settings] = outcome.settings.clone();
        Self {
            run: index + 1,
            attempt,
            values: plan.values(run.cell),
            repetition: run.repetition,
            seed: run.seed,
            ended_unix_seconds: unix_seconds(),
            program: Some(Program::this()),
            load_average: load_average(),
            rights: outcome.rights,
            valid: outcome.reasons.is_empty(),
            reasons: outcome.reasons.clone(),
            measured: outcome.measured.clone(),
            congestion_controls: outcome.congestion_controls.clone(),
            client_settings,
            server_settings,
            setup: plan.cells[run.cell].table.clone(),
            resolved_setup: Some(plan.cells[run.cell].setup.resolved()),
            session: outcome.session.clone(),
            sockets: outcome.sockets.clone(),
            kernel_trace: outcome.kernel_trace.clone(),
            relay: outcome.relay.clone(),
            capture: outcome.capture.as_ref().map(|captured| captured.record.clone()),
        }
    }
}
