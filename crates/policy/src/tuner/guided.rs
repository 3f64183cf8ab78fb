//! A tuner that the diagnosis guides.

use super::{BBR_CONNECTIONS_MAX, Decision, FIRST_CONNECTIONS, Law, Reason, Slice, Terms, Tuner};
use crate::diagnosis::{Diagnosis, Limit, PathEvidence};
use pdu::{Duration, Instant};

/// Begins with several connections, and tries another number only where the diagnosis says that it may help: more where
/// something limits each connection (losses, timeouts, windows, buffers), fewer where the path is full. Where something
/// else limits the session, such as the target's disk, it changes nothing.
///
/// Each trial compares two equal samples, one right before the change and one after it, once the connections have had
/// time to adapt. More connections stay if they move at least [`GAIN_MIN`] times as much, fewer if they move at least
/// [`LOSS_MAX`] times as much. A trial that fails is repeated after a pause, which doubles each time, and at once when
/// the path changes.
///
/// Connections are set aside a few at a time, because their congestion windows go with them: at most as many as the queue
/// on the path makes up for until the others have grown. So those that have brought nothing, too, are given up a few at a
/// time. None is set aside in the first seconds, and so nothing is lost by short work.
///
/// Where losses limit each connection, BBR on two connections is tried first, if it may be used: it needs a few round
/// trips, where further connections would have to log in.
///
/// Of reads, an initiator does not see whether the path is full. There both are tried: first more, then fewer.
#[derive(Clone, Debug)]
pub struct Guided {
    terms: Terms,
    /// Slices to pass over until the connections have adapted.
    settling: u32,
    sample: Sample,
    trial: Option<Trial>,
    /// More connections than this have brought nothing.
    enough: Option<u32>,
    /// Until more, and fewer, are tried again.
    up: Rest,
    down: Rest,
    /// How much of what may be set aside at a time is set aside: half as much after each trial of fewer that has failed.
    stride: f64,
    /// Until BBR is tried again.
    bbr: Rest,
    /// The last sample that was not a trial.
    held: Option<Sample>,
}

/// More connections must move this many times as much to stay.
const GAIN_MIN: f64 = 1.05;

/// Fewer connections may move this little.
const LOSS_MAX: f64 = 0.98;

/// Slices until connections have adapted to a change.
const SETTLING_SLICES: u32 = 2;

/// Slices of a sample.
const SAMPLE_SLICES: u32 = 4;

/// More connections are tried in this proportion.
const GROWTH: u32 = 2;

/// The part of the connections that is set aside at a time, at least one of them; and the part where no queue is seen that
/// would make up for it.
const ASIDE_MAX: f64 = 0.25;
const ASIDE_UNSEEN: f64 = 0.125;

/// The part of what a queue holds that the windows of connections set aside may make up.
const QUEUE_PART: f64 = 0.7;

/// Where more is lost than this, round trips are long for other reasons than queues: acknowledgements of single segments
/// are delayed. Connections beyond the first ones may be what loses so much; no others are set aside.
const LOSS_HEAVY: f64 = 0.01;

/// The fewest connections. With two, a session survives the loss of one without a pause.
const CONNECTIONS_MIN: u32 = 2;

/// The pause before any is set aside, and after the first trial in a row that has failed; and the longest one.
const REST_MIN: Duration = Duration::from_secs(10);
const REST_MAX: Duration = Duration::from_secs(300);

/// A path has changed when the same connections move more than this many times as much, or as little.
const CHANGE: f64 = 1.25;

/// A trial is not judged if it takes longer until its connections are there and have been measured: too much may have changed.
const TRIAL_MAX: Duration = Duration::from_secs(90);

/// What a diagnosis advises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// Each connection is limited.
    More(Limit),
    /// The path is full.
    Fewer(Limit),
    /// Nobody knows.
    Either(Limit),
}

impl Advice {
    /// `None` if the number of connections is not what limits the session, or not yet.
    fn of(diagnosis: &Diagnosis) -> Option<Self> {
        let limit = diagnosis.limit;
        match limit {
            Limit::Losses | Limit::Timeouts | Limit::ReceiveWindow | Limit::SendBuffer => {
                Some(Self::More(limit))
            }
            Limit::Saturation => Some(Self::Fewer(limit)),
            Limit::Arrival => Some(Self::Either(limit)),
            Limit::Caller
            | Limit::Depth
            | Limit::CommandWindow
            | Limit::ReadyToTransfer
            | Limit::Target
            // The windows grow by themselves.
            | Limit::SlowStart
            | Limit::CongestionWindow => None,
        }
    }

    fn is_same_kind(self, other: Self) -> bool {
        core::mem::discriminant(&self) == core::mem::discriminant(&other)
    }
}

/// Slices with the same number of connections.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    connections: u32,
    law: Law,
    slices: u32,
    moved_bytes: u64,
    length: Duration,
    /// What the slices agree on; `None` if they do not agree.
    advice: Option<Advice>,
    /// The sums of what the slices show: the share of the data in flight that waits in queues, and the share sent again.
    queue: f64,
    loss: f64,
}

