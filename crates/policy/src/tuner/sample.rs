//! What a number of connections moves, measured over several slices.

use super::{Found, Law, Slice};
use crate::diagnosis::{Diagnosis, Limit};
use pdu::{Duration, Instant};

/// A sample has so many slices that it tells a few percent apart, but at most so many.
const SAMPLE_BYTES: u64 = 1 << 20;
const SAMPLE_SLICES_MAX: u32 = 16;

/// Slices that are this many times the sample's length apart do not belong together: others, which say nothing of the
/// number of connections, lie between them.
const SAMPLE_GAPS: u32 = 3;

/// The part of the connections that is set aside at a time, at least one of them; and the part where no queue is seen that
/// would make up for it.
const ASIDE_MAX: f64 = 0.25;
const ASIDE_UNSEEN: f64 = 0.125;

/// The same of a slow target's connections, whose windows are not needed.
const ASIDE_RELIEVED: f64 = 0.5;

/// The part of what a queue holds that the windows of connections set aside may make up.
const QUEUE_PART: f64 = 0.7;

/// Where more is lost than this, round trips are long for other reasons than queues: acknowledgements of single segments
/// are delayed. Connections beyond the first ones may be what loses so much; no others are set aside.
const MUCH_LOSS: f64 = 0.01;

/// Where more is lost than this, the connections may be too many for the path to hold a few segments of each.
const OVERLOAD: f64 = 0.05;

/// What loses this many times as large a part loses more, not by chance.
const LOSS_RISE: f64 = 1.25;

/// A path has changed when the same connections move more than this many times as much, or as little.
pub(super) const CHANGE: f64 = 1.25;

/// What a diagnosis advises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// Each connection is limited.
    More(Limit),
    /// The path is full.
    Fewer(Limit),
    /// The target is slow. Fewer connections may be easier for it.
    Relieve(Limit),
}

impl Advice {
    /// `None` if the number of connections is not what limits the session, or not yet.
    pub fn of(diagnosis: &Diagnosis) -> Option<Self> {
        let limit = diagnosis.limit;
        match limit {
            Limit::Losses | Limit::Timeouts | Limit::ReceiveWindow | Limit::SendBuffer => {
                Some(Self::More(limit))
            }
            Limit::Saturation => Some(Self::Fewer(limit)),
            Limit::Target => Some(Self::Relieve(limit)),
            Limit::Caller
            | Limit::Depth
            | Limit::CommandWindow
            | Limit::ReadyToTransfer
            | Limit::Arrival
            // The windows grow by themselves.
            | Limit::SlowStart
            | Limit::IdleRestart
            | Limit::Processor
            | Limit::CongestionWindow => None,
        }
    }

    fn is_same_kind(self, other: Self) -> bool {
        core::mem::discriminant(&self) == core::mem::discriminant(&other)
    }
}

/// Slices with the same number of connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub connections: u32,
    pub law: Law,
    /// What the slices agree on; `None` if they do not agree.
    pub advice: Option<Advice>,
    /// It is of data from the target.
    pub is_incoming: bool,
    slices: u32,
    moved_bytes: u64,
    length: Duration,
    /// The end of its first slice.
    began: Instant,
    /// The sums of what the slices show: the share of the data in flight that waits in queues, and the share sent again.
    queue: f64,
    loss: f64,
    /// The same of the segments that come out of order.
    out_of_order: f64,
}

impl Sample {
    /// The beginning of one, even if the slice says nothing of the number of connections.
    pub fn of_slice(slice: &Slice) -> Self {
        let mut sample = Self::default();
        sample.add(slice, u32::MAX);
        Self { moved_bytes: slice.moved_bytes, length: slice.length, ..sample }
    }

    pub fn found(&self) -> Found {
        Found { connections: self.connections, law: self.law, bytes_per_second: self.bytes_per_second() }
    }

