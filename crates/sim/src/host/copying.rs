//! Copies that a host makes with the engine that ships, into blocks that nobody else writes.
//!
//! A copy that succeeds is a promise for each of its blocks: it holds the source's, and survives every crash. One that
//! fails promises what its [`DestinationState`] says. Sometimes the way to the destination spoils a block, which a
//! copy that reads it back must notice.

mod contest;
mod region;
mod stamped_disk;

use super::work::{Worker, aftermath};
use super::{Host, HostPlan};
use crate::checker::{Order, Stamp, WriteId};
use crate::host::runtime::Runtime;
use crate::random::Random;
use crate::reached::Way;
use crate::unit::{UnitIndex, UnitPlan};
use block::{Backend, BlockError, Timer};
use client::Host as _;
pub(super) use contest::Contender;
pub use contest::Contest;
pub(crate) use contest::plan as plan_contest;
use pdu::{Duration, Instant};
use region::Region;
use stamped_disk::StampedDisk;
use std::error::Error as _;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use transfer::{
    Clock, Destination, DestinationState, Error, Failure, Identity, Job, Options, Original, Progress,
    Refusal, Report, Source, Verify,
};

/// How rare a seed whose hosts make copies is.
const COPIES_ONE_IN: u64 = 4;

/// Blocks of an area that is copied to.
const AREA_BLOCKS: (u64, u64) = (16, 192);

/// More blocks than an area has: tells the stamps of one copy from those of the next.
const STAMPS_OF_A_COPY: u32 = 1 << 12;

/// The host numbers of copies, for which the flushes of a host's other work do not wait: the engine writes later than
/// the checker is told.
const COPYING_HOSTS: u16 = 1 << 13;

/// Requests under way in one copy, and bytes of each.
const REQUESTS_MAX: usize = 16;
const REQUEST_BYTES_MAX: u64 = 16 << 10;

/// Blocks of a source that hold data, or zeroes, without a break.
const RUN_BLOCKS_MAX: u64 = 32;

/// The longest that a copy goes without a flush, in half of the cases; in the others it is flushed once.
const UNFLUSHED_BYTES_MAX: u64 = 32 << 10;
const ALL_BYTES: u64 = 1 << 20;

/// A limit on bandwidth, in KiB per second: low enough to hold requests back, high enough for several copies.
const LIMIT_KIB: (u64, u64) = (64, 4096);

/// The pause between two copies, and the time after which a copy may be interrupted.
const PAUSE_MAX: Duration = Duration::from_millis(500);
const INTERRUPT_MAX: Duration = Duration::from_millis(2000);

/// How rare it is that the target dies as soon as a copy has succeeded.
const CRASH_AFTER_COPY_ONE_IN: u64 = 4;

/// How long a host waits after a copy, so that a crash that it asked for happens before anything else.
const CRASH_PAUSE: Duration = Duration::from_millis(1);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A row of blocks that one host copies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// The unit that they belong to.
    pub unit: UnitIndex,
    /// The first of them.
    pub first: u64,
}

/// What a host copies to: two areas, of which the second is also copied to from the first.
#[derive(Clone, Copy, Debug)]
pub struct CopyPlan {
    /// The areas; their units have blocks of the same length.
    pub areas: [Area; 2],
    /// Blocks of each.
    pub blocks: u64,
}

/// Decides whether hosts make copies, and gives each that does blocks of its own, behind those that all work on.
pub(crate) fn plan(seed: u64, hosts: &mut [HostPlan], units: &mut [UnitPlan]) {
    // With generators of their own, so that the rest of the seed is what it would be without them.
    let mut random = Random::new(seed, "copies");
    let mut places = Random::new(seed, "places of copies");
    let copies = random.one_in(COPIES_ONE_IN);
    for (index, host) in hosts.iter_mut().enumerate().filter(|_| copies) {
        if index == 0 || random.one_in(2) {
            let blocks = random.between(AREA_BLOCKS.0, AREA_BLOCKS.1);
            let first = places.index(units.len());
            let is_like_first = |unit: &UnitPlan| unit.block_bytes() == units[first].block_bytes();
            let alike: Vec<usize> = (0..units.len()).filter(|unit| is_like_first(&units[*unit])).collect();
            let second = *places.choose(&alike);
            let areas = [first, second].map(|unit| add_area(units, unit, blocks));
            host.copies = Some(CopyPlan { areas, blocks });
        }
    }
}

