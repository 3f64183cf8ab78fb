//! `ropewalk bench`: what a remote disk delivers.

mod measurement;

use crate::exit::{Failed, Status};
use crate::output::{self, outln};
use crate::remote::{
    Connected, Connecting, Portals, Usage, ceilings, decisions, explanation, limit, limit_object,
};
use crate::signals::Interrupts;
use crate::{info, sizes};
use block::Backend;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use initiator::{Target, Url};
use lab::netem::{Bytes, Span};
use lab::workload::{Contents, End, Load, Order, Pattern};
use measurement::Measurement;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::time::Instant;

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  ropewalk bench iscsi://storage.example.com/iqn.2026-11.com.example:disk/0 \\
      --rw randread --request-size 4K --requests 32")]
pub(crate) struct Arguments {
    /// The remote disk
    #[arg(value_name = "URL")]
    url: Url,

    /// Direction and order of the requests
    #[arg(long, value_name = "WHAT", default_value = "read")]
    rw: Way,

    /// Length of a request
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = sizes::request_size)]
    request_size: u64,

    /// Requests under way at the same time, over all connections
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    requests: u16,

    /// Duration of the measurement: 30s, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = sizes::duration)]
    runtime: Duration,

    #[command(flatten)]
    connecting: Connecting,

    /// Allow writing to destroy what the disk holds
    #[arg(long)]
    destroy_data: bool,

    /// Print JSON lines: `message_type` `status` once a second, then `summary`
    #[arg(long)]
    json: bool,
}

