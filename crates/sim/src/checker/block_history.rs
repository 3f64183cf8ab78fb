//! Which values each block may have.
//!
//! Time here is the order in which things were told to this history. A write may take effect between the moment it
//! was begun and the moment it ended; until then it may do so again, as it may be sent again. What was acknowledged
//! has taken effect. One write comes before another if it ended before the other began, or if one host asked for both
//! and promises their order. A block shows a write until one that comes after it has surely taken effect; where the
//! cache is lost, at a crash or when the disk fails to empty it, what no *durable* write came after may be back.
//!
//! A flush that a host is told has succeeded is a promise about all that the same host has written, unless it was told of
//! a loss: whatever was lost meanwhile without a word is missed from then on.

use super::Stamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A moment: the number of things that were told before. Half a word, as each block has many and all are looked at.
type Tick = u32;

/// After all that is ever told.
const NEVER: Tick = Tick::MAX;

/// A write in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteId(Tick);

/// A read, or a flush, in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadId(Tick);

/// Whose a write is. Those of one host to the same block take effect in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Who promises it.
    pub host: u16,
    /// The place in that order; `None` for a write that keeps none.
    pub number: Option<u32>,
}

impl Order {
    fn precedes(self, later: Self) -> bool {
        let numbers = self.number.zip(later.number);
        self.host == later.host && numbers.is_some_and(|(number, later)| number < later)
    }
}

/// A write as one block sees it.
#[derive(Clone, Debug)]
struct Candidate {
    stamp: Stamp,
    /// Names the write: no two begin at once.
    begun: Tick,
    /// It was under way at the last loss: its client may have sent it again after that.
    is_resumed: bool,
    /// When it was known that it can take effect no more.
    ended: Tick,
    /// Its host was told that nobody knows whether it has taken effect, or will.
    is_unknown: bool,
    /// It has surely taken effect by then.
    effective: Tick,
    /// Its host was told then that it is done.
    acknowledged: Tick,
    durable: bool,
    /// Reads that begin at this time or later cannot see it: something else was seen after it had ended.
    hidden: Tick,
    /// Not even a loss of the cache brings it back.
    buried: bool,
    /// A COMPARE AND WRITE has replaced it.
    consumed: bool,
    order: Order,
}

impl Candidate {
    /// Whether `later` came after this.
    fn precedes(&self, later: &Self) -> bool {
        self.precedes_write(later.begun, later.order)
    }

    fn precedes_write(&self, begun: Tick, order: Order) -> bool {
        self.ended < begun || self.order.precedes(order)
    }

    /// Whether a flush that `host` began then covers it: writes that keep an order are waited for if they were asked for
    /// before, others if they were done before. One that was done before `told` is known to be lost, perhaps.
    fn is_covered(&self, host: u16, flush: Tick, told: Tick) -> bool {
        let before = if self.order.number.is_some() { self.begun } else { self.acknowledged };
        self.order.host == host && before < flush && (told + 1..NEVER).contains(&self.acknowledged)
    }

    fn is_effective_by(&self, tick: Tick) -> bool {
        self.effective <= tick
    }

    fn is_ended(&self) -> bool {
        self.ended != NEVER
    }

    fn is_hidden_from(&self, begun: Tick) -> bool {
        self.hidden <= begun
    }

    /// Whether it could do nothing any more at the last loss, which was then.
    fn is_before(&self, last_loss: Tick) -> bool {
        self.begun < last_loss && !self.is_resumed
    }

    fn take_effect(&mut self, by: Tick) {
        self.effective = self.effective.min(by);
    }

    fn hide(&mut self, at: Tick) {
        self.hidden = self.hidden.min(at);
    }
}

/// What is known of every block.
#[derive(Debug)]
pub struct BlockHistory {
    blocks: Vec<Vec<Candidate>>,
    /// Where each write in progress goes.
    writes: BTreeMap<Tick, Range<u64>>,
    readers: BTreeSet<Tick>,
    now: Tick,
    last_loss: Tick,
    /// What is acknowledged may be lost until it is flushed.
    volatile: bool,
}