fn add_area(units: &mut [UnitPlan], unit: usize, blocks: u64) -> Area {
    let disk = &mut units[unit].disk;
    let first = disk.blocks;
    disk.blocks += blocks;
    Area { unit: UnitIndex(u16::try_from(unit).unwrap_or_default()), first }
}

/// Makes copies, one after the other.
pub(super) struct Copier {
    host: Rc<Host>,
    /// Those of all units.
    workers: Rc<[Worker]>,
    plan: CopyPlan,
    block_bytes: usize,
    random: Random,
    /// Copies that were begun.
    copies: u32,
}

/// One copy, as it was told to the checker.
struct Attempt {
    number: u32,
    /// Where it writes.
    to: Area,
    block_bytes: usize,
    stamps: Vec<Stamp>,
    options: Options,
    /// A block that does not arrive as it was sent, counted from the beginning of the copy.
    spoilt: Option<usize>,
    writes: Vec<WriteId>,
}

impl Copier {
    pub fn new(host: Rc<Host>, workers: Rc<[Worker]>, plan: CopyPlan, random: Random) -> Self {
        let block_bytes = workers[plan.areas[0].unit.place()].block_bytes;
        Self { host, workers, plan, block_bytes, random, copies: 0 }
    }

    /// Copies until there are no more operations to begin.
    pub async fn work(mut self) {
        while self.host.ledger.borrow().budget > 0 {
            let stamps = self.draw_stamps();
            let [first, second] = self.plan.areas;
            let runtime = self.host.runtime.clone();
            let source = StampedDisk::new(&stamps, self.block_bytes, runtime.clone(), &mut self.random);
            let copied = self.copy(Arc::new(source), stamps.clone(), first).await;
            if copied && self.random.one_in(2) {
                let lun = self.host.open(first.unit).await;
                let source = Region::new(lun, runtime, first.first, stamps.len() as u64);
                let copied = self.copy(Arc::new(source), stamps, second).await;
                if copied && first.unit != second.unit {
                    let target = |area: Area| self.host.units[area.unit.place()].target;
                    let is_local = target(first) == target(second);
                    let way = if is_local { Way::CopiedBetweenUnits } else { Way::CopiedBetweenTargets };
                    self.host.ledger.borrow_mut().tally.reached.count(way);
                }
            }
            let pause = random_time(&mut self.random, PAUSE_MAX);
            self.host.pause(pause).await;
        }
    }

    /// The contents of the next source: runs of data and of zeroes.
    fn draw_stamps(&mut self) -> Vec<Stamp> {
        let blocks = self.random.between(1, self.plan.blocks);
        let mut stamps = Vec::new();
        while (stamps.len() as u64) < blocks {
            let is_zero = self.random.one_in(3);
            for _ in 0..self.random.between(1, RUN_BLOCKS_MAX).min(blocks - stamps.len() as u64) {
                let stamp = self.stamp(self.copies, stamps.len());
                stamps.push(if is_zero { Stamp::ZERO } else { stamp });
            }
        }
        stamps
    }

    fn stamp(&self, copy: u32, block: usize) -> Stamp {
        let place = u32::try_from(block).unwrap_or(STAMPS_OF_A_COPY) % STAMPS_OF_A_COPY;
        Stamp::anywhere(self.host.index, copy * STAMPS_OF_A_COPY + place)
    }

    /// Makes a copy, and tells the checker of it. Whether its area now holds `stamps`.
    async fn copy(&mut self, source: Arc<dyn Backend>, stamps: Vec<Stamp>, to: Area) -> bool {
        let lun = self.host.open(to.unit).await;
        let attempt = self.begin(stamps, to);
        let runtime = self.host.runtime.clone();
        let mut region = Region::new(lun, runtime.clone(), to.first, self.plan.blocks);
        if let Some(block) = attempt.spoilt {
            region.spoil(block as u64, self.spoilt_stamp(&attempt));
        }
        let interrupt = self.random.one_in(8).then(|| random_time(&mut self.random, INTERRUPT_MAX));
        let progress = Arc::new(Progress::default());
        let source = Source::device(Identity::named("source"), source);
        let destination = Destination::device(Identity::named("destination"), Arc::new(region));
        let clock = Arc::new(CopyClock(runtime.clone()));
        let options = attempt.options.clone();
        let job = Job::prepare(source, destination, options, clock, Arc::clone(&progress)).await;
        let outcome = run(job, &runtime, interrupt).await;
        let losses = progress.snapshot().losses;
        self.host.trace(|| format!("copy {}: {outcome:?}, {losses} losses", attempt.number));
        match outcome {
            Ok(report) => self.succeeded(&attempt, report, losses).await,
            Err(failure) => {
                self.failed(&attempt, &failure, interrupt.is_some());
                false
            }
        }
    }