/// What the requests do, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// Read from beginning to end
    Read,
    /// Write from beginning to end
    Write,
    /// Read at random places
    Randread,
    /// Write at random places
    Randwrite,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Randread => "randread",
            Self::Randwrite => "randwrite",
        }
    }

    fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Randwrite)
    }

    fn order(self) -> Order {
        match self {
            Self::Read | Self::Write => Order::Sequential,
            Self::Randread | Self::Randwrite => Order::Random,
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failed> {
    if arguments.rw.writes() && !arguments.destroy_data {
        return Err(Failed {
            status: Status::Refused,
            error: anyhow::anyhow!(
                "refused: --rw {} would destroy what {} holds: if that is what you want, say --destroy-data",
                arguments.rw.name(),
                arguments.url
            ),
            consequence: None,
        });
    }
    let connected = Connected::default();
    let outcome = bench(&arguments, &connected).await;
    connected.log_out().await;
    outcome
}

async fn bench(arguments: &Arguments, connected: &Connected) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen()?;
    let remote = tokio::select! {
        remote = arguments.connecting.open(&arguments.url, Portals::Given, connected) => remote?,
        _ = interrupts.next() => return Err(Failed::interrupted()),
    };
    let pattern = arguments.pattern();
    let disk = remote.lun.properties();
    let requests = pattern.requests(disk.bytes(), disk.block_bytes)?;
    let request_bytes = usize::try_from(arguments.request_size)?;
    let load = Load::new(&remote.lun, pattern.depth, request_bytes, Contents::Any);
    let measurement = RefCell::new(Measurement::begin()?);
    let bar = if arguments.json { ProgressBar::hidden() } else { bar(arguments.runtime) };
    let status = || {
        let interval = measurement.borrow_mut().interval();
        if arguments.json {
            output::json(&status(&interval, &remote.target));
        } else {
            bar.set_position(interval.at.as_secs());
            bar.set_message(sizes::bytes(sizes::rate(interval.new_bytes, interval.length)));
        }
    };
    let is_done = tokio::select! {
        outcome = load.run(requests, |ended| measurement.borrow_mut().add(ended)) => {
            outcome?;
            true
        }
        () = every_second(status) => true,
        // What was measured until now counts.
        _ = interrupts.next() => false,
    };
    bar.finish_and_clear();
    let mut measurement = measurement.into_inner();
    measurement.end();
    let report = remote.target.report();
    if arguments.json {
        output::json(&summary(arguments, &measurement, &remote.target, is_done));
    } else {
        print(arguments, &measurement, &report);
    }
    if is_done { Ok(()) } else { Err(Failed::interrupted()) }
}

impl Arguments {
    fn pattern(&self) -> Pattern {
        Pattern {
            order: self.rw.order(),
            read_percent: if self.rw.writes() { 0 } else { 100 },
            request_size: Bytes(self.request_size),
            depth: self.requests,
            end: End::Time(Span(self.runtime)),
            every: None,
            seed: RandomState::new().hash_one(()),
        }
    }
}

/// How often a status is wanted.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

async fn every_second(mut status: impl FnMut()) {
    let mut ticks = tokio::time::interval_at(Instant::now() + STATUS_INTERVAL, STATUS_INTERVAL);
    loop {
        ticks.tick().await;
        status();
    }
}

/// Seconds that went by, and the rate of the last one, on standard error if that is a terminal.
fn bar(runtime: Duration) -> ProgressBar {
    let bar = ProgressBar::new(runtime.as_secs());
    if let Ok(style) = ProgressStyle::with_template("[{bar:28}] {pos} of {len} s  {msg}/s") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(sizes::bytes(0));
    bar
}

fn print(arguments: &Arguments, measurement: &Measurement, report: &initiator::Report) {
    let time = measurement.time();
    outln!(
        "{} of {}, {} at a time, for {}; {}",
        arguments.rw.name(),
        sizes::bytes(arguments.request_size),
        arguments.requests,
        sizes::time(time),
        Usage::default().and(report).describe_connections(),
    );
    ceilings(report).for_each(|why| outln!("No more connections: {why}"));
    outln!(
        "\n{:.1} MB/s ({}/s), {:.0} requests per second\n",
        sizes::rate(measurement.bytes(), time) as f64 / 1e6,
        sizes::bytes(sizes::rate(measurement.bytes(), time)),
        measurement.requests() as f64 / time.as_secs_f64().max(f64::EPSILON),
    );
    let mut latency = output::table(&["LATENCY", "MIN", "50 %", "90 %", "99 %", "99.9 %", "MAX"]);
    let row = measurement.latencies_us().map(|(_, micros)| format!("{:.1?}", Duration::from_micros(micros)));
    latency.add_row(std::iter::once(String::new()).chain(row));
    output::align_right(&mut latency, 1..=6);
    output::print(&latency);
    limit(report).iter().for_each(|limit| outln!("\n{limit}"));
    if arguments.connecting.explain {
        outln!("\n{}", explanation(report));
    }
    outln!();
    output::print(&info::connections(report));
}

fn status(interval: &measurement::Interval, target: &Target) -> Value {
    let numbers = json!({
        "message_type": "status",
        "seconds": interval.at.as_secs_f64(),
        "bytes": interval.bytes,
        "bytes_per_second": sizes::rate(interval.new_bytes, interval.length),
    });
    with_usage(numbers, &Usage::of([target]))
}

fn summary(arguments: &Arguments, measurement: &Measurement, target: &Target, is_done: bool) -> Value {
    let report = target.report();
    let time = measurement.time();
    let latencies = measurement.latencies_us().map(|(name, micros)| (name.to_owned(), Value::from(micros)));
    let numbers = json!({
        "message_type": "summary",
        "done": is_done,
        "rw": arguments.rw.name(),
        "request_bytes": arguments.request_size,
        "requests_outstanding": arguments.requests,
        "requests": measurement.requests(),
        "bytes": measurement.bytes(),
        "seconds": time.as_secs_f64(),
        "bytes_per_second": sizes::rate(measurement.bytes(), time),
        "requests_per_second": measurement.requests() as f64 / time.as_secs_f64().max(f64::EPSILON),
        "limited_by": limit_object(&report),
        "decisions": decisions(&report),
        "latency_us": latencies.collect::<serde_json::Map<_, _>>(),
        "per_connection": info::connection_objects(&report),
    });
    with_usage(numbers, &Usage::of([target]))
}

fn with_usage(mut numbers: Value, usage: &Usage) -> Value {
    if let Value::Object(numbers) = &mut numbers {
        usage.describe(numbers);
    }
    numbers
}