    /// Takes in a slice; returns the sample once it is complete, with at least so many slices. One that says nothing of the
    /// number of connections is passed over.
    pub fn add(&mut self, slice: &Slice, slices_min: u32) -> Option<Self> {
        if !self.goes_on_with(slice) {
            let (connections, law, began) = (slice.connections, slice.law, slice.end);
            *self = Self { connections, law, began, ..Self::default() };
        }
        let diagnosis = slice.diagnosis.as_ref()?;
        let advice = Advice::of(diagnosis)?;
        let agrees = self.slices == 0 || self.advice.is_some_and(|known| known.is_same_kind(advice));
        self.advice = agrees.then_some(advice);
        self.slices += 1;
        self.moved_bytes += slice.moved_bytes;
        self.length += slice.length;
        self.is_incoming = diagnosis.is_incoming;
        self.queue += diagnosis.queue_share();
        self.loss += diagnosis.path.loss;
        self.out_of_order += diagnosis.path.out_of_order;
        self.is_enough(slices_min).then(|| core::mem::take(self))
    }

    fn goes_on_with(&self, slice: &Slice) -> bool {
        let is_near = slice.end <= self.began + (self.length + slice.length) * SAMPLE_GAPS;
        let is_of_same = (self.connections, self.law) == (slice.connections, slice.law);
        let is_incoming = slice.diagnosis.as_ref().map(|diagnosis| diagnosis.is_incoming);
        let is_same_way = self.slices == 0 || is_incoming.is_none_or(|incoming| incoming == self.is_incoming);
        is_of_same && is_near && is_same_way
    }

    /// The connections that may be set aside at a time. Those beyond `as_flows` go without regard to the queue.
    pub fn aside_at_once(&self, advice: Advice, stride: f64, as_flows: u32) -> u32 {
        let part = match advice {
            Advice::Relieve(_) => ASIDE_RELIEVED,
            Advice::Fewer(_) if self.connections > as_flows => ASIDE_MAX,
            Advice::Fewer(_) if !self.loses_much() => {
                (QUEUE_PART * self.queue / f64::from(self.slices.max(1))).min(ASIDE_MAX)
            }
            _ => ASIDE_UNSEEN,
        };
        whole(part * stride * f64::from(self.connections)).max(1)
    }

    /// All of its slices show that the path is full.
    pub fn is_full(&self) -> bool {
        matches!(self.advice, Some(Advice::Fewer(_)))
    }

    /// Its slices agree that the path or its connections limit, not the target.
    pub fn is_of_path(&self) -> bool {
        matches!(self.advice, Some(Advice::More(_) | Advice::Fewer(_)))
    }

    pub fn loses_much(&self) -> bool {
        self.loss() > MUCH_LOSS
    }

    /// So much is lost that fewer connections may lose less.
    pub fn may_overload(&self) -> bool {
        self.loss() > OVERLOAD
    }

    /// Its connections lose much more than those before, and are what loses so much.
    pub fn overloads_more_than(&self, before: &Self) -> bool {
        self.may_overload() && self.loss() > LOSS_RISE * before.loss()
    }

    /// Of data from the target, the loss is an estimate. Behind each lost segment a window comes out of order, which under
    /// CUBIC, where it is friendly to Reno, has about √(2 ÷ loss) segments (RFC 9438 §4.3).
    fn loss(&self) -> f64 {
        let slices = f64::from(self.slices.max(1));
        let of_reads = (self.out_of_order / slices).powi(2) / 2.0;
        if self.is_incoming { of_reads } else { self.loss / slices }
    }

    fn is_enough(&self, slices_min: u32) -> bool {
        let has_enough = self.slices >= slices_min && self.moved_bytes >= SAMPLE_BYTES;
        has_enough || self.slices >= SAMPLE_SLICES_MAX
    }

    pub fn bytes_per_second(&self) -> f64 {
        self.moved_bytes as f64 / self.length.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub fn ratio_to(&self, before: &Found) -> f64 {
        self.bytes_per_second() / before.bytes_per_second.max(1.0)
    }

    /// Of the same connections.
    pub fn is_like(&self, held: &Found) -> bool {
        (self.connections, self.law) == (held.connections, held.law)
    }

    pub fn shows_another_path_than(&self, held: &Found) -> bool {
        !(1.0 / CHANGE..=CHANGE).contains(&self.ratio_to(held))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn whole(connections: f64) -> u32 {
    connections as u32
}
