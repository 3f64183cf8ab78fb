//! Copies of several hosts to one unit, which only a reservation keeps apart.
//!
//! Each copy reserves the unit as `ropewalk copy` reserves its destination. When one has succeeded and no other is
//! running, the unit holds that copy and nothing else.

use super::stamped_disk::StampedDisk;
use super::{CopyClock, INTERRUPT_MAX, PAUSE_MAX, STAMPS_OF_A_COPY, cause, is_excused, random_time, run};
use crate::checker::{Attention, Stamp};
use crate::disk::Geometry;
use crate::host::work::aftermath;
use crate::host::{Host, HostPlan};
use crate::random::Random;
use crate::reached::Way;
use crate::unit::{self, TargetIndex, UnitIndex, UnitPlan};
use block::BlockError;
use client::{Host as _, Lun};
use pdu::Duration;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use transfer::{Destination, Error, Identity, Job, Options, Progress, Source, Verify};

/// How rare a seed is whose hosts copy to one unit.
const CONTESTS_ONE_IN: u64 = 4;

/// The contested unit: its number, which no other unit has, and its blocks.
const NUMBER: u16 = 4;
const BLOCK_BYTES: u32 = 512;
const BLOCKS: (u64, u64) = (16, 128);
const LATENCY_US: (u64, u64) = (10, 20_000);

/// How rare a copy is that takes away another's reservation.
const BREAK_ONE_IN: u64 = 12;

/// The most requests of a copy under way, and bytes of each.
const REQUESTS_MAX: usize = 8;
const REQUEST_BLOCKS_MAX: u64 = 8;

/// Tells the stamps of these copies from those of copies that nobody contests.
const FIRST_STAMP: u32 = 1 << 31;

/// Adds a unit that all hosts copy to, in some seeds with several hosts.
pub(crate) fn plan(seed: u64, hosts: &mut [HostPlan], units: &mut Vec<UnitPlan>) {
    // With a generator of its own, so that the rest of the seed is what it would be without it.
    let mut random = Random::new(seed, "contest");
    if hosts.len() < 2 || !random.one_in(CONTESTS_ONE_IN) {
        return;
    }
    let contested = UnitIndex(u16::try_from(units.len()).unwrap_or_default());
    let target = TargetIndex(random.below(unit::targets_of(units).into()).try_into().unwrap_or_default());
    let disk = Geometry {
        block_bytes: BLOCK_BYTES,
        blocks: random.between(BLOCKS.0, BLOCKS.1),
        volatile_cache: random.one_in(2),
        latency_max: Duration::from_micros(random.between(LATENCY_US.0, LATENCY_US.1)),
    };
    // Behind all others, because nobody else works on it.
    units.push(UnitPlan { shared_blocks: 0, ..UnitPlan::shared(target, NUMBER, disk) });
    hosts.iter_mut().for_each(|host| host.contested = Some(contested));
}

/// The copies to the contested unit.
#[derive(Debug, Default)]
pub struct Contest {
    /// The hosts whose copies have the reservation, as far as they know.
    running: BTreeSet<u16>,
    /// Copies that have got it so far.
    begun: u64,
    /// Attempts under way to take another's reservation away.
    breaking: u64,
    /// Such attempts that have ended.
    broken: u64,
}

impl Contest {
    fn begin(&mut self, host: u16) {
        self.running.insert(host);
        self.begun += 1;
    }

    fn end(&mut self, host: u16) {
        self.running.remove(&host);
    }

    fn others_run(&self, host: u16) -> bool {
        self.running.iter().any(|other| *other != host)
    }
}

/// Makes one host's copies to the contested unit, one after the other.
pub(in crate::host) struct Contender {
    host: Rc<Host>,
    unit: UnitIndex,
    random: Random,
    /// Copies that were begun.
    copies: u32,
    /// [`Contest::broken`] before this host's reservation was made, plus one for its own attempt.
    broken_before: u64,
}

impl Contender {
    pub fn new(host: Rc<Host>, unit: UnitIndex, random: Random) -> Self {
        Self { host, unit, random, copies: 0, broken_before: 0 }
    }

    /// Copies until there are no more operations to begin.
    pub async fn work(mut self) {
        self.expect_attentions();
        while self.host.ledger.borrow().budget > 0 {
            let lun = self.host.open(self.unit).await;
            if self.reserve(&lun).await {
                self.copy(&lun).await;
            }
            let released = lun.release().await;
            self.host.trace(|| format!("contest: released: {released:?}"));
            let pause = random_time(&mut self.random, PAUSE_MAX);
            self.host.pause(pause).await;
        }
    }

    /// From now on, changes of this unit's reservations are on their way.
    fn expect_attentions(&self) {
        use Attention::{
            ClearedByAnother, RegistrationsPreempted, ReservationsPreempted, ReservationsReleased,
        };
        let attentions =
            [ClearedByAnother, ReservationsPreempted, ReservationsReleased, RegistrationsPreempted];
        let ledger = self.host.ledger.borrow();
        ledger.tap.lock().attentions.reservations_change(self.unit, BTreeSet::from(attentions));
    }

