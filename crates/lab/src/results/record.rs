//! The record of one attempt at a run.

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
    /// The number of the attempt at this run, from 1.
    pub attempt: u32,
    /// The value of every variable.
    pub values: BTreeMap<String, String>,
    /// The number of the repetition, from 1.
    pub repetition: u32,
    /// The seed of all randomness.
    pub seed: u64,
    /// The end, in seconds since 1970.
    pub ended_unix_seconds: u64,
    /// The program that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// The average number of runnable processes in its last minute, including this run's.
    pub load_average: Option<f64>,
    /// The rights that built the lab.
    pub rights: Rights,
    /// Whether the run is VALID.
    pub valid: bool,
    /// The reasons if it is not.
    pub reasons: Vec<String>,
    /// Whether the workload failed although the relay was in order: no disturbance, but a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub workload_failed: bool,
    /// The measurements, each in the base of its unit.
    pub measured: BTreeMap<Quantity, f64>,
    /// The congestion control of each connection's socket.
    pub congestion_controls: Vec<String>,
    /// The settings of the client's host.
    pub client_settings: BTreeMap<String, String>,
    /// The settings of the server's host.
    pub server_settings: BTreeMap<String, String>,
    /// The setup, as written.
    pub setup: Table,
    /// The setup with all defaults; null is left to the kernel, or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_setup: Option<Value>,
    /// The sessions of the workload, if it has any; commands and single intervals are among the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRecord>,
    /// The client's connections, and the cost of sampling them; the samples are in a file of their own.
    pub sockets: SocketsReport,
    /// The trace of the kernel's events, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_trace: Option<KernelTrace>,
    /// The relay's report.
    pub relay: RelayReport,
    /// The capture, if one was requested; its packets are in a file of their own, and its commands among the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureRecord>,
}

impl RunRecord {
    /// The record of `attempt` at the run with this index, which has just ended.
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
            workload_failed: outcome.workload_failed,
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