/// Nobody's: what the disk holds at first.
const NOBODY: Order = Order { host: u16::MAX, number: None };

/// With fewer candidates, looking for those that can go costs more than keeping them.
const CANDIDATES_MIN: usize = 4;

impl BlockHistory {
    /// A disk of zeroes.
    #[must_use]
    pub fn new(blocks: u64, volatile: bool) -> Self {
        let zero = Candidate {
            stamp: Stamp::ZERO,
            begun: 0,
            is_resumed: false,
            ended: 0,
            is_unknown: false,
            effective: 0,
            acknowledged: NEVER,
            durable: true,
            hidden: NEVER,
            buried: false,
            consumed: false,
            order: NOBODY,
        };
        Self {
            blocks: (0..blocks).map(|_| vec![zero.clone()]).collect(),
            writes: BTreeMap::new(),
            readers: BTreeSet::new(),
            now: 0,
            last_loss: 0,
            volatile,
        }
    }

    fn tick(&mut self) -> Tick {
        self.now += 1;
        self.now
    }

    fn blocks_of(blocks: &mut [Vec<Candidate>], range: Range<u64>) -> &mut [Vec<Candidate>] {
        let index = |lba: u64| usize::try_from(lba).unwrap_or(usize::MAX).min(blocks.len());
        let (start, end) = (index(range.start), index(range.end));
        &mut blocks[start..end]
    }

    /// A write is sent for the first time.
    pub fn begin_write(&mut self, range: Range<u64>, stamp: Stamp, order: Order) -> WriteId {
        let begun = self.tick();
        let candidate = Candidate {
            stamp,
            begun,
            is_resumed: false,
            ended: NEVER,
            is_unknown: false,
            effective: NEVER,
            acknowledged: NEVER,
            durable: false,
            hidden: NEVER,
            buried: false,
            consumed: false,
            order,
        };
        for block in Self::blocks_of(&mut self.blocks, range.clone()) {
            block.push(candidate.clone());
        }
        self.writes.insert(begun, range);
        WriteId(begun)
    }

    /// A write was answered with success; `durable` if that alone promises that it survives a crash.
    pub fn acknowledge(&mut self, id: WriteId, durable: bool) {
        let durable = durable || !self.volatile;
        let now = self.tick();
        let last_loss = self.last_loss;
        self.each_of(id, |candidate| {
            (candidate.ended, candidate.acknowledged) = (now, now);
            // An answer that was under way when the cache was lost says nothing of what is left.
            if durable || candidate.begun > last_loss {
                candidate.take_effect(now);
            }
            candidate.durable |= durable;
        });
        let Some(range) = self.writes.remove(&id.0) else { return };
        self.prune(range);
    }

    /// A write will never be answered, or failed; from now on it cannot take effect.
    pub fn end_write(&mut self, id: WriteId) {
        let now = self.tick();
        self.each_of(id, |candidate| candidate.ended = now);
        self.writes.remove(&id.0);
    }

    /// Nobody knows whether a write has taken effect, or will.
    pub fn leave_open(&mut self, id: WriteId) {
        self.each_of(id, |candidate| candidate.is_unknown = true);
        self.writes.remove(&id.0);
    }

    /// A write was never carried out, not even in part.
    pub fn cancel_write(&mut self, id: WriteId) {
        let Some(range) = self.writes.remove(&id.0) else { return };
        for block in Self::blocks_of(&mut self.blocks, range) {
            block.retain(|candidate| candidate.begun != id.0);
        }
    }

    fn each_of(&mut self, id: WriteId, mut change: impl FnMut(&mut Candidate)) {
        let Some(range) = self.writes.get(&id.0).cloned() else { return };
        for block in Self::blocks_of(&mut self.blocks, range) {
            block.iter_mut().rev().filter(|candidate| candidate.begun == id.0).for_each(&mut change);
        }
    }

    /// A read or a flush is sent.
    pub fn begin_read(&mut self) -> ReadId {
        let begun = self.tick();
        self.readers.insert(begun);
        ReadId(begun)
    }

    /// A read or a flush is over, however it ended.
    pub fn end_read(&mut self, id: ReadId) {
        self.readers.remove(&id.0);
    }

