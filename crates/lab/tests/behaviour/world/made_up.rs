//! Experiments whose runs are made up, so that tests decide what was measured and what failed.

use super::plan;
use observe::SocketsReport;
use ropewalk_lab::{
    Experiment, Folder, FolderError, Plan, Quantity, RelayReport, Removal, Rights, RunOutcome, Setup,
    run_series,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Four runs: two round trips by two congestion controls.
pub const TEXT: &str = r#"
    title = "Throughput against distance"
    about = """
    First
    paragraph.

    Second."""
    attempts = 2

    [setup]
    link = { rate = "100Mbit", queue = "200kB" }
    congestion_control = "reno"
    warm_up = "20ms"
    streams = { count = 2, measured = "200ms" }

    [[vary]]
    name = "RTT"
    key = "rtt"
    values = ["0ms", "10ms"]

    [[vary]]
    name = "control"
    key = "congestion_control"
    values = ["reno", "cubic"]

    [[plot]]
    x = "RTT"
    y = "throughput"
    theory = ["link"]

    [[trace]]
    y = ["send_queue", "send_buffer"]
    right = ["in_flight"]
    only = { RTT = ["10ms"], control = ["cubic"] }
"#;

/// An experiment and the folder of its results.
pub struct World {
    folder: tempfile::TempDir,
    /// The place of the results: inside the folder, or the folder itself.
    pub run_in: PathBuf,
    pub experiment: Experiment,
    pub plan: Plan,
}

impl World {
    pub fn new() -> Self {
        Self::of(TEXT)
    }

    pub fn of(text: &str) -> Self {
        let experiment = Experiment::parse(text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        Self { run_in: folder.path().to_owned(), folder, experiment, plan: plan(text) }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn anew(&self) -> Result<Removal, FolderError> {
        Folder::begin_anew(&self.run_in, &self.experiment, &self.plan).map(|(_, removal)| removal)
    }

    pub fn folder(&self) -> Result<Folder, FolderError> {
        Folder::begin_or_go_on(&self.run_in, &self.experiment, &self.plan)
    }

    /// Makes up the runs that are still to be done, and returns the number of attempts. `reasons` says of each attempt,
    /// by its number from 0, why it is invalid.
    pub fn run(&self, reasons: impl Fn(usize) -> Vec<String>) -> usize {
        let mut made = 0;
        let attempt = |_: &Setup, seed| {
            made += 1;
            Ok(outcome(seed, reasons(made - 1)))
        };
        run_series(&self.plan, &mut self.folder().unwrap(), attempt, |_| ()).unwrap();
        made
    }

    /// Changes the record of the first run.
    pub fn edit_first_record(&self, change: impl FnOnce(&str) -> String) {
        let file = self.path().join("runs/0001-1.json");
        fs::write(&file, change(&fs::read_to_string(&file).unwrap())).unwrap();
    }
}

/// The outcome of a run whose throughput, in Mbit/s, is the seed; `reasons` say why it is invalid.
pub fn outcome(seed: u64, reasons: Vec<String>) -> RunOutcome {
    let way = r#"{"frames_in":0,"frames_out":0,"dropped_by_kernel":0,"unreadable":0,"beyond_memory":0,
        "writes_failed":0,"lateness":{"count":0,"p50_ns":0,"p99_ns":0,"p999_ns":0,"max_ns":0},"path":"#;
    let way = format!("{way}{}}}", serde_json::to_string(&netem::Counters::default()).unwrap());
    let relay: RelayReport = serde_json::from_str(&format!(
        r#"{{"begun_at":{{"secs_since_epoch":0,"nanos_since_epoch":0}},"begun_ns":0,"elapsed":{{"secs":1,"nanos":0}},
        "has_priority":true,"has_large_buffers":true,"round_trip":{{"secs":0,"nanos":0}},"forward":{way},
        "backward":{way},"gaps":{{"count":0,"p50_ns":0,"p99_ns":0,"p999_ns":0,"max_ns":0}},"processor_share":0.1,
        "processor_share_max":0.1,"sightings_lost":0}}"#
    ))
    .unwrap();
    RunOutcome {
        measured: BTreeMap::from([(Quantity::Throughput, 1e6 * seed as f64)]),
        samples: Vec::new(),
        session: None,
        sockets: SocketsReport::default(),
        kernel_trace: None,
        congestion_controls: Vec::new(),
        settings: Default::default(),
        rights: Rights::Root,
        relay,
        capture: None,
        reasons,
        workload_failed: false,
    }
}

/// Every attempt is valid.
pub fn valid(_: usize) -> Vec<String> {
    Vec::new()
}

/// An invalid attempt.
pub fn late() -> Vec<String> {
    vec!["the relay was late".to_owned()]
}