    /// Whether this host holds the destination.
    async fn reserve(&mut self, lun: &Lun) -> bool {
        let breaks_others = self.random.one_in(BREAK_ONE_IN);
        let attempt = u64::from(breaks_others);
        {
            let contest = &mut self.host.ledger.borrow_mut().contest;
            contest.breaking += attempt;
            self.broken_before = contest.broken + attempt;
        }
        let reserved = lun.reserve(breaks_others).await;
        self.host.trace(|| format!("contest: reserved, breaking {breaks_others}: {reserved:?}"));
        let mut ledger = self.host.ledger.borrow_mut();
        ledger.contest.breaking -= attempt;
        ledger.contest.broken += attempt;
        ledger.progress_at = self.host.runtime.now();
        match reserved {
            Ok(reserved) if reserved.is_held() => ledger.contest.begin(self.host.index),
            Ok(_) => return false,
            Err(error) if error.is_reservation_conflict() => {
                ledger.tally.reached.count(Way::CopyRefused);
                return false;
            }
            Err(error) if aftermath(&error).is_some() => return false,
            Err(error) => {
                drop(ledger);
                self.violate(&format!("it cannot be reserved: {error}"));
                return false;
            }
        }
        true
    }

    async fn copy(&mut self, lun: &Lun) {
        let stamps = self.draw_stamps(lun.unit().capacity.blocks);
        let runtime = self.host.runtime.clone();
        let source = StampedDisk::new(&stamps, BLOCK_BYTES as usize, runtime.clone(), &mut self.random);
        let source = Source::device(Identity::named("source"), Arc::new(source));
        let destination = Destination::device(Identity::named("destination"), Arc::new(lun.clone()));
        let (options, clock) = (self.draw_options(), Arc::new(CopyClock(runtime.clone())));
        let interrupt = self.random.one_in(8).then(|| random_time(&mut self.random, INTERRUPT_MAX));
        let job = Job::prepare(source, destination, options, clock, Arc::<Progress>::default()).await;
        let outcome = run(job, &runtime, interrupt).await;
        self.host.trace(|| format!("contest: copy {}: {outcome:?}", self.copies));
        match outcome {
            Ok(_) => self.succeeded(lun, &stamps).await,
            Err(failure) => self.failed(&failure.error),
        }
        let mut ledger = self.host.ledger.borrow_mut();
        ledger.contest.end(self.host.index);
        ledger.progress_at = runtime.now();
    }

    /// One stamp for each block of the unit, so that two copies that mix are noticed.
    fn draw_stamps(&mut self, blocks: u64) -> Vec<Stamp> {
        let first = FIRST_STAMP + self.copies * STAMPS_OF_A_COPY;
        self.copies += 1;
        (first..).zip(0..blocks).map(|(stamp, _)| Stamp::anywhere(self.host.index, stamp)).collect()
    }

    fn draw_options(&mut self) -> Options {
        let random = &mut self.random;
        Options {
            requests: 1 + random.index(REQUESTS_MAX),
            requests_max: Some(REQUESTS_MAX),
            request_bytes: random.between(1, REQUEST_BLOCKS_MAX) * u64::from(BLOCK_BYTES),
            verify: *random.choose(&[Verify::Full, Verify::Off, Verify::Off]),
            overwrite: true,
            ..Options::default()
        }
    }

    /// If no other copy runs until the unit is read, it holds this one alone.
    async fn succeeded(&self, lun: &Lun, stamps: &[Stamp]) {
        let (begun, is_alone) = {
            let contest = &self.host.ledger.borrow().contest;
            (contest.begun, !contest.others_run(self.host.index))
        };
        let Ok(found) = lun.read(0, stamps.len() * BLOCK_BYTES as usize).await else { return };
        if !is_alone || self.host.ledger.borrow().contest.begun != begun {
            return;
        }
        let blocks = found.chunks(BLOCK_BYTES as usize);
        for ((lba, block), stamp) in (0..).zip(blocks).zip(stamps) {
            let found = Stamp::read(block, lba);
            if found != Ok(*stamp) {
                return self.violate(&format!("a copy succeeded, but block {lba} holds {found:x?}"));
            }
        }
        self.host.ledger.borrow_mut().tally.reached.count(Way::CopiedBehindReservation);
    }

    fn failed(&self, error: &Error) {
        match error {
            // Another host may have taken the reservation away, and have written since.
            Error::Interrupted | Error::NeverDurable { .. } | Error::Mismatch { .. } => {}
            Error::Read { source, .. } | Error::Write { source, .. }
                if is_excused(source) || (is_fenced_off(source) && self.may_be_broken()) => {}
            error => self.violate(&format!("a copy failed: {error:?}")),
        }
    }

    /// Whether another host may have taken the reservation away.
    fn may_be_broken(&self) -> bool {
        let contest = &self.host.ledger.borrow().contest;
        contest.breaking > 0 || contest.broken > self.broken_before
    }

    fn violate(&self, what: &str) {
        self.host.violate(&format!("unit {}, contested: {what}", self.unit.0));
    }
}

/// Whether another host has taken the reservation away.
fn is_fenced_off(error: &BlockError) -> bool {
    cause(error).is_some_and(client::Error::is_reservation_conflict)
}