    fn begin(&mut self, stamps: Vec<Stamp>, to: Area) -> Attempt {
        let (number, block_bytes) = (self.copies, self.block_bytes);
        self.copies += 1;
        let block = block_bytes as u64;
        let random = &mut self.random;
        let options = Options {
            requests: 1 + random.index(REQUESTS_MAX),
            requests_max: Some(REQUESTS_MAX),
            request_bytes: random.between(1, REQUEST_BYTES_MAX / block) * block,
            unflushed_bytes_max: if random.one_in(2) {
                random.between(1, UNFLUSHED_BYTES_MAX)
            } else {
                ALL_BYTES
            },
            limit: random
                .one_in(4)
                .then(|| format!("{}K", random.between(LIMIT_KIB.0, LIMIT_KIB.1)))
                .and_then(|limit| limit.parse().ok()),
            verify: *random.choose(&[Verify::Full, Verify::Sample, Verify::Sample, Verify::Off]),
            verify_seed: random.word(),
            overwrite: random.one_in(2),
            // Nothing has been written there yet.
            destination_is_zero: number == 0 && random.one_in(2),
            ..Options::default()
        };
        let spoilt = random.one_in(6).then(|| random.index(stamps.len()));
        let spoilt = spoilt.filter(|block| stamps[*block] != Stamp::ZERO);
        let mut attempt = Attempt { number, to, block_bytes, stamps, options, spoilt, writes: Vec::new() };
        attempt.writes = self.tell(&attempt);
        self.host.trace(|| {
            let Attempt { stamps, options, .. } = &attempt;
            format!("copy {number} to {to:?}: {} blocks, {options:?}, spoilt {spoilt:?}", stamps.len())
        });
        attempt
    }

    /// Tells the checker of the writes that a copy may do, in the order of its blocks.
    fn tell(&self, attempt: &Attempt) -> Vec<WriteId> {
        let order = Order { host: COPYING_HOSTS + self.host.index, number: Some(attempt.number) };
        let mut ledger = self.host.ledger.borrow_mut();
        let history = &mut ledger.unit(attempt.to.unit).history;
        if let Some(block) = attempt.spoilt {
            let lba = attempt.to.first + block as u64;
            history.begin_write(lba..lba + 1, self.spoilt_stamp(attempt), order);
        }
        let blocks = (attempt.to.first..).zip(&attempt.stamps);
        blocks.map(|(lba, stamp)| history.begin_write(lba..lba + 1, *stamp, order)).collect()
    }

    fn spoilt_stamp(&self, attempt: &Attempt) -> Stamp {
        self.stamp(attempt.number, STAMPS_OF_A_COPY as usize - 1)
    }

    /// Everything is durable. A crash at this moment must not matter.
    async fn succeeded(&mut self, attempt: &Attempt, report: Report, losses: u64) -> bool {
        if attempt.is_read_back() {
            self.violate(attempt, "it succeeded, although a block that was read back is spoilt");
        }
        if report.bytes != attempt.bytes() {
            self.violate(attempt, &format!("{} bytes, and not {}", report.bytes, attempt.bytes()));
        }
        self.became_durable(attempt);
        {
            let mut ledger = self.host.ledger.borrow_mut();
            ledger.tally.reached.count(Way::Copied);
            if losses > 0 {
                ledger.tally.reached.count(Way::CopiedAfterLoss);
            }
            if self.random.one_in(CRASH_AFTER_COPY_ONE_IN) {
                ledger.crash_wanted = Some(Random::new(self.random.word(), "crash"));
            }
        }
        self.host.pause(CRASH_PAUSE).await;
        let Area { unit, first } = attempt.to;
        self.workers[unit.place()].read_back(first..first + attempt.stamps.len() as u64).await;
        attempt.spoilt.is_none()
    }

    fn became_durable(&self, attempt: &Attempt) {
        let mut ledger = self.host.ledger.borrow_mut();
        ledger.progress_at = self.host.runtime.now();
        for (block, write) in attempt.writes.iter().enumerate() {
            if attempt.spoilt != Some(block) {
                ledger.unit(attempt.to.unit).history.acknowledge(*write, true);
            }
        }
    }