    /// A read that is still in progress has brought this.
    ///
    /// # Errors
    /// The block cannot have held it.
    pub fn observe(&mut self, read: ReadId, lba: u64, stamp: Stamp) -> Result<(), String> {
        let now = self.tick();
        let last_loss = self.last_loss;
        let block = match Self::blocks_of(&mut self.blocks, lba..lba + 1) {
            [block] => block,
            _ => return Err(format!("block {lba} does not exist")),
        };
        let mut found = None;
        let mut matches = 0;
        for (at, candidate) in block.iter().enumerate() {
            if candidate.stamp == stamp {
                matches += 1;
                if is_visible(block, candidate, read.0) {
                    found = Some(at);
                }
            }
        }
        let Some(at) = found else { return Err(explain(block, lba, stamp, read.0)) };
        // An answer that was under way during a loss says nothing of what is left.
        if matches > 1 || read.0 < last_loss {
            return Ok(());
        }
        let survived = read.0 > last_loss && block[at].is_before(last_loss);
        for (other, candidate) in block.iter_mut().enumerate() {
            if other == at {
                candidate.take_effect(now);
                candidate.durable |= survived;
            } else if candidate.ended <= read.0 {
                candidate.hide(now);
            }
            if survived && other != at && candidate.is_before(last_loss) {
                candidate.buried = true;
                candidate.hide(now);
            }
        }
        Ok(())
    }

    /// A COMPARE AND WRITE found `expected` and replaced it.
    ///
    /// # Errors
    /// It cannot have found it, or another one has replaced it before.
    pub fn compare_and_write(&mut self, read: ReadId, lba: u64, expected: Stamp) -> Result<(), String> {
        let now = self.tick();
        let last_loss = self.last_loss;
        let [block] = Self::blocks_of(&mut self.blocks, lba..lba + 1) else {
            return Err(format!("block {lba} does not exist"));
        };
        let visible =
            |candidate: &&Candidate| candidate.stamp == expected && is_visible(block, candidate, read.0);
        if !block.iter().any(|candidate| visible(&candidate)) {
            return Err(format!("COMPARE AND WRITE found {}", explain(block, lba, expected, read.0)));
        }
        let mut same = block.iter_mut().filter(|candidate| candidate.stamp == expected);
        let (Some(only), None) = (same.next(), same.next()) else { return Ok(()) };
        if expected == Stamp::ZERO || read.0 < last_loss || only.ended > read.0 {
            return Ok(());
        }
        if std::mem::replace(&mut only.consumed, true) {
            return Err(format!("two COMPARE AND WRITEs found {expected} in block {lba}"));
        }
        only.hide(now);
        Ok(())
    }

    /// The present point in the order of events, without a read: a host was told something then.
    pub fn moment(&mut self) -> ReadId {
        ReadId(self.tick())
    }

    /// A flush of `host` was answered with success, and its caller was last told of a loss at `told`. Whatever the cache
    /// held is durable; and so is all that the host itself was told is done, or the flush would have told of its loss.
    ///
    /// # Errors
    /// A write that the flush should have waited for is not over.
    pub fn flushed(&mut self, flush: ReadId, host: u16, told: Option<ReadId>) -> Result<(), String> {
        let told = told.map_or(0, |told| told.0);
        for (lba, block) in (0_u64..).zip(&mut self.blocks) {
            for candidate in block {
                let Candidate { order, begun, ended, is_unknown, stamp, .. } = *candidate;
                let is_waited_for = order.host == host && order.number.is_some() && begun < flush.0;
                if is_waited_for && !candidate.is_ended() && !is_unknown {
                    return Err(format!(
                        "it is done before {stamp} in block {lba}, which was asked for earlier"
                    ));
                }
                if candidate.is_covered(host, flush.0, told) {
                    candidate.take_effect(candidate.acknowledged);
                    candidate.durable = true;
                }
                let is_cached = candidate.is_effective_by(flush.0) && (told..=flush.0).contains(&ended);
                candidate.durable |= is_cached;
                candidate.buried |= candidate.is_hidden_from(flush.0);
            }
        }
        Ok(())
    }