impl Sample {
    fn add(&mut self, slice: &Slice, path: &PathEvidence, advice: Advice) {
        let agrees = self.slices == 0 || self.advice.is_some_and(|known| known.is_same_kind(advice));
        self.advice = agrees.then_some(advice);
        (self.connections, self.law) = (slice.connections, slice.law);
        self.slices += 1;
        self.moved_bytes += slice.moved_bytes;
        self.length += slice.length;
        self.queue += queue_share(path);
        self.loss += path.loss;
    }

    /// The connections that may be set aside at a time.
    fn aside_at_once(&self, advice: Advice, stride: f64) -> u32 {
        let part = match advice {
            Advice::Fewer(_) if !self.loses_much() => {
                (QUEUE_PART * self.queue / f64::from(self.slices.max(1))).min(ASIDE_MAX)
            }
            _ => ASIDE_UNSEEN,
        };
        whole(part * stride * f64::from(self.connections)).max(1)
    }

    fn loses_much(&self) -> bool {
        self.loss > LOSS_HEAVY * f64::from(self.slices)
    }

    fn bytes_per_second(&self) -> f64 {
        self.moved_bytes as f64 / self.length.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn ratio_to(&self, before: &Self) -> f64 {
        self.bytes_per_second() / before.bytes_per_second().max(f64::MIN_POSITIVE)
    }

    fn shows_another_path_than(&self, held: &Self) -> bool {
        let ratio = self.ratio_to(held);
        (self.connections, self.law) == (held.connections, held.law)
            && !(1.0 / CHANGE..=CHANGE).contains(&ratio)
    }
}

/// Another number of connections, on probation.
#[derive(Clone, Copy, Debug)]
struct Trial {
    before: Sample,
    connections: u32,
    law: Law,
    began: Instant,
}

/// A pause between trials in one direction.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// Its end; `None` before its beginning is known.
    until: Option<Instant>,
    pause: Duration,
}

impl Rest {
    const NONE: Self = Self { until: Some(Instant::ZERO), pause: REST_MIN };

    /// A pause that begins with the work.
    const FIRST: Self = Self { until: None, pause: REST_MIN };

    fn lengthen(&mut self, now: Instant) {
        *self = Self { until: Some(now + self.pause), pause: (self.pause * 2).min(REST_MAX) };
    }

    fn is_over(self, now: Instant) -> bool {
        self.until.is_some_and(|until| now >= until)
    }
}

impl Guided {
    /// A tuner without any experience.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self {
            terms: Terms { connections_max: terms.connections_max.max(1), ..terms },
            settling: SETTLING_SLICES,
            sample: Sample::default(),
            trial: None,
            enough: None,
            up: Rest::NONE,
            down: Rest::FIRST,
            stride: 1.0,
            bbr: Rest::NONE,
            held: None,
        }
    }
}

impl Tuner for Guided {
    fn connections_at_first(&self) -> u32 {
        FIRST_CONNECTIONS.min(self.terms.connections_max)
    }

    fn decide(&mut self, slice: &Slice) -> Option<Decision> {
        self.down.until.get_or_insert(slice.end + REST_MIN);
        if self.settling > 0 {
            self.settling -= 1;
            return None;
        }
        if (self.sample.connections, self.sample.law) != (slice.connections, slice.law) {
            self.sample = Sample::default();
        }
        let diagnosis = slice.diagnosis.as_ref()?;
        self.sample.add(slice, &diagnosis.path, Advice::of(diagnosis)?);
        if self.sample.slices < SAMPLE_SLICES {
            return None;
        }
        let sample = core::mem::take(&mut self.sample);
        let judgement = self.trial.take().and_then(|trial| self.judge(&trial, &sample, slice.end));
        let is_change =
            |decision: &Decision| (decision.connections, decision.law) != (sample.connections, sample.law);
        if judgement.as_ref().is_some_and(is_change) {
            self.settling = SETTLING_SLICES;
            return judgement;
        }
        // Another trial says by itself that what was tried stays.
        self.try_another(&sample, slice).or(judgement)
    }
}

impl Guided {
    /// Whether what was tried stays; `None` if that cannot be said.
    fn judge(&mut self, trial: &Trial, sample: &Sample, now: Instant) -> Option<Decision> {
        let is_of_trial = (sample.connections, sample.law) == (trial.connections, trial.law);
        if !is_of_trial || now > trial.began + TRIAL_MAX {
            return None;
        }
        let ratio = sample.ratio_to(&trial.before);
        let before = trial.before.connections;
        if trial.law != trial.before.law {
            return Some(self.judge_bbr(ratio, &trial.before, sample, now));
        }
        let (connections, reason) = match (sample.connections > before, ratio) {
            (true, ratio) if ratio >= GAIN_MIN => {
                (self.up, self.enough) = (Rest::NONE, None);
                (sample.connections, Reason::Better(ratio))
            }
            (true, ratio) => {
                self.enough = Some(before);
                (sample.connections, Reason::NotBetter(ratio))
            }
            (false, ratio) if ratio >= LOSS_MAX => {
                self.down = Rest::NONE;
                (sample.connections, Reason::AsGood(ratio))
            }
            (false, ratio) => {
                self.down.lengthen(now);
                self.stride /= 2.0;
                self.end_retreat(now);
                (before, Reason::Worse(ratio))
            }
        };
        Some(decision(now, sample, (connections, sample.law), reason))
    }

