//! How an operation ends: with success, again, or for good.

use super::context::Context;
use super::host::Host;
use super::operation::{Kind, Operation, Whereabouts};
use super::reserving::aborts_others;
use crate::checker::{Answer, Order, SessionKey, Stamp};
use crate::disk::BLOCK_BYTES;
use crate::reached::Way;
use nexus::initiator::{Ending, Retry};
use pdu::TaskManagementOutcome;
use scsi::client::SenseData;
use session::initiator::{Completion, Event, TaskId};
use session::seam::Endpoint;

/// Of a hundred writes of unknown outcome, so many are sent again after the reinstatement; of the others the host never
/// learns what became of them.
const RETRIED_PERCENT: u64 = 70;

/// The order that a write's host promises: among its writes that the fence keeps apart, or among the ORDERED writes of
/// one session.
pub(super) fn order(host: u16, session: SessionKey, operation: &Operation) -> Order {
    /// More than there are hosts.
    const SESSIONS: u32 = 1 << 12;
    if Host::is_ordered(operation) {
        let host = u16::try_from(SESSIONS + session.0).unwrap_or(u16::MAX - 1);
        return Order { host, number: operation.number };
    }
    Order { host, number: operation.number }
}

impl Host {
    /// Takes in what a session has to tell. Whether that was anything.
    pub(super) fn drain(&mut self, context: &mut Context<'_>, path: usize) -> bool {
        let mut events = Vec::new();
        while let Some(event) = self.paths[path].core.as_mut().and_then(Endpoint::poll_event) {
            events.push(event);
        }
        let ended = events.iter().any(|event| matches!(event, Event::Ended { .. }));
        let any = !events.is_empty();
        for event in events {
            match event {
                Event::Completed(completion) => self.completed(context, path, &completion),
                Event::Lost { task, started } => self.lost(context, path, task, started, ended),
                Event::Release(buffer) => drop(self.buffers.remove(buffer)),
                Event::CloseLane { lane, loss, fault } => {
                    if let Some(fault) = fault {
                        context.trace(|| format!("session gives up a connection: {fault}"));
                    }
                    let lane = self.paths[path].lanes.iter().find(|known| known.lane == lane);
                    if let Some(connection) = lane.map(|lane| lane.connection) {
                        self.paths[path].drop_lane(context, connection, loss);
                    }
                }
                Event::ConnectionLost { cid, is_last: true, .. } => {
                    self.paths[path].lost_last(context, cid);
                }
                Event::Ended { orderly } => {
                    if !orderly {
                        context.tally.reached.count(Way::NexusLost);
                        if let Some(problem) = self.paths[path].loss_is_wrong(context) {
                            context.violate(format!("host {} session {path}: {problem}", self.index));
                        }
                    }
                    context.trace(|| format!("session {path} ended, orderly: {orderly}"));
                    self.paths[path].end(context);
                }
                Event::FunctionDone { function, response } => {
                    let resets = &mut self.paths[path].resets;
                    let before = resets.len();
                    resets.retain(|reset| *reset != function);
                    context.excuses.resets_ended(context.now, before - resets.len());
                    if response == TaskManagementOutcome::FunctionRejected {
                        self.abort_again(path);
                    }
                }
                _ => {}
            }
        }
        any
    }

    /// The target had no room for a function: those that wait for one are aborted at another time.
    fn abort_again(&mut self, refused: usize) {
        for (_, operation) in &mut self.operations {
            if let Whereabouts::Sent { path, aborting, .. } = &mut operation.whereabouts
                && *path == refused
            {
                *aborting = false;
            }
        }
    }

    fn completed(&mut self, context: &mut Context<'_>, path: usize, completion: &Completion) {
        let Some(key) = self.paths[path].tasks.remove(&completion.task) else {
            return context.violate(format!("a second end of task {:#x}", completion.task.0));
        };
        let sense = SenseData::parse(&completion.sense);
        if sense.as_ref().is_some_and(SenseData::is_unit_attention) {
            context.tally.reached.count(Way::UnitAttention);
        }
        if sense.as_ref().is_some_and(|sense| sense.deferred) {
            context.tally.reached.count(Way::DeferredError);
        }
        match Ending::of(completion.delivered, completion.status, sense.as_ref()) {
            None => self.succeeded(context, path, key, completion),
            Some(ending) => self.failed(context, path, key, ending, sense.as_ref(), completion),
        }
    }