    /// The disk lost its cache: at a crash, or because it could not empty it. Returns how many blocks' writes had surely
    /// taken effect and may be lost by this.
    pub fn lose_cache(&mut self) -> u64 {
        self.last_loss = self.tick();
        let mut exposed = 0;
        for candidate in self.blocks.iter_mut().flatten() {
            if !candidate.durable {
                exposed += u64::from(std::mem::replace(&mut candidate.effective, NEVER) != NEVER);
            }
            candidate.is_resumed = !candidate.is_ended();
            if !candidate.buried {
                candidate.hidden = NEVER;
                candidate.consumed = false;
            }
        }
        exposed
    }

    /// Forgets what nobody will ever see.
    fn prune(&mut self, range: Range<u64>) {
        let horizon = self.readers.first().copied().unwrap_or(self.now);
        let mut settled: Vec<(Tick, Order)> = Vec::new();
        for block in Self::blocks_of(&mut self.blocks, range) {
            if block.len() <= CANDIDATES_MIN {
                continue;
            }
            let settles = |later: &&Candidate| later.durable && later.is_effective_by(horizon);
            settled.clear();
            settled.extend(block.iter().filter(settles).map(|later| (later.begun, later.order)));
            block.retain(|candidate| {
                let is_superseded =
                    || settled.iter().any(|(begun, order)| candidate.precedes_write(*begun, *order));
                let is_gone = candidate.is_ended()
                    && (candidate.buried && candidate.is_hidden_from(horizon) || is_superseded());
                !is_gone
            });
        }
    }
}

fn is_visible(block: &[Candidate], candidate: &Candidate, read: Tick) -> bool {
    !candidate.is_hidden_from(read)
        && !block.iter().any(|later| later.is_effective_by(read) && candidate.precedes(later))
}

