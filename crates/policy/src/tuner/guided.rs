//! A tuner that the diagnosis guides.

use super::decline::Decline;
use super::rest::Rest;
use super::sample::{Advice, Sample};
use super::{
    AS_FLOWS, BBR_CONNECTIONS_MAX, Decision, Experience, FIRST_CONNECTIONS, Found, LOGIN_PAUSE, Law, Reason,
    Slice, Terms, Tuner,
};
use crate::diagnosis::Limit;
use pdu::{Duration, Instant};

/// Begins with several connections, and tries another number only where the diagnosis says that it may help: more where
/// something limits each connection (losses, timeouts, windows, buffers), fewer where the path is full, or where the target
/// limits the session: some targets do better with few. Where something else limits, it changes nothing.
///
/// Each trial compares two equal samples, one right before the change and one after it, once the connections have had
/// time to adapt. More connections stay if they move at least [`GAIN_MIN`] times as much, fewer if they move at least
/// [`LOSS_MAX`] times as much. A trial that fails is repeated after a pause, which doubles each time, and at once when
/// the path changes. At 95 percent of what was moved while the path was full, nothing more is tried.
///
/// Where the path is full, its queue may be that of others too, and what a connection brings may be taken from
/// them. Connections beyond [`Terms::as_flows`] are therefore set aside whatever they bring, for as long as the
/// path stays full and those that stay take up some of what these leave. If they take up nothing, no queue makes
/// the round trip long: the path itself has grown longer, which the kernel's shortest round trip shows only after
/// some minutes. Where more than a hundredth is lost, a long round trip does not show a queue either, and the first
/// connections are kept, unless fewer flows than [`AS_FLOWS`] are asked for.
///
/// Connections are set aside a few at a time, because their congestion windows go with them: at most as many as the queue
/// on the path makes up for until the others have grown. So those that have brought nothing, too, are given up a few at a
/// time. The number is not reduced at the start, and so nothing is lost by short work.
///
/// Where more than a twentieth is lost, the connections themselves may be the cause: a thin path does not hold the few
/// segments that each of many has under way. Then fewer are tried first, and more only if fewer move less. If more bring
/// nothing and lose more, they are given up at once, and not tried again for long.
///
/// Where losses limit each connection, BBR on two connections is tried first, if it may be used: it needs a few round
/// trips, where further connections would have to log in.
///
/// The congestion control of reads is the target's.
#[derive(Clone, Debug)]
pub struct Guided {
    terms: Terms,
    /// Those that worked in the last slice.
    connections: u32,
    /// Slices to pass over until the connections have adapted.
    settling: u32,
    sample: Sample,
    trial: Option<Trial>,
    /// The most bytes per second that have been moved while the path was full.
    full: f64,
    /// The slices in a row that something other than the connections limits, while more of them are made.
    limited_elsewhere: u32,
    /// More connections than this have brought nothing.
    enough: Option<u32>,
    /// The end of the [start](START), once that has begun.
    start_ends: Option<Instant>,
    /// Until more, and fewer, are tried again.
    up: Rest,
    down: Rest,
    /// How much of what may be set aside at a time is set aside: half as much after each trial of fewer that has failed.
    stride: f64,
    /// Until BBR is tried again.
    bbr: Rest,
    /// The last sample is of data from the target.
    is_incoming: bool,
    /// What the last sample that needed no way back has shown; not those of a slow target.
    held: Option<Found>,
    /// Of such samples. Connections of other laws than BBR are tried anew in any case.
    decline: Decline,
    /// No sample is complete yet.
    is_first_sample: bool,
    /// What was found over this path before, until it is used, or this session has found something itself.
    known: Option<Experience>,
    /// What is known of it now.
    found: Experience,
}

/// More connections must move this many times as much to stay.
const GAIN_MIN: f64 = 1.05;

/// Fewer connections may move this little.
const LOSS_MAX: f64 = 0.98;

/// At the start, what is called for logs in at once, and the number is not reduced.
const START: Duration = Duration::from_secs(10);

/// Slices until connections have adapted to a change.
const SETTLING_SLICES: u32 = 2;

/// The same at the beginning: logins, of which the first slice consists in part.
const FIRST_SETTLING_SLICES: u32 = 1;

