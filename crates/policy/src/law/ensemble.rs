//! Fair-TCP (paper 000) and its relatives: the connections of a group have one congestion window, and shares of it.

use super::{AggregateLaw, Flow, GroupTerms, Law, Mode, PARTS, Sharing, State, WINDOW_MIN, slow_start};
use pdu::{Duration, Instant};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The window of a group.
#[derive(Clone, Debug)]
pub struct Aggregate {
    terms: GroupTerms,
    members: u32,
    /// In segments.
    window: f64,
    ssthresh: f64,
    /// What members hold that repair losses, by their numbers.
    frozen: BTreeMap<u32, f64>,
    /// Members that send are counted anew in each epoch, which takes a round trip.
    epoch: u32,
    epoch_began: Instant,
    /// In this epoch and in the one before, without those that repair losses.
    seen: u32,
    seen_before: u32,
    last_active: Instant,
    last_cut: Option<Instant>,
    last_timeout: Option<Instant>,
    /// As so many flows: a round trip, and how many of them have lost in it.
    round: Option<(Instant, f64)>,
    reductions: u32,
    srtt_s: f64,
    cubic: Cubic,
    /// Before the last reduction.
    before: (f64, Cubic),
    joined: u32,
}

/// The growth of CUBIC since the window last began to grow.
#[derive(Clone, Copy, Debug, Default)]
struct Cubic {
    began: Option<Instant>,
    window_max: f64,
    window_prior: f64,
    window_reno: f64,
    k_s: f64,
    /// As so many flows: those that send when the window begins to grow.
    flows: f64,
}

const EPOCH_MIN: Duration = Duration::from_millis(10);
const TIMEOUT_MIN: Duration = Duration::from_millis(200);
const FIRST_WINDOW: f64 = 10.0;
const RENO_REMAINS: f64 = 0.5;
const CUBIC_REMAINS: f64 = 0.7;

