//! Measures what the congestion controls of ours cost the kernel for each acknowledgement.
//!
//! Started by `benches/cc`.

#![forbid(unsafe_code)]

mod lab_report;
mod machine;

use bpf::RunningCosts;
use clap::Parser;
use congestion::{Control, Offered};
use lab::netem::{LinkModel, Loss, PathModel, Rate};
use lab::{Congestion, Lab, Segmentation, Streams, Topology, Verdict};
use lab_report::{Effort, LabReport, VERDICT};
use std::path::PathBuf;
use std::time::Duration;

/// Measure the congestion controls; write a report.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    effort: Effort,
    /// The report's file.
    #[arg(long, default_value = "benches/CC.md")]
    report: PathBuf,
}

const MEGABITS: u64 = 200;
const ONE_WAY: Duration = Duration::from_millis(10);
const STREAMS: u8 = 4;

/// As a user names them. Streams of those with groups are one group.
const CONTROLS: [&str; 11] = [
    RENO,
    "rw_scalable",
    "rw_hstcp",
    "rw_htcp",
    "rw_bic",
    "rw_westwood",
    "rw_fast",
    "rw_fair",
    "rw_fair:cubic",
    "rw_fair:single",
    "rw_fair:conservative",
];

/// Reno takes no notice of an acknowledgement until the window may grow, so that one of its two calls is empty.
const RENO: &str = "rw_reno";

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let duration = options.effort.duration();
    let title = "What congestion controls of ours cost";
    let mut report = LabReport::begin(options.effort, title, "benches/cc", &about(duration))?;
    let offered = Offered::here();
    let missing = |control: &Control| !offered.is_available(control.name());
    let loaded: Vec<_> = Control::ALL.into_iter().filter(missing).collect();
    loaded.iter().try_for_each(|control| congestion::load(*control))?;
    let mut empty_call_ns = f64::NAN;
    let measured = CONTROLS
        .into_iter()
        .try_for_each(|name| report.measure(|| measure(name, duration, &mut empty_call_ns)));
    loaded.iter().try_for_each(|control| congestion::unload(*control))?;
    measured?;
    report.write(&options.report)
}

/// The description of the measurement, and the table's head.
fn about(duration: Duration) -> String {
    format!(
        "{STREAMS} streams at {MEGABITS} Mbit/s over a path of {round_trip} ms that loses one segment of ten thousand, in \
         single packets, for twice {seconds} s. The kernel counts calls and times of BPF programs \
         (`kernel.bpf_stats_enabled`), which includes reading its clock. An empty call, of rw_reno, shows how much. Nothing \
         is recorded. An acknowledgement calls a control twice or more often: when it is processed, and when the window \
         may grow.\n\n\
         | congestion control | acknowledgements/s | calls for each | ns for each acknowledgement | of them empty calls | \
         share of a core | verdict |\n|---|---:|---:|---:|---:|---:|---|\n",
        round_trip = (ONE_WAY * 2).as_millis(),
        seconds = duration.as_secs(),
    )
}

/// A row of the table. The time of an empty call comes from Reno's, the first.
fn measure(name: &str, duration: Duration, empty_call_ns: &mut f64) -> anyhow::Result<(String, Verdict)> {
    let mut link = LinkModel::new(Rate::megabits_per_second(MEGABITS), ONE_WAY);
    link.loss = Loss::Random("0.01%".parse()?);
    let topology =
        Topology { segmentation: Segmentation::PerPacket, ..Topology::new(PathModel::symmetric(link)) };
    let lab = Lab::build(&topology, None)?;
    let congestion: Congestion = name.parse()?;
    let costs = RunningCosts::count()?;
    let counted =
        || (costs.of(&format!("{}_", congestion.name)), costs.of(&format!("{}_pkt", congestion.name)));
    let (before, processed_before) = counted();
    let streams = Streams {
        count: STREAMS,
        congestion: Some(congestion.clone()),
        send_buffer: None,
        to: lab.server.addresses[0],
    };
    let arrived = streams.measure(&lab, duration, duration)?;
    let (after, processed) = counted();
    let (calls, busy_ns) = (after.calls - before.calls, after.busy_ns - before.busy_ns);
    let acknowledged = (processed.calls - processed_before.calls).max(1) as f64;
    if name == RENO {
        *empty_call_ns = (processed.busy_ns - processed_before.busy_ns) as f64 / acknowledged;
    }
    let seconds = (arrived.elapsed * 2).as_secs_f64();
    let row = format!(
        "| {name} | {:.0} | {:.1} | {:.0} | {:.0} | {:.2} % | {VERDICT} |",
        acknowledged / seconds,
        calls as f64 / acknowledged,
        busy_ns as f64 / acknowledged,
        calls as f64 / acknowledged * *empty_call_ns,
        busy_ns as f64 / 1e9 / seconds * 100.0,
    );
    Ok((row, lab.relay.stop().verdict()))
}