/// The slices of a sample, at least; and of the first one, which ends early, because what it leads to may help much.
const SAMPLE_SLICES: u32 = 4;
const FIRST_SAMPLE_SLICES: u32 = 2;

/// What moves this part of what a full path has moved fills it, too; and what moves this many times as much, without
/// filling it, shows that it was not full.
const FULL_AGAIN: f64 = 0.95;
const NEVER_FULL: f64 = 1.1;

/// Over a full path, those that stay take up at least this part of what those set aside leave.
const TAKEN_UP_MIN: f64 = 0.2;

/// After so many slices that something else limits, no more connections are made.
const SLICES_ELSEWHERE_MAX: u32 = 2;

/// More connections are tried in this proportion.
const GROWTH: u32 = 2;

/// The fewest connections. With two, a session that recovers connections survives the loss of one without a pause.
const CONNECTIONS_MIN: u32 = 2;

/// A trial that takes longer from its last connection until it has been measured is judged only where the verdict is
/// plain: too much may have changed. Those that it has set aside have not been logged out by then.
const TRIAL_MAX: Duration = Duration::from_secs(45);

/// Another number of connections, on probation.
#[derive(Clone, Copy, Debug)]
struct Trial {
    before: Sample,
    connections: u32,
    law: Law,
    began: Instant,
}

impl Guided {
    /// A tuner that begins with the experience of its terms.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self {
            terms: Terms {
                connections_max: terms.connections_max.max(1),
                as_flows: terms.as_flows.max(1),
                ..terms
            },
            connections: 0,
            settling: FIRST_SETTLING_SLICES,
            sample: Sample::default(),
            trial: None,
            full: 0.0,
            limited_elsewhere: 0,
            enough: None,
            start_ends: None,
            up: Rest::NONE,
            down: Rest::NONE,
            stride: 1.0,
            bbr: Rest::NONE,
            is_incoming: false,
            held: None,
            decline: Decline::default(),
            is_first_sample: true,
            known: Some(terms.experience),
            found: terms.experience,
        }
    }
}

impl Tuner for Guided {
    fn connections_at_first(&self) -> u32 {
        // Whoever asks for few flows does not get the many that were found for somebody else.
        let known = if self.terms.as_flows < AS_FLOWS { 0 } else { self.terms.experience.connections_max() };
        self.first().max(known).min(self.terms.connections_max)
    }

    fn decide(&mut self, slice: &Slice) -> Option<Decision> {
        self.start_ends.get_or_insert(slice.end + START);
        if self.connections != slice.connections {
            self.connections = slice.connections;
            // Those of a trial that have to log in come one after the other.
            self.trial.iter_mut().for_each(|trial| trial.began = slice.end);
        }
        let decision = self.give_up(slice).or_else(|| self.as_before(slice));
        let decision = decision.or_else(|| self.grow_no_more(slice));
        let decision = decision.or_else(|| self.after_sample(slice));
        let is_change = |decision: &Decision| is_change(decision, slice.connections, slice.law);
        if decision.as_ref().is_some_and(is_change) {
            self.settling = SETTLING_SLICES;
        }
        decision
    }

    fn login_pause(&self, now: Instant) -> Duration {
        if self.is_start(now) { Duration::ZERO } else { LOGIN_PAUSE }
    }

    fn experience(&self) -> Option<Experience> {
        Some(self.found)
    }
}

impl Guided {
    fn is_start(&self, now: Instant) -> bool {
        self.start_ends.is_none_or(|end| now < end)
    }

    /// The first connections, before anything is known.
    fn first(&self) -> u32 {
        if self.terms.as_flows < AS_FLOWS { self.terms.as_flows } else { FIRST_CONNECTIONS }
    }

    /// Ends a trial of which no sample has said anything for long.
    fn give_up(&mut self, slice: &Slice) -> Option<Decision> {
        let trial = self.trial.take_if(|trial| slice.end > trial.began + TRIAL_MAX * 2)?;
        self.rest_before(&trial).postpone(slice.end);
        let known = (trial.before.connections, trial.before.law);
        Some(decision(slice.end, &Sample::of_slice(slice), known, Reason::TooLate))
    }

    /// The pause before another trial like this one.
    fn rest_before(&mut self, trial: &Trial) -> &mut Rest {
        if trial.law != trial.before.law {
            &mut self.bbr
        } else if trial.connections > trial.before.connections {
            &mut self.up
        } else {
            &mut self.down
        }
    }

