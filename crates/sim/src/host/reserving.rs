//! Persistent reservations as a host uses them: registered, held, given back, taken away from others.

use super::work::Worker;
use crate::checker::{Answer, AttentionWatch, Change, Port, ReservationHistory};
use crate::random::Random;
use crate::reached::Way;
use client::{Error, TargetError, Transfer};
use scsi::ReservationType;
use scsi::client as command;

/// How rare a change of the reservations is after an operation: while somebody holds one, and while nobody does.
const CHANGE_ONE_IN_HELD: u64 = 5;
const CHANGE_ONE_IN_FREE: u64 = 25;

const RESERVATION_CONFLICT: u8 = 0x18;
const ILLEGAL_REQUEST: u8 = 0x05;

/// What `port` may want next.
fn draw(random: &mut Random, port: Port, known: &ReservationHistory) -> Change {
    let kind = *random.choose(&ReservationType::ALL);
    let persist = random.one_in(2);
    let chance = random.below(100);
    match known.held() {
        _ if !known.is_registered(port) => Change::Register { persist },
        None if chance < 60 => Change::Reserve(kind),
        None if chance < 75 => Change::Register { persist },
        None if chance < 90 => Change::Unregister,
        Some((held, holder)) if holder == port && chance < 70 => Change::Release(held),
        Some((_, holder)) if holder == port && chance < 85 => Change::Unregister,
        Some((_, holder)) if holder != port && chance < 30 => Change::Reserve(kind),
        Some((held, holder)) if holder != port && chance < 80 => {
            let victim = (!held.is_all_registrants()).then_some(holder);
            Change::Preempt { victim, kind, abort: random.one_in(2) }
        }
        _ => Change::Clear,
    }
}

/// Whether an error is RESERVATION CONFLICT.
pub(super) fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Target(TargetError::Status { status: Some(RESERVATION_CONFLICT), .. }))
}

impl Worker {
    /// The initiator port of this host, which has one session where there are reservations.
    pub(super) fn port(&self) -> Port {
        Port::of(self.host.index, 0)
    }

    /// Asks for a change of the reservations, now and then.
    pub(super) async fn reserve_sometimes(&self) {
        let change = {
            let mut ledger = self.host.ledger.borrow_mut();
            let reservations = &ledger.unit(self.unit).reservations;
            let mut workload = self.workload.borrow_mut();
            let is_held = reservations.may_be_held();
            let one_in = if is_held { CHANGE_ONE_IN_HELD } else { CHANGE_ONE_IN_FREE };
            if !workload.mix.reservations || !reservations.is_settled() || !workload.random.one_in(one_in) {
                return;
            }
            draw(&mut workload.random, self.port(), reservations)
        };
        self.change_reservations(change).await;
    }

    /// Ends every reservation of the unit, in as many steps as it takes.
    pub(super) async fn clear_reservations(&self) {
        while self.may_be_reserved() {
            self.clear_reservation().await;
        }
    }

    /// Ends the reservation of the unit, unless something comes in between. Another host may be waiting for this to open
    /// the unit.
    pub(super) async fn clear_reservation(&self) {
        if self.may_be_reserved() {
            self.change_reservations(Change::Register { persist: false }).await;
            self.change_reservations(Change::Clear).await;
        }
    }

    fn may_be_reserved(&self) -> bool {
        self.host.ledger.borrow_mut().unit(self.unit).reservations.may_be_held()
    }

    /// Asks for a change, unless another is on its way.
    async fn change_reservations(&self, change: Change) {
        let (cdb, list) = command::persistent_reserve_out(&change.request(self.port()));
        let mut buffer = self.memory(list.len()).await;
        buffer.copy_from_slice(&list);
        {
            let mut ledger = self.host.ledger.borrow_mut();
            let reservations = &mut ledger.unit(self.unit).reservations;
            if !reservations.is_settled() {
                return;
            }
            reservations.begin(self.port(), change);
        }
        self.attentions(|watch| watch.reservations_change(self.unit, change.attentions()));
        self.host.trace(|| format!("unit {}: {change:?}", self.unit.0));
        let answer = self.lun().execute(cdb.into(), Transfer::Out(buffer.share())).await;
        self.host.trace(|| format!("unit {}: {change:?}: {answer:?}", self.unit.0));
        let answer = match answer {
            Ok(_) => Answer::Done,
            Err(error) if is_conflict(&error) => Answer::Conflict,
            Err(error) if error.sense().is_some_and(|sense| sense.key == ILLEGAL_REQUEST) => Answer::Invalid,
            Err(_) => Answer::Unknown,
        };
        let mut ledger = self.host.ledger.borrow_mut();
        let ledger = &mut *ledger;
        let reached = &mut ledger.tally.reached;
        match (answer, change) {
            (Answer::Conflict, _) => reached.count(Way::ReservationConflict),
            (Answer::Done, Change::Reserve(_)) => reached.count(Way::Reserved),
            (Answer::Done, Change::Preempt { abort: true, .. }) => reached.count(Way::PreemptedAndAborted),
            (Answer::Done, Change::Preempt { .. }) => reached.count(Way::Preempted),
            _ => {}
        }
        let reservations = &mut ledger.unit(self.unit).reservations;
        let ended = reservations.end(answer);
        let victims = reservations.take_ended();
        ledger.tap.lock().attentions.reservations_changed(self.unit, &victims);
        if let Err(problem) = ended {
            ledger.violate(format!("{change:?}: {problem}"));
        }
    }

    fn attentions(&self, tell: impl FnOnce(&mut AttentionWatch)) {
        tell(&mut self.host.ledger.borrow().tap.lock().attentions);
    }
}