impl Aggregate {
    /// A group without members.
    #[must_use]
    pub fn new(terms: GroupTerms, now: Instant) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self::empty(terms, now)))
    }

    fn empty(terms: GroupTerms, now: Instant) -> Self {
        Self {
            terms,
            members: 0,
            window: 0.0,
            ssthresh: f64::INFINITY,
            frozen: BTreeMap::new(),
            epoch: 1,
            epoch_began: now,
            seen: 0,
            seen_before: 0,
            last_active: now,
            last_cut: None,
            last_timeout: None,
            round: None,
            reductions: 0,
            srtt_s: 0.0,
            cubic: Cubic::default(),
            before: (f64::INFINITY, Cubic::default()),
            joined: 0,
        }
    }

    /// All members' window together, in segments.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.window
    }

    /// The part of it that members hold while they repair losses.
    fn frozen(&self) -> f64 {
        self.frozen.values().sum()
    }

    fn epoch_length(&self) -> Duration {
        EPOCH_MIN.max(Duration::from_secs_f64(self.srtt_s))
    }

    fn advance_epoch(&mut self, now: Instant) {
        if now.saturating_duration_since(self.epoch_began) >= self.epoch_length() {
            (self.seen_before, self.seen, self.epoch_began) = (self.seen, 0, now);
            self.epoch += 1;
        }
    }

    fn frozen_members(&self) -> u32 {
        u32::try_from(self.frozen.len()).unwrap_or(u32::MAX)
    }

    /// Members among which the window is shared out.
    fn sharers(&self) -> u32 {
        let others = self.members.saturating_sub(self.frozen_members());
        let sharers = match self.terms.sharing {
            Sharing::Equal => others,
            Sharing::ByActivity => others.min(self.seen.max(self.seen_before)),
        };
        sharers.max(1)
    }

    /// Members that send.
    fn active(&self) -> f64 {
        f64::from(self.members.min(self.sharers() + self.frozen_members()))
    }

    /// A window that is too small for shares of the smallest size grows, unless nobody is there to have one.
    fn share(&mut self) -> f64 {
        let (sharers, frozen) = (f64::from(self.sharers()), self.frozen());
        let share = ((self.window - frozen).max(0.0) / sharers).floor();
        if share < WINDOW_MIN && self.frozen_members() < self.members {
            self.window = frozen + WINDOW_MIN * sharers;
        }
        share.max(WINDOW_MIN)
    }

    fn flows(&self) -> f64 {
        match self.terms.mode {
            Mode::Single => 1.0,
            Mode::Weight(parts) => (f64::from(parts) / f64::from(PARTS)).min(self.active()),
            Mode::Fair | Mode::Conservative => self.active(),
        }
    }

    fn remains(&self) -> f64 {
        if self.terms.law == AggregateLaw::Cubic { CUBIC_REMAINS } else { RENO_REMAINS }
    }

    fn grow(&mut self, acked: f64, now: Instant) {
        if self.terms.mode == Mode::Conservative && self.is_held(now) {
            // RFC 8699 §5.3.2 changes nothing for two round trips after a reduction.
        } else if self.window < self.ssthresh {
            self.window = (self.window + acked).min(self.ssthresh);
        } else if self.terms.law == AggregateLaw::Reno {
            self.window += acked * self.flows() / self.window;
        } else {
            self.grow_as_cubic(acked, now);
        }
    }

    /// RFC 9438 §4.1 to §4.5. The curve is that of the flows with which it began.
    fn grow_as_cubic(&mut self, acked: f64, now: Instant) {
        const C: f64 = 0.4;
        let flows = self.flows();
        let began = *self.cubic.began.get_or_insert_with(|| {
            self.cubic.window_max = self.cubic.window_max.max(self.window);
            self.cubic.window_reno = self.window;
            (self.cubic.flows, self.cubic.k_s) =
                (flows, ((self.cubic.window_max - self.window) / C / flows).cbrt());
            now
        });
        let at_s = now.saturating_duration_since(began).as_secs_f64() + self.srtt_s;
        let wanted = self.cubic.window_max + C * self.cubic.flows * (at_s - self.cubic.k_s).powi(3);
        let wanted = wanted.min(1.5 * self.window);
        let is_below = self.cubic.window_reno < self.cubic.window_prior;
        let slow = if is_below { 3.0 * (1.0 - CUBIC_REMAINS) / (1.0 + CUBIC_REMAINS) } else { 1.0 };
        self.cubic.window_reno += acked * slow * flows / self.window;
        self.window += acked * (wanted - self.window).max(0.0) / self.window;
        self.window = self.window.max(self.cubic.window_reno);
    }

    /// Whether a loss belongs to the last reduction.
    fn is_held(&self, now: Instant) -> bool {
        let round_trips = match self.terms.mode {
            Mode::Single => 1.0,
            Mode::Conservative => 2.0,
            Mode::Fair | Mode::Weight(_) => 0.0,
        };
        self.last_cut.is_some_and(|last| self.is_within(round_trips, last, now))
    }

    /// Whether fewer than so many round trips have passed.
    fn is_within(&self, round_trips: f64, then: Instant, now: Instant) -> bool {
        now.saturating_duration_since(then).as_secs_f64() < round_trips * self.srtt_s
    }

    /// The segments that a loss of a member with this share cuts.
    fn cut(&mut self, share: f64, now: Instant) -> f64 {
        let lost = 1.0 - self.remains();
        let cut = match self.terms.mode {
            _ if self.is_held(now) => 0.0,
            Mode::Fair => share - (share * self.remains()).floor().max(WINDOW_MIN),
            Mode::Weight(_) => self.window * lost * self.losing_flow(now) / self.flows(),
            Mode::Single | Mode::Conservative => self.window * lost,
        };
        cut.clamp(0.0, self.window)
    }

    /// As so many flows, each loses once per round trip, however many members an event hits: one, or what is left of one.
    fn losing_flow(&mut self, now: Instant) -> f64 {
        let recent = self.round.filter(|(began, _)| self.is_within(1.0, *began, now));
        let (began, lost) = recent.unwrap_or((now, 0.0));
        let losing = (self.flows() - lost).clamp(0.0, 1.0);
        self.round = Some((began, lost + losing));
        losing
    }

    fn reduce(&mut self, cut: f64, now: Instant) {
        self.before = (self.ssthresh, self.cubic);
        // RFC 9438 §4.6 and §4.7. Of one flow's cut, half is (1 − β) / 2 of its window.
        let is_earlier = self.window < self.cubic.window_max;
        let window_max = if is_earlier { self.window - cut / 2.0 } else { self.window };
        self.cubic = Cubic { began: None, window_max, window_prior: self.window, ..self.cubic };
        self.window -= cut;
        self.ssthresh = self.window;
        self.last_cut = Some(now);
        self.reductions += 1;
    }

    /// Takes an amount out of the window. It does not grow again at once, neither to the slow start threshold, if it has been
    /// there, nor to what CUBIC had in mind.
    fn take(&mut self, segments: f64) {
        if segments <= 0.0 {
            return;
        }
        let has_been_there = self.window >= self.ssthresh;
        self.window = (self.window - segments).max(0.0);
        if has_been_there {
            self.ssthresh = self.ssthresh.min(self.window);
        }
        self.cubic.began = None;
    }

    /// As one flow, a group has a segment for each member after a timeout (RFC 3124), once per round trip. Returns what that
    /// cuts; `None` if it is too early.
    fn time_out_as_one(&mut self, is_noted: bool, now: Instant) -> Option<f64> {
        if self.last_timeout.is_some_and(|last| self.is_within(1.0, last, now)) {
            return None;
        }
        self.last_timeout = Some(now);
        if !is_noted {
            // What an undo restores; otherwise the member's loss has noted it, and nobody has reduced the window since.
            self.before = (self.ssthresh, self.cubic);
        }
        let cut = (self.window - f64::from(self.members)).max(0.0);
        self.window -= cut;
        self.cubic.began = None;
        self.reductions += 1;
        Some(cut)
    }

    /// Gives back what a loss has cut. Where the whole group was reduced, others may have made it grow again meanwhile: then
    /// it has no more than it had.
    fn give_back(&mut self, cut: f64) {
        let restored = self.window + cut;
        match self.terms.mode {
            Mode::Fair => self.window = restored,
            Mode::Weight(_) => {
                self.window = restored;
                let given_back = if cut > 0.0 { 1.0 } else { 0.0 };
                self.round = self.round.map(|(began, lost)| (began, (lost - given_back).max(0.0)));
            }
            Mode::Single | Mode::Conservative => {
                self.window = restored.min(self.cubic.window_prior.max(self.window));
            }
        }
    }

    /// All were silent for so long.
    fn rest(&mut self, mut silent: Duration) {
        let timeout = TIMEOUT_MIN + Duration::from_secs_f64(self.srtt_s);
        let least = FIRST_WINDOW * f64::from(self.members);
        if silent <= timeout {
            return;
        }
        self.cubic.began = self.cubic.began.filter(|_| self.window <= least).map(|began| began + silent);
        let mut halvings = 0;
        while silent > timeout && halvings < 8 && self.window > least {
            silent -= timeout;
            halvings += 1;
            self.window = (self.window / 2.0).max(least);
        }
    }

    fn measure(&mut self, rtt: Duration) {
        let (rtt_s, samples) = (rtt.as_secs_f64(), (self.window / 2.0).floor().max(1.0));
        let gain = if self.srtt_s == 0.0 { 1.0 } else { 1.0 / (8.0 * samples) };
        self.srtt_s += (rtt_s - self.srtt_s) * gain;
    }
}