    /// Whether BBR stays.
    fn judge_bbr(&mut self, ratio: f64, before: &Sample, sample: &Sample, now: Instant) -> Decision {
        if ratio >= GAIN_MIN {
            self.bbr = Rest::NONE;
            return decision(now, sample, (sample.connections, sample.law), Reason::BbrBetter(ratio));
        }
        self.bbr.lengthen(now);
        if ratio > 1.0 / GAIN_MIN {
            // Two ways that move the same fill the path.
            self.up.lengthen(now);
        }
        decision(now, sample, (before.connections, before.law), Reason::BbrNotBetter(ratio))
    }

    /// Another number of connections to try, if the slices of a sample agree that one may be better.
    fn try_another(&mut self, sample: &Sample, slice: &Slice) -> Option<Decision> {
        let advice = sample.advice?;
        if let Some(held) = self.held.replace(*sample).filter(|held| sample.shows_another_path_than(held)) {
            self.begin_again();
            if sample.law == Law::Bbr {
                let again = (self.connections_at_first(), Law::Configured);
                self.settling = SETTLING_SLICES;
                return Some(decision(slice.end, sample, again, Reason::PathChanged(sample.ratio_to(&held))));
            }
        }
        let (connections, law, reason) = match self.bbr_instead(advice, sample, slice.end) {
            Some(bbr) => bbr,
            None if sample.law == Law::Bbr => return None,
            None => {
                let (connections, reason) = self.other_number(advice, sample, slice)?;
                (connections, sample.law, reason)
            }
        };
        self.trial = Some(Trial { before: *sample, connections, law, began: slice.end });
        self.settling = SETTLING_SLICES;
        Some(decision(slice.end, sample, (connections, law), reason))
    }

    /// BBR on few connections, where losses limit each of many.
    fn bbr_instead(&self, advice: Advice, sample: &Sample, now: Instant) -> Option<(u32, Law, Reason)> {
        let Advice::More(limit @ (Limit::Losses | Limit::Timeouts)) = advice else { return None };
        let may_try = self.terms.may_use_bbr && sample.law == Law::Configured && self.bbr.is_over(now);
        let connections = sample.connections.min(BBR_CONNECTIONS_MAX);
        may_try.then_some((connections, Law::Bbr, Reason::BbrMayDo(limit)))
    }

    /// What was learned of another path is worth nothing.
    fn begin_again(&mut self) {
        (self.up, self.down, self.bbr) = (Rest::NONE, Rest::NONE, Rest::NONE);
        (self.enough, self.stride) = (None, 1.0);
    }

    /// Those that brought nothing have been given up, but for some that turned out to be needed.
    fn end_retreat(&mut self, now: Instant) {
        if self.enough.take().is_some() {
            self.up.lengthen(now);
        }
    }

    fn other_number(&mut self, advice: Advice, sample: &Sample, slice: &Slice) -> Option<(u32, Reason)> {
        let connections = sample.connections;
        if self.enough.is_some_and(|enough| enough >= connections) {
            self.end_retreat(slice.end);
        }
        let more = (connections * GROWTH).max(FIRST_CONNECTIONS);
        let more = more.min(slice.connections_max).min(self.terms.connections_max);
        let may_grow = self.enough.is_none() && self.up.is_over(slice.end);
        let more = Some(more).filter(|more| *more > connections && may_grow);
        let least = match advice {
            Advice::More(_) => self.enough.unwrap_or(connections),
            Advice::Fewer(_) if sample.loses_much() => FIRST_CONNECTIONS.min(connections),
            Advice::Fewer(_) | Advice::Either(_) => CONNECTIONS_MIN,
        };
        let fewer = connections.saturating_sub(sample.aside_at_once(advice, self.stride)).max(least);
        let fewer = Some(fewer).filter(|fewer| *fewer < connections && self.down.is_over(slice.end));
        let of_more = |limit| more.map(|more| (more, Reason::EachIsLimited(limit)));
        let of_fewer = |limit| fewer.map(|fewer| (fewer, Reason::FewerMayDo(limit)));
        match advice {
            Advice::Fewer(limit) => of_fewer(limit),
            Advice::More(limit) | Advice::Either(limit) => of_more(limit).or(of_fewer(limit)),
        }
    }
}

/// The share of the data in flight that waits in queues.
fn queue_share(path: &PathEvidence) -> f64 {
    let (rtt_s, rtt_min_s) = (path.rtt.as_secs_f64(), path.rtt_min.as_secs_f64());
    if rtt_s > rtt_min_s { 1.0 - rtt_min_s / rtt_s } else { 0.0 }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn whole(connections: f64) -> u32 {
    connections as u32
}

fn decision(at: Instant, sample: &Sample, (connections, law): (u32, Law), reason: Reason) -> Decision {
    Decision {
        at,
        connections_before: sample.connections,
        connections,
        law,
        bytes_per_second: sample.bytes_per_second(),
        reason,
    }
}
