//! `ropewalk copy`.

mod end;
mod monitor;
mod plan;

use crate::clock::LocalClock;
use crate::exit::{Failed, Status};
use crate::remote::{Connected, Connecting, GOODBYE, Portals, Remote};
use crate::signals::Interrupts;
use crate::{local, reservation, signals, sizes};
use block::Engine;
use clap::ValueEnum;
use end::{End, Opened};
use futures_util::future;
use initiator::{Reserved, Target};
use monitor::Monitor;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use transfer::{Destination, Error, Failure, Job, Options, Progress, Schedule, Source, Verify};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  ropewalk copy disk.img iscsi://storage.example.com/iqn.2026-11.com.example:disk/0
  ropewalk copy --connections 8 --bwlimit '08:00,100M 19:00,off' \\
      iscsi://storage.example.com/iqn.2026-11.com.example:disk/0 /dev/sdx
  zstd -dc disk.img.zst | ropewalk copy - iscsi://storage.example.com/iqn.2026-11.com.example:disk/0")]
pub(crate) struct Arguments {
    /// Where to copy from
    #[arg(value_name = "SRC")]
    source: End,

    /// Where to copy to. A new file is called DST.partial until the copy is complete
    #[arg(value_name = "DST")]
    destination: End,

    #[command(flatten)]
    connecting: Connecting,

    /// Requests under way at the same time: a number, or `auto`: 64, rising to 256 where the path holds more than 32 at a
    /// time
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = requests)]
    requests: Requests,

    /// Length of a request
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = sizes::request_size)]
    request_size: u64,

    /// Limit in bytes per second: 200M (MiB), or by the time of day, "08:00,100M 19:00,off"
    #[arg(long, value_name = "SPEC")]
    bwlimit: Option<Schedule>,

    /// How much to read back and compare with the source [default: sample]
    #[arg(long, value_name = "HOW MUCH")]
    verify: Option<HowMuch>,

    /// Expected length of SRC; the copy fails if it is shorter or longer. In a new file, the zeroes of a stream of
    /// known length become holes
    #[arg(long, value_name = "SIZE", value_parser = sizes::source_size)]
    source_size: Option<u64>,

    /// Allow the copy to destroy what the destination holds
    #[arg(long)]
    overwrite: bool,

    /// Take the destination's reservation away from another host, or from a copy that was killed
    #[arg(long)]
    break_reservation: bool,

    /// Skip zeroes, because the destination already reads as zeroes everywhere
    #[arg(long)]
    destination_is_zero: bool,

    /// Refuse unless the destination (or the source, if the destination is a file or a stream) has this identity,
    /// which `ropewalk info` shows
    #[arg(long, value_name = "naa.…|eui.…")]
    expect_id: Option<String>,

    /// Check everything and print the plan, without copying
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Print JSON lines: `message_type` `status` once a second, then `summary`
    #[arg(long)]
    json: bool,
}

/// How many requests are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Requests {
    first: usize,
    most: usize,
}

/// With the usual length of 1 MiB, they hold twice the bandwidth-delay product of 10 Gbit/s over 100 ms.
const REQUESTS_MAX: usize = 256;