    fn succeeded(&mut self, context: &mut Context<'_>, path: usize, key: usize, completion: &Completion) {
        let Some(operation) = self.operations.get(key) else { return };
        let (wanted_in, wanted_out) = (operation.data_in_bytes(), operation.data_out_bytes());
        if (completion.data_in_bytes as usize) < wanted_in
            || (completion.data_out_bytes as usize) < wanted_out
        {
            return context.violate(format!(
                "GOOD for {:?} with {} of {wanted_in} bytes in, {} of {wanted_out} bytes out",
                operation.kind, completion.data_in_bytes, completion.data_out_bytes
            ));
        }
        let admitted = Self::admitted(context, self.port(path), operation);
        if let Err(problem) = admitted.and_then(|()| self.check_success(context, key)) {
            let (index, kind) = (self.index, self.operations[key].kind);
            context.violate(format!("host {index}, {kind:?}, task {:#x}: {problem}", completion.task.0));
        }
        context.tally.succeeded += 1;
        self.finish(context, key);
    }

    /// Tells the checker of a success.
    fn check_success(&mut self, context: &mut Context<'_>, key: usize) -> Result<(), String> {
        let operation = &mut self.operations[key];
        let history = &mut *context.history;
        match (operation.kind, operation.read) {
            (Kind::Read, Some(read)) => {
                let data = operation.buffer.and_then(|buffer| self.buffers.get(buffer));
                let data = data.ok_or("its buffer is gone")?;
                for (lba, block) in operation.range().zip(data.chunks(BLOCK_BYTES)) {
                    let stamp = Stamp::read(block, lba)?;
                    history.observe(read, lba, stamp)?;
                    guess(context.guesses, lba, stamp);
                }
                context.tally.blocks_read += u64::from(operation.blocks);
            }
            (Kind::CompareAndWrite { expected }, Some(read)) => {
                context.tally.reached.count(Way::CompareAndWritten);
                history.compare_and_write(read, operation.lba, expected)?;
            }
            (Kind::Flush, Some(flush)) => {
                context.tally.flushes += 1;
                history.flushed(flush);
            }
            _ => {}
        }
        if let Some(write) = operation.write.take() {
            history.acknowledge(write, operation.kind == Kind::Write { fua: true });
            operation.range().for_each(|lba| guess(context.guesses, lba, operation.stamp));
        }
        Ok(())
    }

    fn failed(
        &mut self,
        context: &mut Context<'_>,
        path: usize,
        key: usize,
        ending: Ending,
        sense: Option<&SenseData>,
        completion: &Completion,
    ) {
        const MISCOMPARE: u8 = 0x0e;
        const RESERVATION_CONFLICT: u8 = 0x18;
        const ILLEGAL_REQUEST: u8 = 0x05;
        const TASK_SET_FULL: u8 = 0x28;
        if completion.delivered && completion.status == RESERVATION_CONFLICT {
            return self.refused(context, path, key);
        }
        let Some(operation) = self.operations.get_mut(key) else { return };
        if sense.is_some_and(|sense| sense.key == MISCOMPARE) {
            operation.write.take().into_iter().for_each(|write| context.history.cancel_write(write));
            context.tally.reached.count(Way::Miscompare);
            return self.give_up(context, key);
        }
        if let Kind::Reserve(_) = operation.kind
            && sense.is_some_and(|sense| sense.key == ILLEGAL_REQUEST)
        {
            if let Err(problem) = context.reservations.end(Answer::Invalid) {
                context.violate(problem);
            }
            return self.give_up(context, key);
        }
        // The command window is a promise of memory, and the units' task sets are larger than all windows.
        let is_broken_promise = completion.delivered && completion.status == TASK_SET_FULL;
        if is_broken_promise || ending == Ending::Failed && !is_medium_error(sense) {
            let (kind, status) = (operation.kind, completion.status);
            return context.violate(format!("{kind:?} answered with status {status:#04x}, {sense:?}"));
        }
        context.trace(|| format!("task {:#x} failed: {ending:?}, {sense:?}", completion.task.0));
        self.try_again(context, path, key, ending);
    }