    /// Ends a trial of more connections if something else has become the limit.
    fn grow_no_more(&mut self, slice: &Slice) -> Option<Decision> {
        let Some(limit) = self.trial.and_then(|trial| limit_elsewhere(&trial, slice)) else {
            self.limited_elsewhere = 0;
            return None;
        };
        self.limited_elsewhere += 1;
        (self.limited_elsewhere >= SLICES_ELSEWHERE_MAX).then(|| {
            (self.trial, self.limited_elsewhere) = (None, 0);
            let enough = (slice.connections, slice.law);
            decision(slice.end, &Sample::of_slice(slice), enough, Reason::LimitedElsewhere(limit))
        })
    }

    /// What follows from a sample that this slice completes.
    fn after_sample(&mut self, slice: &Slice) -> Option<Decision> {
        if self.settling > 0 {
            self.settling -= 1;
            return None;
        }
        let slices = if self.is_first_sample { FIRST_SAMPLE_SLICES } else { SAMPLE_SLICES };
        let sample = self.sample.add(slice, slices)?;
        (self.is_first_sample, self.known) = (false, None);
        let trial = self.trial.take();
        let judgement = trial.and_then(|trial| self.judge(&trial, &sample, slice.end));
        let is_change = |decision: &Decision| is_change(decision, sample.connections, sample.law);
        let is_way_back = judgement.as_ref().is_some_and(is_change);
        self.learn(trial, &sample, is_way_back);
        if is_way_back {
            return judgement;
        }
        // Another trial says by itself that what was tried stays.
        self.try_another(&sample, slice).or(judgement)
    }

    /// BBR, if it was better over the same path before and losses limit this time, too. What was found before counts as
    /// tried: where it moves another amount now, the search begins again.
    fn as_before(&mut self, slice: &Slice) -> Option<Decision> {
        let diagnosis = slice.diagnosis.as_ref()?;
        let known = self.known?.of(diagnosis.is_incoming).filter(|known| known.law == Law::Bbr)?;
        let first = Sample::of_slice(slice);
        let (connections, limit) = self.bbr_instead(Advice::of(diagnosis)?, &first, slice)?;
        (self.known, self.held) = (None, Some(Found { connections, ..known }));
        Some(decision(slice.end, &first, (connections, Law::Bbr), Reason::BbrKnown(limit)))
    }

    /// What the next session is to begin with: not with connections that brought nothing.
    fn learn(&mut self, trial: Option<Trial>, sample: &Sample, is_way_back: bool) {
        let better = match trial {
            Some(Trial { before, connections, .. })
                if is_way_back || self.enough.is_some() && connections > before.connections =>
            {
                before
            }
            _ if self.enough.is_some() => return,
            _ => *sample,
        };
        if better.is_of_path() {
            self.found.keep(better.is_incoming, better.found());
        }
    }

    /// Whether what was tried stays; `None` if that cannot be said.
    fn judge(&mut self, trial: &Trial, sample: &Sample, now: Instant) -> Option<Decision> {
        let is_late = now > trial.began + TRIAL_MAX;
        let ratio = sample.ratio_to(&trial.before.found());
        let before = trial.before.connections;
        if sample.is_incoming != trial.before.is_incoming {
            // What is read says nothing of what was written.
            return Some(decision(now, sample, (before, trial.before.law), Reason::TooLate));
        }
        if trial.law != trial.before.law {
            return Some(self.judge_bbr(ratio, trial, sample, is_late, now));
        }
        let is_of_more = trial.connections > before;
        if is_of_more && sample.connections <= before {
            self.up.lengthen(now);
            return Some(decision(now, sample, (before, sample.law), Reason::NoneCame));
        }
        let is_of_trial = match is_of_more {
            // Some may not have come.
            true => sample.connections <= trial.connections,
            false => sample.connections == trial.connections,
        };
        if !is_of_trial || sample.law != trial.law {
            return None;
        }
        let is_full_of_others = sample.is_full() && before > self.terms.as_flows;
        let is_plain = if is_of_more { ratio >= GAIN_MIN } else { is_full_of_others };
        if is_late && !is_plain {
            self.rest_before(trial).postpone(now);
            return Some(decision(now, sample, (before, sample.law), Reason::TooLate));
        }
        let (connections, reason) = if sample.connections > before {
            self.judge_more(ratio, trial, sample, now)
        } else {
            self.judge_fewer(ratio, trial, sample, now)
        };
        Some(decision(now, sample, (connections, sample.law), reason))
    }