fn requests(text: &str) -> Result<Requests, String> {
    if text == "auto" {
        return Ok(Requests { first: Options::default().requests, most: REQUESTS_MAX });
    }
    let number = text.parse::<u16>().ok().filter(|number| *number > 0).map(usize::from);
    let requests = number.map(|number| Requests { first: number, most: number });
    requests.ok_or_else(|| format!("a number from 1 to {} is needed, or auto", u16::MAX))
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HowMuch {
    /// Compare every byte
    Full,
    /// Compare both ends and 4 KiB of every 16 MiB, chosen at random; of a stream, one of every 64 requests
    Sample,
    /// Compare nothing
    Off,
}

impl From<HowMuch> for Verify {
    fn from(how_much: HowMuch) -> Self {
        match how_much {
            HowMuch::Full => Self::Full,
            HowMuch::Sample => Self::Sample,
            HowMuch::Off => Self::Off,
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failed> {
    check_usage(&arguments)?;
    let connected = Connected::default();
    let outcome = open_and_copy(&arguments, &connected).await;
    connected.log_out().await;
    outcome
}

async fn open_and_copy(arguments: &Arguments, connected: &Connected) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen()?;
    let engine = local::engine()?;
    let (source, destination) = tokio::select! {
        ends = open(arguments, &engine, connected) => ends?,
        _ = interrupts.next() => return Err(not_begun(Error::Interrupted)),
    };
    let remotes = [&source.remote, &destination.remote].into_iter().flatten();
    let targets: Vec<_> = remotes.map(|remote| remote.target.clone()).collect();
    let progress = Arc::new(Progress::default());
    let monitor = Monitor::new(Arc::clone(&progress), &targets, arguments);
    let preparing = Job::prepare(
        source.end,
        destination.end,
        options(arguments),
        Arc::new(LocalClock::start()),
        progress,
    );
    let prepared = tokio::select! {
        prepared = secure_and_prepare(arguments, destination.remote.as_ref(), preparing) => prepared,
        _ = interrupts.next() => Ok(Err(Error::Interrupted)),
    };
    let outcome = match prepared {
        Ok(Ok(job)) if arguments.dry_run => show(&job, arguments, interrupts, &targets).await,
        Ok(prepared) => copy(prepared, interrupts, &monitor, &targets).await,
        Err(refused) => Err(refused),
    };
    // One connection of each session is enough for the rest.
    targets.iter().for_each(Target::remove_all_but_one);
    if let Some(remote) = &destination.remote {
        reservation::release(remote).await;
    }
    outcome
}

async fn open(
    arguments: &Arguments,
    engine: &Engine,
    connected: &Connected,
) -> Result<(Opened<Source>, Opened<Destination>), Failed> {
    let connecting = &arguments.connecting;
    let portals = match arguments.destination {
        End::Url(_) => Portals::OfUrl,
        _ => Portals::Given,
    };
    // Both are waited for, whichever fails: a login that is broken off may leave a session at its target.
    let (source, destination) = future::join(
        arguments.source.open_source(connecting, portals, engine, connected),
        arguments.destination.open_destination(connecting, engine, connected),
    )
    .await;
    Ok((source?, destination?))
}

/// Reserves a remote destination while both ends are checked. Looks at the destination again if somebody else may have
/// held it meanwhile.
async fn secure_and_prepare(
    arguments: &Arguments,
    destination: Option<&Remote>,
    preparing: impl Future<Output = Result<Job, Error>>,
) -> Result<Result<Job, Error>, Failed> {
    let securing = secure(arguments, destination);
    if arguments.break_reservation {
        // The holder may keep others from reading, too.
        securing.await?;
        return Ok(preparing.await);
    }
    let (secured, prepared) = future::join(securing, preparing).await;
    match (secured?, prepared) {
        (Reserved::Stepwise, Ok(job)) => Ok(job.check_unoccupied().await.map(|()| job)),
        (_, prepared) => Ok(prepared),
    }
}

/// Keeps other hosts from writing to a remote destination. A mere plan (`--dry-run`) reserves nothing.
async fn secure(arguments: &Arguments, destination: Option<&Remote>) -> Result<Reserved, Failed> {
    match destination {
        Some(remote) if arguments.dry_run => {
            reservation::check(remote, arguments.break_reservation).await.map(|()| Reserved::No)
        }
        Some(remote) => reservation::take(remote, arguments.break_reservation).await,
        None => Ok(Reserved::No),
    }
}

/// Shows the plan of a copy that is not made.
async fn show(
    job: &Job,
    arguments: &Arguments,
    mut interrupts: Interrupts,
    targets: &[Target],
) -> Result<(), Failed> {
    let shown = async {
        complete(targets).await;
        plan::show(job, targets, arguments.json).await;
    };
    tokio::select! {
        () = shown => Ok(()),
        _ = interrupts.next() => Err(not_begun(Error::Interrupted)),
    }
}

async fn copy(
    prepared: Result<Job, Error>,
    interrupts: Interrupts,
    monitor: &Monitor<'_>,
    targets: &[Target],
) -> Result<(), Failed> {
    let (outcome, capacity_bytes) = match prepared {
        Err(error) => (Err(Failure::before_writing(error)), None),
        Ok(job) => {
            let interrupt = interrupts.into_first(
                "waiting for requests under way; interrupt again to stop at once",
                "interrupted twice: the destination is garbage until a copy succeeds",
            );
            let capacity_bytes = job.plan().capacity_bytes;
            let outcome = monitor.watch(job.run(interrupt)).await;
            if outcome.is_ok() {
                // A short copy may end before its connections are up.
                complete(targets).await;
            }
            (outcome, capacity_bytes)
        }
    };
    monitor.sum_up(&outcome, capacity_bytes);
    outcome.map(drop).map_err(failed)
}

/// Waits until every target has the connections that it will have, or long enough.
async fn complete(targets: &[Target]) {
    let complete = future::join_all(targets.iter().map(Target::complete));
    let _ = tokio::time::timeout(GOODBYE, complete).await;
}

fn check_usage(arguments: &Arguments) -> Result<(), Failed> {
    let to_stdout = arguments.destination == End::Stream;
    if to_stdout && arguments.json {
        return Err(Failed::usage("--json writes to standard output, and so does DST: name a file as DST"));
    }
    if to_stdout && arguments.verify.is_some_and(|verify| verify != HowMuch::Off) {
        return Err(Failed::usage(
            "standard output cannot be read back: omit --verify, or name a file as DST",
        ));
    }
    Ok(())
}

fn options(arguments: &Arguments) -> Options {
    Options {
        requests: arguments.requests.first,
        requests_max: Some(arguments.requests.most),
        request_bytes: arguments.request_size,
        limit: arguments.bwlimit.clone(),
        verify: arguments.verify.unwrap_or(HowMuch::Sample).into(),
        // Another sample every time.
        verify_seed: RandomState::new().hash_one(()),
        overwrite: arguments.overwrite,
        destination_is_zero: arguments.destination_is_zero,
        expect_id: arguments.expect_id.clone(),
        source_bytes: arguments.source_size,
        ..Options::default()
    }
}

/// A failure before anything was written.
fn not_begun(error: Error) -> Failed {
    failed(Failure::before_writing(error))
}

fn failed(failure: Failure) -> Failed {
    let status = match &failure.error {
        Error::Refused(_) => Status::Refused,
        Error::Mismatch { .. } => Status::Mismatch,
        Error::Interrupted => signals::first().into(),
        _ => Status::Failed,
    };
    let consequence = Some(failure.consequence());
    Failed { status, error: failure.error.into(), consequence }
}
