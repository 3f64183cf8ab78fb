//! A laboratory on one machine: two hosts in network namespaces, and between them a WAN path modelled by [`netem`], for
//! the real packets of the kernel's own TCP.
//!
//! ```text
//!     namespace of the client         namespace of the relay          namespace of the server
//!  ┌───────────────────────┐      ┌────────────────────────┐       ┌───────────────────────┐
//!  │ programs, TCP ──> wan ┼──────┼ to-client    to-server ┼───────┼ wan ──> TCP, programs │
//!  └───────────────────────┘ veth │     └── Relay ──┘      │ veth  └───────────────────────┘
//!                                   └────────────────────────┘
//! ```
//!
//! * **Nothing is left behind**: namespaces exist only as file descriptors, and the kernel removes them with the
//!   process. Only the folder of another server's files ([`program_run::ServerProgram`]) has a name, in `/dev/shm`; if
//!   the process is killed, a later run removes it.
//! * **Nothing happens outside**: no interface, address or setting of the machine changes.
//! * **Root is not needed** where user namespaces are allowed: [`in_user_namespace`]. It helps at high rates.
//! * **A run is valid or not**: [`RelayReport::verdict`] says whether the relay itself affected the measurement.
//! * **Segments are the model's**: hosts hand over super-packets, as they would to an interface, and the relay cuts
//!   them where the path loses a part ([`Segmentation`]). Receivers get them as they travelled, so fewer
//!   acknowledgements come back than for single packets.

mod beside;
mod capture;
mod decision_record;
mod diagnosis_record;
mod experiment;
mod frame;
mod interface;
mod kernel_settings;
mod kernel_trace;
mod lab;
mod law_check;
mod namespace;
mod parent_death;
mod ping;
pub mod program_run;
mod relay;
mod report;
mod results;
mod rights;
mod run;
mod sample;
mod scsi_measures;
pub mod scsi_run;
mod series;
pub mod session_monitor;
mod session_record;
mod steady;
mod streams;
mod summary;
mod tcp_counters;
mod topology;
mod windows;
pub mod workload;

pub use capture::{CaptureRecord, CaptureSetup, Captured, CapturedCommand, CapturedConnection};
pub use decision_record::DecisionRecord;
pub use diagnosis_record::DiagnosisRecord;
pub use experiment::{
    Cell, CommandEvent, Experiment, Form, InvalidExperiment, Observed, Plan, PlannedRun, Plot, Prediction,
    Quantity, RunLoad, Segments, Setup, StreamsEnd, StreamsSetup, Theory, Trace, each_once,
};
pub use framing::Congestion;
pub use kernel_settings::{KernelSettings, SettingRefused};
pub use kernel_trace::KernelTrace;
pub use lab::{Lab, LabError, LabHost};
pub use monitor::{self, monotonic_ns};
pub use namespace::Namespace;
pub use netem;
pub use ping::ping;
pub use relay::{
    Distribution, Point, Reason, Relay, RelayError, RelayReport, Sighting, Tap, Verdict, Way, WayReport,
};
pub use report::report;
pub use results::{
    Folder, FolderError, Machine, Manifest, ManifestRun, Program, REPORT, Removal, RunRecord, SCHEMA,
};
pub use rights::{NoRights, Rights, in_user_namespace};
pub use run::{RunOutcome, execute};
pub use sample::{ConnectionSocketSample, HeldKind, HeldSample, Sample};
pub use series::{RunState, SeriesError, SeriesEvent, remaining, run_series, run_state};
pub use session_record::SessionRecord;
pub use streams::{Arrived, Pooled, Recording, RecordingTimes, StreamSample, Streams};
pub use summary::{CellSummary, SeriesSummary, Spread, Summary};
pub use topology::{IpVersion, OFFLOADED_SEGMENTS, Segmentation, Topology};
