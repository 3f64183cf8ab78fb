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
        Rc::new(RefCell::new(Self {
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
            reductions: 0,
            srtt_s: 0.0,
            cubic: Cubic::default(),
            before: (f64::INFINITY, Cubic::default()),
            joined: 0,
        }))
    }

    /// All members' window together, in segments.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.window
    }

    /// The part of it that members hold while they repair losses.
    #[must_use]
    pub fn frozen(&self) -> f64 {
        self.frozen.values().sum()
    }

    fn advance_epoch(&mut self, now: Instant) {
        let length = EPOCH_MIN.max(Duration::from_secs_f64(self.srtt_s));
        if now.saturating_duration_since(self.epoch_began) >= length {
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

    /// A window that is too small for shares of the smallest size grows.
    fn share(&mut self) -> f64 {
        let (sharers, frozen) = (f64::from(self.sharers()), self.frozen());
        let share = ((self.window - frozen).max(0.0) / sharers).floor();
        if share < WINDOW_MIN {
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

    /// RFC 9438 §4.1 to §4.5, for so many flows.
    fn grow_as_cubic(&mut self, acked: f64, now: Instant) {
        const C: f64 = 0.4;
        let flows = self.flows();
        let began = *self.cubic.began.get_or_insert_with(|| {
            self.cubic.window_max = self.cubic.window_max.max(self.window);
            self.cubic.window_reno = self.window;
            self.cubic.k_s = ((self.cubic.window_max - self.window) / C / flows).cbrt();
            now
        });
        let at_s = now.saturating_duration_since(began).as_secs_f64() + self.srtt_s;
        let wanted = self.cubic.window_max + C * flows * (at_s - self.cubic.k_s).powi(3);
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
        let since = self.last_cut.map(|last| now.saturating_duration_since(last).as_secs_f64());
        since.is_some_and(|since_s| since_s < round_trips * self.srtt_s)
    }

    /// The segments that a loss of a member with this share cuts.
    fn cut(&self, share: f64, now: Instant) -> f64 {
        let lost = 1.0 - self.remains();
        let cut = match self.terms.mode {
            _ if self.is_held(now) => 0.0,
            Mode::Fair => share - (share * self.remains()).floor().max(WINDOW_MIN),
            Mode::Weight(_) => self.window * lost / self.flows(),
            Mode::Single | Mode::Conservative => self.window * lost,
        };
        cut.clamp(0.0, self.window)
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

    /// As one flow, a group has a segment for each member after a timeout (RFC 3124), once per round trip. Returns what that
    /// cuts.
    fn time_out_as_one(&mut self, now: Instant) -> f64 {
        let since = self.last_timeout.map(|last| now.saturating_duration_since(last).as_secs_f64());
        if since.is_some_and(|since_s| since_s < self.srtt_s) {
            return 0.0;
        }
        self.last_timeout = Some(now);
        let cut = (self.window - f64::from(self.members)).max(0.0);
        self.window -= cut;
        cut
    }

    /// All were silent for so long.
    fn rest(&mut self, mut silent: Duration) {
        let timeout = TIMEOUT_MIN + Duration::from_secs_f64(self.srtt_s);
        let least = FIRST_WINDOW * f64::from(self.members);
        if silent <= timeout {
            return;
        }
        self.cubic.began = self.cubic.began.map(|began| began + silent);
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
        group.last_active = now;
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
                if matches!(group.terms.mode, Mode::Fair | Mode::Weight(_)) {
                    let lost = (held - window).max(0.0);
                    self.cut += lost;
                    group.window = (group.window - lost).max(0.0);
                    group.ssthresh = group.window;
                } else {
                    self.cut += group.time_out_as_one(flow.now);
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
            group.window += self.cut;
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
        let is_active = group.epoch - self.epoch <= 1 && group.members > 1;
        let leaves = frozen.or_else(|| is_active.then(|| group.share()));
        group.window = (group.window - leaves.unwrap_or(0.0)).max(0.0);
        group.seen -= u32::from(frozen.is_none() && self.epoch == group.epoch);
        group.members -= 1;
        drop(group);
        self.thaw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::replay::beginning;

    const RTT: Duration = Duration::from_millis(40);

    /// A group in congestion avoidance whose members have these windows together, each at its share.
    fn group(terms: GroupTerms, members: u32, window: f64) -> (Rc<RefCell<Aggregate>>, Vec<(Member, Flow)>) {
        let now = Instant::ZERO + RTT;
        let aggregate = Aggregate::new(terms, now);
        let first = Flow { window, ssthresh: 1.0, srtt: RTT, ..beginning(now) };
        let share = Flow { window: window / f64::from(members), ..first };
        let flows = (0..members).map(|number| if number == 0 { first } else { share });
        let joined = flows.map(|flow| (Member::join(&aggregate, &flow), share)).collect();
        (aggregate, joined)
    }

    #[test]
    fn in_the_papers_mode_a_loss_takes_half_of_one_share() {
        let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
        let (member, flow) = &mut members[0];
        assert_eq!(member.ssthresh(flow), 50.0);
        assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (350.0, 50.0));
        // The others keep what they had.
        assert_eq!(aggregate.borrow_mut().share(), 100.0);
    }

    #[test]
    fn a_group_that_behaves_as_one_is_halved_once_per_round_trip() {
        let (aggregate, mut members) =
            group(GroupTerms { mode: Mode::Single, ..GroupTerms::default() }, 4, 400.0);
        for (member, flow) in &mut members[..2] {
            member.ssthresh(flow);
        }
        assert_eq!(aggregate.borrow().window(), 200.0);
        for (member, flow) in &mut members[..2] {
            member.set_state(flow, State::Open);
        }
        let (member, flow) = &mut members[2];
        flow.now += RTT * 2;
        member.ssthresh(flow);
        assert_eq!(aggregate.borrow().window(), 100.0);
    }

    #[test]
    fn a_timeout_takes_all_of_a_share_but_one_segment_although_the_kernel_tells_it_twice() {
        let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
        let (member, flow) = &mut members[0];
        member.ssthresh(flow);
        flow.window = 1.0;
        member.set_state(flow, State::Loss);
        assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (301.0, 1.0));
    }

    #[test]
    fn what_a_mistaken_reduction_took_is_given_back() {
        let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
        let (member, flow) = &mut members[0];
        flow.prior_window = flow.window;
        flow.window = member.ssthresh(flow);
        assert_eq!(member.undo_cwnd(flow), 100.0);
        member.set_state(flow, State::Open);
        assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (400.0, 0.0));
    }

    #[test]
    fn members_that_do_not_send_leave_their_share_to_the_others() {
        let (_, mut members) = group(GroupTerms::default(), 4, 400.0);
        let (member, flow) = &mut members[0];
        for _ in 0..3 {
            flow.now += RTT;
            member.cong_avoid(flow, 1);
        }
        assert!(flow.window >= 400.0, "{}", flow.window);
    }

    #[test]
    fn one_that_leaves_takes_what_it_used_with_it() {
        let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
        let (mut member, flow) = members.remove(0);
        member.release(&flow);
        let mut group = aggregate.borrow_mut();
        assert_eq!((group.window(), group.share()), (300.0, 100.0));
    }

    #[test]
    fn a_fair_group_grows_by_a_segment_for_each_member_per_round_trip_and_a_single_one_by_one() {
        for (mode, grown) in [(Mode::Fair, 4.0), (Mode::Single, 1.0), (Mode::Weight(5 * PARTS / 2), 2.5)] {
            let (aggregate, mut members) = group(GroupTerms { mode, ..GroupTerms::default() }, 4, 400.0);
            for (member, flow) in &mut members {
                member.cong_avoid(flow, 100);
            }
            let window = aggregate.borrow().window();
            assert!((window - 400.0 - grown).abs() < 0.05, "{mode:?}: {window}");
        }
    }

    #[test]
    fn cubic_on_the_aggregate_comes_back_to_the_window_of_the_loss_after_k() {
        let terms = GroupTerms { law: AggregateLaw::Cubic, mode: Mode::Single, ..GroupTerms::default() };
        let (aggregate, mut members) = group(terms, 1, 1000.0);
        let (member, flow) = &mut members[0];
        flow.window = member.ssthresh(flow);
        member.set_state(flow, State::Open);
        // K = ∛(300 / 0.4) = 9.1 s.
        let begun = flow.now;
        while aggregate.borrow().window() < 995.0 {
            flow.now += RTT;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small window")]
            let acked = flow.window as u32;
            member.cong_avoid(flow, acked);
        }
        let took = flow.now.saturating_duration_since(begun).as_secs_f64();
        assert!((6.5..9.5).contains(&took), "{took}");
    }
}
