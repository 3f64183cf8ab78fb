//! Measures the capacity and precision of the lab's relay: bulk TCP at several rates, and pings on an idle path.
//!
//! Started by `benches/relay`. The relay's own verdict is the only one.

#![forbid(unsafe_code)]

mod lab_report;
mod machine;

use anyhow::Context;
use clap::Parser;
use lab::netem::{ETHERNET_FRAMING, LinkModel, MTU, PathModel, Rate};
use lab::{Distribution, Lab, Segmentation, Streams, Topology, Verdict, ping};
use lab_report::{Effort, LabReport, VERDICT};
use observe::statistics::Sample;
use policy::time_model::{TCP_IPV4_BYTES, payload_bits_per_second};
use std::path::PathBuf;
use std::time::Duration;

/// Measure the relay; write a report.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    effort: Effort,
    /// The report's file.
    #[arg(long, default_value = "benches/RELAY.md")]
    report: PathBuf,
}

const ONE_WAY: Duration = Duration::from_millis(20);
const STREAMS: u8 = 4;
const PINGS: u16 = 1000;
/// The largest super-packet: the most segments that 64 KiB hold.
const LARGEST: Segmentation = Segmentation::Offloaded(44);
const FEW: Segmentation = Segmentation::Offloaded(lab::OFFLOADED_SEGMENTS);

/// The rate in megabits per second, and the segmentation that hosts use.
const CELLS: [(u64, Segmentation); 7] = [
    (144, FEW),
    (600, FEW),
    (900, FEW),
    (2000, FEW),
    (2000, LARGEST),
    (144, Segmentation::PerPacket),
    (400, Segmentation::PerPacket),
];

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let duration = options.effort.duration();
    let mut report = LabReport::begin(options.effort, "The lab's relay", "benches/relay", &about(duration))?;
    for (megabits, segmentation) in CELLS {
        report.measure(|| bulk(megabits, segmentation, duration))?;
    }
    report.measure(idle)?;
    report.write(&options.report)
}

/// The description of the measurement, and the table's head.
fn about(duration: Duration) -> String {
    format!(
        "{STREAMS} streams of CUBIC over a clean path of {round_trip} ms with a queue of one bandwidth-delay product; \
         goodput in Mbit/s over {seconds} s, after a warm-up of the same length; all other columns cover the whole run. Ideal \
         is the rate less headers. Frames are super-packets of at most this many segments. Streams, their checks and \
         the relay share the cores. Other work of the machine makes runs invalid, and those are repeated.\n\n\
         | rate | segments | goodput | ideal | relay's processor, mean (busiest second) | late p50 | p99 | p99.9 | max \
         | longest gap | verdict |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n",
        round_trip = (ONE_WAY * 2).as_millis(),
        seconds = duration.as_secs(),
    )
}

fn lab(megabits: u64, segmentation: Segmentation) -> anyhow::Result<Lab> {
    let link = LinkModel::new(Rate::megabits_per_second(megabits), ONE_WAY);
    let topology = Topology { segmentation, ..Topology::new(PathModel::symmetric(link)) };
    Ok(Lab::build(&topology, None)?)
}

/// A row of the table.
fn bulk(megabits: u64, segmentation: Segmentation, duration: Duration) -> anyhow::Result<(String, Verdict)> {
    let lab = lab(megabits, segmentation)?;
    let congestion = Some(lab::Congestion::named("cubic"));
    let to = lab.server.addresses[0];
    let streams = Streams { count: STREAMS, congestion, send_buffer: None, to };
    let arrived = streams.measure(&lab, duration, duration)?;
    let report = lab.relay.stop();
    let goodput = arrived.bytes as f64 * 8e-6 / arrived.elapsed.as_secs_f64();
    let ideal = payload_bits_per_second(megabits as f64, MTU, TCP_IPV4_BYTES, ETHERNET_FRAMING);
    let segments = match segmentation {
        Segmentation::Offloaded(segments) => segments,
        Segmentation::PerPacket => 1,
    };
    let row = format!(
        "| {megabits} | {segments} | {goodput:.0} | {ideal:.0} | {mean:.0} % ({busiest:.0} %) | {late} | {gap} | {VERDICT} |",
        mean = report.processor_share * 100.0,
        busiest = report.processor_share_max * 100.0,
        late = lateness(report.lateness()),
        gap = milliseconds(report.gaps.max_ns),
    );
    Ok((row, report.verdict()))
}

fn lateness(late: Distribution) -> String {
    [late.p50_ns, late.p99_ns, late.p999_ns, late.max_ns].map(milliseconds).join(" | ")
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.2} ms", nanoseconds as f64 / 1e6)
}

fn idle() -> anyhow::Result<(String, Verdict)> {
    let lab = lab(144, FEW)?;
    let round_trips = ping(&lab.client.namespace, lab.server.addresses[0], PINGS)?;
    let beyond = round_trips.iter().map(|time| time.saturating_sub(ONE_WAY * 2).as_secs_f64() * 1e3);
    let beyond = Sample::of(beyond).context("no ping was answered")?;
    let verdict = lab.relay.stop().verdict();
    let text = format!(
        "\nOn an idle path {count} of {PINGS} pings took {p50:.2} ms (median), {p99:.2} ms (p99) and {p999:.2} ms (p99.9) \
         longer than the path's {round_trip} ms. {VERDICT}.",
        count = beyond.count(),
        p50 = beyond.median(),
        p99 = beyond.percentile(99.0),
        p999 = beyond.percentile(99.9),
        round_trip = (ONE_WAY * 2).as_millis(),
    );
    Ok((text, verdict))
}