    /// Whether more connections stay.
    fn judge_more(&mut self, ratio: f64, trial: &Trial, sample: &Sample, now: Instant) -> (u32, Reason) {
        let before = trial.before.connections;
        if ratio >= GAIN_MIN {
            (self.up, self.enough) = (Rest::NONE, None);
            (sample.connections, Reason::Better(ratio))
        } else if sample.overloads_more_than(&trial.before) {
            self.up = Rest::longest(now);
            (before, Reason::Overload(ratio))
        } else {
            self.enough = Some(before);
            (sample.connections, Reason::NotBetter(ratio))
        }
    }

    /// Whether fewer do.
    fn judge_fewer(&mut self, ratio: f64, trial: &Trial, sample: &Sample, now: Instant) -> (u32, Reason) {
        let before = trial.before.connections;
        let is_polite_enough = sample.connections >= self.terms.as_flows;
        if ratio >= LOSS_MAX {
            self.down = Rest::NONE;
            if trial.before.may_overload() {
                // The losses were not the path's.
                self.up.lengthen(now);
            }
            (sample.connections, Reason::AsGood(ratio))
        } else if sample.is_full() && is_polite_enough && is_taken_up(ratio, sample.connections, before) {
            self.down = Rest::NONE;
            (sample.connections, Reason::StillFull(ratio))
        } else {
            self.down.lengthen(now);
            self.stride /= 2.0;
            self.end_retreat(now);
            (before, Reason::Worse(ratio))
        }
    }