fn explain(block: &[Candidate], lba: u64, stamp: Stamp, read: Tick) -> String {
    let allowed = block.iter().filter(|candidate| is_visible(block, candidate, read));
    let allowed = allowed.map(|candidate| candidate.stamp.to_string()).collect::<Vec<_>>();
    let known = block.iter().any(|candidate| candidate.stamp == stamp);
    let what = if known { "is over" } else { "is none of its values" };
    format!("block {lba} holds {stamp}, which {what}; allowed: {}", allowed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::UnitIndex;

    const HOST: u16 = 0;

    fn order(host: u16, number: u32) -> Order {
        Order { host, number: Some(number) }
    }

    fn stamp(number: u32) -> Stamp {
        Stamp::new(HOST, UnitIndex::FIRST, number)
    }

    fn write(history: &mut BlockHistory, number: u32, host: u16) -> WriteId {
        history.begin_write(0..1, stamp(number), order(host, number))
    }

    fn sees(history: &mut BlockHistory, number: u32) -> bool {
        let read = history.begin_read();
        let seen = history.observe(read, 0, stamp(number)).is_ok();
        history.end_read(read);
        seen
    }

    #[test]
    fn an_acknowledged_write_replaces_what_was_there() {
        let mut history = BlockHistory::new(1, false);
        let one = write(&mut history, 1, 0);
        history.acknowledge(one, false);
        let read = history.begin_read();
        assert!(history.observe(read, 0, Stamp::ZERO).is_err());
        assert!(sees(&mut history, 1));
    }

    #[test]
    fn of_two_writes_at_the_same_time_either_may_stay_but_not_both_in_turn() {
        let mut history = BlockHistory::new(1, false);
        let (one, two) = (write(&mut history, 1, 0), write(&mut history, 2, 1));
        history.acknowledge(one, false);
        history.acknowledge(two, false);
        assert!(sees(&mut history, 1));
        assert!(!sees(&mut history, 2));
    }

    #[test]
    fn a_host_keeps_the_order_that_it_promised() {
        let mut history = BlockHistory::new(1, false);
        let (one, two) = (write(&mut history, 1, 0), write(&mut history, 2, 0));
        history.acknowledge(two, false);
        history.acknowledge(one, false);
        assert!(!sees(&mut history, 1));
        assert!(sees(&mut history, 2));
    }

    #[test]
    fn a_write_whose_nexus_is_dead_does_not_come_back() {
        let mut history = BlockHistory::new(1, false);
        let lost = write(&mut history, 1, 0);
        history.end_write(lost);
        let next = write(&mut history, 2, 1);
        history.acknowledge(next, false);
        assert!(!sees(&mut history, 1), "a ghost");
        assert!(sees(&mut history, 2));
    }

    #[test]
    fn a_lost_write_that_was_not_there_once_its_nexus_was_dead_does_not_appear() {
        let mut history = BlockHistory::new(1, false);
        let lost = write(&mut history, 1, 0);
        history.end_write(lost);
        let read = history.begin_read();
        assert_eq!(history.observe(read, 0, Stamp::ZERO), Ok(()));
        assert!(!sees(&mut history, 1));
    }

    #[test]
    fn a_crash_may_take_what_was_not_flushed_and_nothing_else() {
        let mut history = BlockHistory::new(1, true);
        let flushed = write(&mut history, 1, 0);
        history.acknowledge(flushed, false);
        let flush = history.begin_read();
        assert_eq!(history.flushed(flush, 0, None), Ok(()));
        history.end_read(flush);
        let unflushed = write(&mut history, 2, 0);
        history.acknowledge(unflushed, false);
        history.lose_cache();
        let read = history.begin_read();
        assert!(history.observe(read, 0, Stamp::ZERO).is_err());
        assert!(sees(&mut history, 1));
        assert!(!sees(&mut history, 2), "it was not there after the crash");
    }

    #[test]
    fn an_answer_that_was_under_way_during_a_crash_says_nothing_of_what_is_left() {
        let mut history = BlockHistory::new(1, true);
        let one = write(&mut history, 1, 0);
        history.acknowledge(one, false);
        let read = history.begin_read();
        history.lose_cache();
        assert_eq!(history.observe(read, 0, stamp(1)), Ok(()));
        let after = history.begin_read();
        assert_eq!(history.observe(after, 0, Stamp::ZERO), Ok(()));
    }

    #[test]
    fn what_was_forced_to_the_medium_survives() {
        let mut history = BlockHistory::new(1, true);
        let forced = write(&mut history, 1, 0);
        history.acknowledge(forced, true);
        history.lose_cache();
        let read = history.begin_read();
        assert!(history.observe(read, 0, Stamp::ZERO).is_err());
        assert!(sees(&mut history, 1));
    }

    #[test]
    fn only_one_compare_and_write_replaces_a_value() {
        let mut history = BlockHistory::new(1, false);
        let one = write(&mut history, 1, 0);
        history.acknowledge(one, false);
        let (first, second) = (history.begin_read(), history.begin_read());
        assert_eq!(history.compare_and_write(first, 0, stamp(1)), Ok(()));
        assert!(history.compare_and_write(second, 0, stamp(1)).is_err());
    }

    /// A write is acknowledged, lost without a word, and its host told that a flush has succeeded.
    fn lost_before_flush(told: bool) -> BlockHistory {
        let mut history = BlockHistory::new(1, true);
        let one = write(&mut history, 1, 0);
        history.acknowledge(one, false);
        history.lose_cache();
        let told = told.then(|| history.moment());
        let flush = history.begin_read();
        assert_eq!(history.flushed(flush, 0, told), Ok(()));
        history
    }

    #[test]
    fn what_was_lost_before_a_flush_that_did_not_tell_is_missed() {
        let read = ReadId(NEVER - 1);
        assert!(lost_before_flush(false).observe(read, 0, Stamp::ZERO).is_err());
        assert_eq!(lost_before_flush(true).observe(read, 0, Stamp::ZERO), Ok(()));
    }

    #[test]
    fn a_flush_waits_for_the_writes_before_it_and_for_none_of_others() {
        let mut history = BlockHistory::new(1, true);
        write(&mut history, 1, 0);
        let flush = history.begin_read();
        assert!(history.flushed(flush, 0, None).is_err());
        assert_eq!(history.flushed(flush, 1, None), Ok(()));
    }
}