/// A connection of a group.
#[derive(Clone, Debug)]
pub struct Member {
    aggregate: Rc<RefCell<Aggregate>>,
    /// Its name in the group.
    number: u32,
    epoch: u32,
    cut: f64,
    reductions: u32,
}

impl Member {
    /// A connection joins. The first brings its window; the others get a share.
    #[must_use]
    pub fn join(aggregate: &Rc<RefCell<Aggregate>>, flow: &Flow) -> Self {
        let mut group = aggregate.borrow_mut();
        group.joined += 1;
        let number = group.joined;
        let is_repairing = flow.state > State::Disorder;
        if group.members == 0 {
            let terms = group.terms;
            *group = Aggregate { joined: number, ..Aggregate::empty(terms, flow.now) };
        }
        if group.members == 0 || is_repairing {
            group.window += flow.window;
        }
        if group.members == 0 {
            (group.ssthresh, group.srtt_s) = (flow.ssthresh, flow.srtt.as_secs_f64());
        }
        group.members += 1;
        drop(group);
        let mut member = Self { aggregate: Rc::clone(aggregate), number, epoch: 0, cut: 0.0, reductions: 0 };
        if is_repairing {
            member.freeze(flow.window);
        }
        member.be_active(flow.now);
        member
    }

    fn be_active(&mut self, now: Instant) {
        let mut group = self.aggregate.borrow_mut();
        group.advance_epoch(now);
        group.last_active = group.last_active.max(now);
        if self.epoch != group.epoch && !group.frozen.contains_key(&self.number) {
            self.epoch = group.epoch;
            group.seen += 1;
        }
    }

    fn frozen(&self) -> Option<f64> {
        self.aggregate.borrow().frozen.get(&self.number).copied()
    }

    fn freeze(&self, segments: f64) {
        let mut group = self.aggregate.borrow_mut();
        if group.frozen.insert(self.number, segments).is_none() && self.epoch == group.epoch {
            group.seen -= 1;
        }
    }

    fn thaw(&mut self) {
        let mut group = self.aggregate.borrow_mut();
        if group.frozen.remove(&self.number).is_some() {
            // It is counted again as soon as it sends.
            self.epoch = group.epoch - 1;
        }
    }
}

impl Law for Member {
    fn ssthresh(&mut self, flow: &Flow) -> f64 {
        self.aggregate.borrow_mut().advance_epoch(flow.now);
        self.thaw();
        self.be_active(flow.now);
        let share = flow.window.floor();
        let mut group = self.aggregate.borrow_mut();
        self.cut = group.cut(share, flow.now);
        if self.cut > 0.0 {
            group.reduce(self.cut, flow.now);
        }
        self.reductions = group.reductions;
        let window = if group.terms.mode == Mode::Fair { share - self.cut } else { group.share() };
        let window = window.floor().min(share).max(WINDOW_MIN);
        drop(group);
        self.freeze(window);
        window
    }