    /// Whether BBR stays. It does not if that cannot be said.
    fn judge_bbr(
        &mut self,
        ratio: f64,
        trial: &Trial,
        sample: &Sample,
        is_late: bool,
        now: Instant,
    ) -> Decision {
        let before = &trial.before;
        if ratio >= GAIN_MIN && sample.law == trial.law && !is_late {
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
        if let Some(held) = self.seen_on_another_path(sample) {
            self.begin_again();
            if sample.law == Law::Bbr {
                let again = (self.connections_at_first().min(slice.connections_max), Law::Configured);
                return Some(decision(slice.end, sample, again, Reason::PathChanged(sample.ratio_to(&held))));
            }
        }
        if sample.is_full() {
            self.full = self.full.max(sample.bytes_per_second());
        } else if sample.bytes_per_second() > NEVER_FULL * self.full {
            self.full = 0.0;
        }
        let (connections, law, reason) = match self.bbr_instead(advice, sample, slice) {
            Some((connections, limit)) => (connections, Law::Bbr, Reason::BbrMayDo(limit)),
            None if sample.law == Law::Bbr => return None,
            None => {
                let (connections, reason) = self.other_number(advice, sample, slice)?;
                (connections, sample.law, reason)
            }
        };
        self.trial = Some(Trial { before: *sample, connections, law, began: slice.end });
        Some(decision(slice.end, sample, (connections, law), reason))
    }

    /// What was moved before, if that is so much more or less that the path must have changed. What a slow target does
    /// says nothing of the path, and what is written nothing of what is read.
    fn seen_on_another_path(&mut self, sample: &Sample) -> Option<Found> {
        if core::mem::replace(&mut self.is_incoming, sample.is_incoming) != sample.is_incoming {
            (self.held, self.decline) = (None, Decline::default());
            (self.full, self.enough) = (0.0, None);
        }
        if !sample.is_of_path() {
            return None;
        }
        let last = self.held.replace(sample.found());
        let sudden = last.filter(|last| sample.is_like(last) && sample.shows_another_path_than(last));
        let slow = self.decline.seen_in(sample).filter(|_| sample.law == Law::Bbr);
        sudden.or(slow)
    }

    /// Whether the path was full when it carried as much.
    fn fills(&self, sample: &Sample) -> bool {
        self.full > 0.0 && sample.bytes_per_second() >= FULL_AGAIN * self.full
    }

    /// The connections under BBR, where losses limit each of many, and what limits these.
    fn bbr_instead(&self, advice: Advice, sample: &Sample, slice: &Slice) -> Option<(u32, Limit)> {
        let Advice::More(limit @ (Limit::Losses | Limit::Timeouts)) = advice else { return None };
        let may_try = slice.may_use_bbr
            && !sample.is_incoming
            && !self.fills(sample)
            && sample.law == Law::Configured
            && self.bbr.is_over(slice.end);
        let connections = sample.connections.min(BBR_CONNECTIONS_MAX).min(self.terms.as_flows);
        may_try.then_some((connections, limit))
    }

    /// What was learned of another path is worth nothing.
    fn begin_again(&mut self) {
        (self.up, self.down, self.bbr) = (Rest::NONE, Rest::NONE, Rest::NONE);
        (self.enough, self.stride, self.full) = (None, 1.0, 0.0);
        self.decline = Decline::default();
    }

    /// Those that brought nothing have been given up, but for some that turned out to be needed.
    fn end_retreat(&mut self, now: Instant) {
        if self.enough.take().is_some() {
            self.up.lengthen(now);
        }
    }

    fn other_number(&mut self, advice: Advice, sample: &Sample, slice: &Slice) -> Option<(u32, Reason)> {
        let (connections, as_flows) = (sample.connections, self.terms.as_flows);
        if self.enough.is_some_and(|enough| enough >= connections) {
            self.end_retreat(slice.end);
        }
        let more = (connections * GROWTH).max(self.first());
        let more = more.min(slice.connections_max).min(self.terms.connections_max);
        let may_grow = self.enough.is_none() && self.up.is_over(slice.end) && !self.fills(sample);
        let more = Some(more).filter(|more| *more > connections && may_grow);
        let may_overload = sample.may_overload() && self.enough.is_none();
        let few = if connections > as_flows { as_flows } else { CONNECTIONS_MIN.min(as_flows) };
        let least = match advice {
            Advice::More(_) if may_overload => few,
            Advice::More(_) => self.enough.unwrap_or(connections),
            Advice::Fewer(_) if sample.loses_much() => self.first().min(connections),
            Advice::Fewer(_) | Advice::Relieve(_) => few,
        };
        let fewer =
            connections.saturating_sub(sample.aside_at_once(advice, self.stride, as_flows)).max(least);
        let fewer = Some(fewer).filter(|fewer| *fewer < connections);
        // Only when fewer have moved less are the losses the path's.
        let more = more.filter(|_| !may_overload || fewer.is_none() || self.down.has_failed);
        let fewer = fewer.filter(|_| !self.is_start(slice.end) && self.down.is_over(slice.end));
        let of_more = |limit| more.map(|more| (more, Reason::EachIsLimited(limit)));
        let of_fewer = |limit| fewer.map(|fewer| (fewer, Reason::FewerMayDo(limit)));
        match advice {
            Advice::Fewer(limit) | Advice::Relieve(limit) => of_fewer(limit),
            Advice::More(limit) => of_more(limit).or(of_fewer(limit)),
        }
    }
}

/// What limits instead of the connections, more of which are on trial: while they are being made; or when they are there,
/// move more, and no sample would show it, because slices that something else limits are passed over.
fn limit_elsewhere(trial: &Trial, slice: &Slice) -> Option<Limit> {
    let diagnosis = slice.diagnosis.as_ref()?;
    let before = &trial.before;
    let are_being_made = (before.connections..trial.connections).contains(&slice.connections);
    let are_there = trial.connections > before.connections && slice.connections == trial.connections;
    let move_more = Sample::of_slice(slice).ratio_to(&before.found()) >= GAIN_MIN;
    let is_end = are_being_made || are_there && move_more && Advice::of(diagnosis).is_none();
    Some(diagnosis.limit).filter(|limit| is_end && limit.beyond_connections().is_some())
}

/// Whether connections that stay have taken up some of what those set aside have left.
fn is_taken_up(ratio: f64, connections: u32, before: u32) -> bool {
    let left = f64::from(connections) / f64::from(before);
    ratio >= left + TAKEN_UP_MIN * (1.0 - left)
}

/// Whether other connections are to work than these, or with another congestion control.
fn is_change(decision: &Decision, connections: u32, law: Law) -> bool {
    (decision.connections, decision.law) != (connections, law)
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
