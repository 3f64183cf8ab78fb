//! Persistent reservations as a host uses them: registered, held, given back, taken away from others.

use super::context::Context;
use super::host::Host;
use super::operation::{Kind, Operation};
use crate::checker::{Access, Answer, Change, Port};
use crate::random::Random;
use crate::reached::Way;
use scsi::ReservationType;

/// One operation in so many is followed by a change of the reservations while somebody holds one; with nobody, in more.
const CHANGE_ONE_IN_HELD: u64 = 5;
const CHANGE_ONE_IN_FREE: u64 = 25;

impl Kind {
    pub(super) fn access(self) -> Access {
        match self {
            Self::Read => Access::Read,
            Self::TestUnitReady | Self::Reserve(_) => Access::None,
            _ => Access::Write,
        }
    }
}

/// What `port` may want next.
fn draw(random: &mut Random, port: Port, context: &Context<'_>) -> Change {
    let known = &*context.reservations;
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

/// Whether commands of other hosts end with a change, of which these are told by a unit attention at the most.
pub(super) fn aborts_others(change: Change) -> bool {
    matches!(change, Change::Preempt { abort: true, .. })
}

impl Host {
    /// The initiator port of a path.
    pub(super) fn port(&self, path: usize) -> Port {
        Port::of(self.index, u16::try_from(path).unwrap_or(0))
    }

    /// Asks for a change of the reservations, now and then.
    pub(super) fn reserve(&mut self, context: &mut Context<'_>) {
        let one_in = if context.reservations.may_be_held() { CHANGE_ONE_IN_HELD } else { CHANGE_ONE_IN_FREE };
        if !self.workload.mix.reservations
            || !context.reservations.is_settled()
            || !self.workload.random.one_in(one_in)
        {
            return;
        }
        let path = self.workload.random.index(self.paths.len());
        let port = self.port(path);
        let change = draw(&mut self.workload.random, port, context);
        self.ask_for_change(context, path, change);
    }

    /// Ends every reservation, in as many steps as it takes.
    pub fn clear_reservations(&mut self, context: &mut Context<'_>) {
        let is_registered = context.reservations.is_registered(self.port(0));
        let change = if is_registered { Change::Clear } else { Change::Register { persist: false } };
        self.ask_for_change(context, 0, change);
        self.submit(context);
    }

    fn ask_for_change(&mut self, context: &mut Context<'_>, path: usize, change: Change) {
        context.reservations.begin(self.port(path), change);
        context.excuses.resets_under_way += usize::from(aborts_others(change));
        let operation = self.workload.change_reservations(path, change);
        let key = self.operations.insert(operation);
        self.queue.push_back(key);
    }

    /// RESERVATION CONFLICT.
    pub(super) fn refused(&mut self, context: &mut Context<'_>, path: usize, key: usize) {
        let port = self.port(path);
        let Some(operation) = self.operations.get_mut(key) else { return };
        context.tally.reached.count(Way::ReservationConflict);
        let (kind, begun) = (operation.kind, operation.begun);
        // What was never sent before was never carried out.
        if operation.attempts == 1 {
            operation.write.take().into_iter().for_each(|write| context.history.cancel_write(write));
        }
        let judged = match kind {
            Kind::Reserve(_) => context.reservations.end(Answer::Conflict),
            kind => context.reservations.judge(begun, port, kind.access(), true),
        };
        if let Err(problem) = judged {
            context.violate(problem);
        }
        self.give_up(context, key);
    }

    /// A command that reservations did not hinder.
    pub(super) fn admitted(
        context: &mut Context<'_>,
        port: Port,
        operation: &Operation,
    ) -> Result<(), String> {
        let Kind::Reserve(change) = operation.kind else {
            return context.reservations.judge(operation.begun, port, operation.kind.access(), false);
        };
        match change {
            Change::Reserve(_) => context.tally.reached.count(Way::Reserved),
            Change::Preempt { abort, .. } => {
                context.tally.reached.count(if abort { Way::PreemptedAndAborted } else { Way::Preempted });
            }
            _ => {}
        }
        context.reservations.end(Answer::Done)
    }
}