    /// A command will not be answered: it was aborted, or its nexus is lost.
    fn lost(
        &mut self,
        context: &mut Context<'_>,
        path: usize,
        task: TaskId,
        started: bool,
        nexus_lost: bool,
    ) {
        let Some(key) = self.paths[path].tasks.remove(&task) else {
            return context.violate(format!("a second end of task {:#x}", task.0));
        };
        if !started {
            return self.try_again(context, path, key, Ending::NotStarted);
        }
        if nexus_lost {
            return self.try_again(context, path, key, Ending::Unknown);
        }
        if let Some(Operation { whereabouts: Whereabouts::Sent { at, .. }, aborted: false, kind, .. }) =
            self.operations.get(key)
            && !context.excuses.may_have_reset(*at)
            && !self.paths[path].may_be_given_up(context, task)
        {
            let what = format!("host {}: {kind:?} given up although its session lives", self.index);
            context.violate(what);
        }
        self.give_up(context, key);
    }

    fn try_again(&mut self, context: &mut Context<'_>, path: usize, key: usize, ending: Ending) {
        let Some(operation) = self.operations.get_mut(key) else { return };
        operation.whereabouts = Whereabouts::Waiting;
        let has_effect = operation.kind.changes_data() || matches!(operation.kind, Kind::Reserve(_));
        if ending == Ending::Unknown && has_effect {
            operation.whereabouts = Whereabouts::Stranded;
            return self.paths[path].stranded.push(key);
        }
        if operation.ordered {
            if matches!(ending, Ending::NotStarted | Ending::Told | Ending::Declined) {
                operation.write.take().into_iter().for_each(|write| context.history.cancel_write(write));
            }
            return self.give_up(context, key);
        }
        match ending.retry(operation.kind.command_kind()) {
            Retry::AtOnce => self.queue.push_back(key),
            Retry::AfterPause => self.pause(context, key),
            Retry::AfterReinstatement => self.paths[path].stranded.push(key),
            Retry::Never => self.give_up(context, key),
        }
    }

    /// The old nexus of a path is dead: nothing that was sent through it can take effect any more.
    pub(super) fn reinstated(&mut self, context: &mut Context<'_>, path: usize) {
        let resets = std::mem::take(&mut self.paths[path].resets);
        context.excuses.resets_ended(context.now, resets.len());
        let stranded = std::mem::take(&mut self.paths[path].stranded);
        if !stranded.is_empty() {
            context.tally.reached.count(Way::SessionReinstated);
        }
        for key in stranded {
            let Some(operation) = self.operations.get_mut(key) else { continue };
            let may_repeat =
                Ending::Unknown.retry(operation.kind.command_kind()) == Retry::AfterReinstatement;
            if may_repeat && !operation.ordered && context.random.percent(RETRIED_PERCENT) {
                operation.whereabouts = Whereabouts::Waiting;
                context.tally.reached.count(Way::UnknownWriteAgain);
                self.queue.push_back(key);
            } else {
                self.give_up(context, key);
            }
        }
    }

    /// An operation ends without success; whatever it did, it can do no more.
    pub(super) fn give_up(&mut self, context: &mut Context<'_>, key: usize) {
        if self.operations.get(key).is_some_and(|operation| matches!(operation.kind, Kind::Reserve(_)))
            && let Err(problem) = context.reservations.end(Answer::Unknown)
        {
            context.violate(problem);
        }
        if let Some(write) = self.operations.get_mut(key).and_then(|operation| operation.write.take()) {
            context.history.end_write(write);
        }
        context.tally.failed += 1;
        self.finish(context, key);
    }

    fn finish(&mut self, context: &mut Context<'_>, key: usize) {
        let Some(operation) = self.operations.try_remove(key) else { return };
        operation.read.into_iter().for_each(|read| context.history.end_read(read));
        if let Kind::Reserve(change) = operation.kind
            && aborts_others(change)
        {
            context.excuses.resets_ended(context.now, 1);
        }
        let Some(fence) = operation.fence else { return };
        for admitted in self.fence.leave(fence) {
            self.queue.extend(self.fenced.remove(&admitted));
        }
    }
}

/// A host has learnt what a block holds, or held a moment ago.
fn guess(guesses: &mut [Stamp], lba: u64, stamp: Stamp) {
    let place = usize::try_from(lba).ok().and_then(|lba| guesses.get_mut(lba));
    place.into_iter().for_each(|place| *place = stamp);
}

/// What a disk that fails may say.
fn is_medium_error(sense: Option<&SenseData>) -> bool {
    const MEDIUM_ERROR: u8 = 0x03;
    sense.is_some_and(|sense| sense.key == MEDIUM_ERROR)
}