    fn growth(&mut self, _: &Flow) -> f64 {
        1.0
    }

    fn cong_avoid(&mut self, flow: &mut Flow, acked: u32) {
        let acked = f64::from(acked);
        if let Some(frozen) = self.frozen() {
            // It begins again after a timeout.
            let before = flow.window.floor();
            let left = if before < flow.ssthresh { slow_start(flow, acked) } else { acked };
            flow.window += (left / flow.window.floor().max(1.0)).min(left);
            let grown = flow.window.floor() - before;
            self.be_active(flow.now);
            // What has grown again is not given back, should the timeout prove a mistake.
            self.cut = (self.cut - grown).max(0.0);
            self.freeze(frozen + grown);
            let mut group = self.aggregate.borrow_mut();
            group.window += grown;
            group.share();
            return;
        }
        self.be_active(flow.now);
        let mut group = self.aggregate.borrow_mut();
        group.grow(acked, flow.now);
        flow.window = group.share();
        if group.ssthresh < f64::from(i32::MAX) {
            flow.ssthresh = (group.ssthresh.floor() / group.active()).floor().max(WINDOW_MIN);
        }
    }

    fn pkts_acked(&mut self, flow: &mut Flow, rtt: Option<Duration>) {
        self.be_active(flow.now);
        let is_frozen = self.frozen().is_some();
        let mut group = self.aggregate.borrow_mut();
        rtt.into_iter().for_each(|rtt| group.measure(rtt));
        let share = group.share();
        if !is_frozen && share < flow.window.floor() {
            flow.window = share;
        }
    }

    fn set_state(&mut self, flow: &Flow, state: State) {
        self.aggregate.borrow_mut().advance_epoch(flow.now);
        let window = flow.window.floor();
        let held = self.frozen().unwrap_or(window);
        match state {
            State::Open | State::Disorder => self.thaw(),
            State::Cwr | State::Recovery => self.freeze(held),
            State::Loss => {
                let mut group = self.aggregate.borrow_mut();
                let is_noted = self.cut > 0.0 && self.reductions == group.reductions;
                if matches!(group.terms.mode, Mode::Fair | Mode::Weight(_)) {
                    let lost = (held - window).max(0.0);
                    self.cut += lost;
                    group.take(lost);
                    if lost > 0.0 {
                        group.ssthresh = group.window;
                    }
                } else if flow.state != State::Loss
                    && window < held
                    && let Some(cut) = group.time_out_as_one(is_noted, flow.now)
                {
                    self.cut = if is_noted { self.cut + cut } else { cut };
                    self.reductions = group.reductions;
                }
                drop(group);
                self.freeze(window);
            }
        }
    }

    fn tx_start(&mut self, flow: &mut Flow) {
        if self.frozen().is_some() {
            return;
        }
        let mut group = self.aggregate.borrow_mut();
        let silent = flow.now.saturating_duration_since(group.last_active);
        group.rest(silent);
        drop(group);
        self.be_active(flow.now);
        flow.window = self.aggregate.borrow_mut().share();
    }

    fn undo_cwnd(&mut self, flow: &Flow) -> f64 {
        let window = flow.window.max(flow.prior_window).floor();
        let mut group = self.aggregate.borrow_mut();
        group.advance_epoch(flow.now);
        let is_last = group.reductions == self.reductions;
        if is_last || matches!(group.terms.mode, Mode::Fair | Mode::Weight(_)) {
            group.give_back(self.cut);
            if is_last && self.cut > 0.0 {
                (group.ssthresh, group.cubic) = group.before;
            } else {
                group.ssthresh = group.ssthresh.max(group.window);
            }
            drop(group);
            if self.frozen().is_some() {
                self.freeze(window);
            }
        }
        self.cut = 0.0;
        window
    }

    fn release(&mut self, flow: &Flow) {
        let frozen = self.frozen();
        let mut group = self.aggregate.borrow_mut();
        group.advance_epoch(flow.now);
        let silent = flow.now.saturating_duration_since(group.last_active);
        let is_sending = group.epoch - self.epoch <= 1 && silent <= 2 * group.epoch_length();
        // In the other modes, the others have its share: the path is as before.
        if group.terms.mode == Mode::Fair {
            let share = frozen.or_else(|| (is_sending && group.members > 1).then(|| group.share()));
            if let Some(share) = share {
                group.take(share);
                // Whoever undoes a reduction from before does not restore what was then.
                group.reductions += 1;
            }
        }
        group.seen -= u32::from(frozen.is_none() && self.epoch == group.epoch);
        group.members -= 1;
        drop(group);
        self.thaw();
    }
}

#[cfg(test)]
mod tests;