    fn failed(&self, attempt: &Attempt, failure: &Failure, was_interrupted: bool) {
        match failure.destination {
            DestinationState::Untouched => {
                let mut ledger = self.host.ledger.borrow_mut();
                let history = &mut ledger.unit(attempt.to.unit).history;
                attempt.writes.iter().for_each(|write| history.cancel_write(*write));
            }
            DestinationState::Unverified => self.became_durable(attempt),
            // Each block holds the old or the new; a write of unknown outcome may come at any time.
            DestinationState::Incomplete | DestinationState::Different | DestinationState::Unnamed => {}
        }
        let reached = |way| self.host.ledger.borrow_mut().tally.reached.count(way);
        reached(Way::CopyFailed);
        match &failure.error {
            Error::Mismatch { offset, .. } if attempt.is_spoilt_at(*offset) => reached(Way::CopyDiffers),
            Error::Interrupted if was_interrupted => {}
            // A stamp that looks like a filesystem.
            Error::Refused(Refusal::Occupied { .. }) if !attempt.options.overwrite => {}
            Error::NeverDurable { .. } => {}
            Error::Read { source, .. } | Error::Write { source, .. } if is_excused(source) => {}
            error => self.violate(attempt, &format!("it failed: {error:?}")),
        }
        self.host.ledger.borrow_mut().progress_at = self.host.runtime.now();
    }

    fn violate(&self, attempt: &Attempt, what: &str) {
        self.host.violate(&format!("copy {} to {:?}: {what}", attempt.number, attempt.to));
    }
}

impl Attempt {
    fn bytes(&self) -> u64 {
        (self.stamps.len() * self.block_bytes) as u64
    }

    /// Whether the block that is spoilt is one of those that are compared.
    fn is_read_back(&self) -> bool {
        let original = Original {
            bytes: self.bytes(),
            request_bytes: self.options.request_bytes,
            unit_bytes: self.block_bytes as u64,
            is_stream: false,
        };
        let is_compared = |offset: u64| {
            let mut parts = self.options.verify.parts(original, self.options.verify_seed);
            parts.any(|part| (part.offset..part.end()).contains(&offset))
        };
        self.spoilt.is_some_and(|block| is_compared((block * self.block_bytes) as u64))
    }

    fn is_spoilt_at(&self, offset: u64) -> bool {
        self.spoilt.is_some_and(|block| block as u64 == offset / self.block_bytes as u64)
    }
}

/// Runs a copy to its end, or interrupts it after this time.
async fn run(
    job: Result<Job, Error>,
    runtime: &Runtime,
    interrupt: Option<Duration>,
) -> Result<Report, Failure> {
    let job = job.map_err(Failure::before_writing)?;
    match interrupt {
        Some(after) => job.run(runtime.sleep_until(runtime.now() + after)).await,
        None => job.run(std::future::pending()).await,
    }
}

/// Whether an operation may fail like this while things go wrong.
fn is_excused(error: &BlockError) -> bool {
    cause(error).is_some_and(|cause| aftermath(cause).is_some())
}

/// The client's error behind a device's.
fn cause(error: &BlockError) -> Option<&client::Error> {
    error.source()?.downcast_ref()
}

fn random_time(random: &mut Random, longest: Duration) -> Duration {
    Duration::from_nanos(random.between(1, pdu::nanoseconds(longest)))
}

/// The world's time, which begins at midnight.
struct CopyClock(Runtime);

impl Timer for CopyClock {
    fn now(&self) -> Duration {
        self.0.now().saturating_duration_since(Instant::ZERO)
    }

    fn wait_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.sleep_until(Instant::ZERO + time)
    }
}

impl Clock for CopyClock {
    fn time_of_day(&self) -> Duration {
        let nanoseconds = self.now().as_nanos() % DAY.as_nanos();
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use crate::unit::UnitPlan;
    use crate::{Reduction, Scenario};

    #[test]
    fn copies_go_to_blocks_of_their_own_behind_those_that_all_work_on() {
        let mut areas = 0;
        for seed in 1..100 {
            let Scenario { hosts, units, .. } = Scenario::of(seed, &Reduction::default());
            let mut ends: Vec<u64> = units.iter().map(|unit| unit.shared_blocks).collect();
            for plan in hosts.iter().filter_map(|host| host.copies) {
                for area in plan.areas {
                    let end = &mut ends[area.unit.place()];
                    assert_eq!(area.first, *end);
                    *end += plan.blocks;
                    areas += 1;
                }
            }
            let is_shared = |unit: &&UnitPlan| unit.shared_blocks > 0;
            let blocks: Vec<u64> = units.iter().filter(is_shared).map(|unit| unit.disk.blocks).collect();
            ends.truncate(blocks.len());
            assert_eq!(ends, blocks);
        }
        assert!(areas > 20);
    }
}
