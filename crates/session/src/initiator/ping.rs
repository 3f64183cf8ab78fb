//! NOP-Out and NOP-In: pings in both directions (RFC 7143 §11.18, §11.19).

use super::ask::Ask;
use super::data_sequence::Arrival;
use super::lane::{Lane, Phase};
use super::outgoing::Request;
use super::session::Session;
use crate::liveness::Measure;
use crate::peer_fault::Question;
use crate::seam::Fault;
use pdu::{CmdSn, Instant, Itt, LaneId, Lun, NopIn, NopOut, StatSn, Ttt};

/// The most answers to a target's pings that wait on one lane. Only a target that pings without reading reaches this
/// limit.
const ANSWERS_MAX: u32 = 64;

/// The most probes behind a ping whose answers are still to come. More would reveal nothing that these do not.
const PROBES_MAX: usize = 8;

/// The pings of a lane, both ways.
#[derive(Debug, Default)]
pub(super) struct Pings {
    ping: Option<Ping>,
    /// Probes behind a ping whose answers are still to come.
    probes: Vec<Itt>,
    /// Answers to the target's pings that have not been pulled.
    answers: u32,
}

/// A ping without an answer. [`crate::liveness`] knows its deadline.
#[derive(Clone, Copy, Debug)]
struct Ping {
    itt: Itt,
    cmd_sn: CmdSn,
    asked_at: Instant,
    /// The number of the first PDU of its lane that carried it.
    number: Option<u64>,
    /// The command that is lost if the answer says that the target still expects it.
    reveals: Option<CmdSn>,
    ask: Ask,
    /// It was sent only to be a later segment than the last one, too soon to say that something is missing.
    is_probe: bool,
}

impl Pings {
    /// When a ping that may have been lost was sent, and how often.
    pub(super) fn ask(&self) -> Option<Ask> {
        self.ping.map(|ping| ping.ask)
    }

    /// The ping of this tag, if it has not left.
    fn not_left(&mut self, itt: Itt) -> Option<&mut Ping> {
        self.ping.as_mut().filter(|ping| ping.itt == itt && ping.number.is_none())
    }
}

/// A NOP-Out. It is immediate, so that a closed window does not delay it.
fn nop_out(cmd_sn: CmdSn) -> NopOut {
    NopOut {
        immediate: true,
        lun: Lun::default(),
        itt: Itt::NONE,
        ttt: Ttt::NONE,
        cmd_sn,
        // Filled in when the PDU is pulled.
        exp_stat_sn: StatSn::default(),
        data_segment_bytes: 0,
    }
}

impl Session {
    /// Pings the target on `lane`. Does nothing while another ping awaits its answer, or if the lane is being logged
    /// out or closed.
    pub fn ping(&mut self, now: Instant, lane: LaneId) {
        self.send_ping(now, lane, false);
    }

    /// As [`Self::ping`], soon after the last traffic on `lane`: the network repairs a loss when something follows. The
    /// answer says nothing of reads, whose data may still be on its way from the medium. While another ping awaits its
    /// answer, one more follows. Returns whether anything is to be sent.
    ///
    /// Each asks for an answer, because tgt 1.0.85 stops sending after a NOP-Out that asks for none until something else
    /// arrives. The responses behind it wait, and all that other initiators ask of the unit waits for them.
    pub fn probe(&mut self, now: Instant, lane: LaneId) -> bool {
        self.send_ping(now, lane, true)
    }

    fn send_ping(&mut self, now: Instant, lane: LaneId, is_probe: bool) -> bool {
        let cmd_sn = self.window.current();
        // A probe comes early, and must not shorten the target's time to answer.
        let counts_from = if is_probe { now + self.limits.ping_after } else { now };
        let Some(lane) = self.lanes.get_mut(lane) else { return false };
        let follows = lane.pings.ping.is_some();
        if matches!(lane.phase, Phase::LoggingOut | Phase::Closing)
            || follows && !(is_probe && lane.pings.probes.len() < PROBES_MAX)
        {
            return false;
        }
        let itt = self.request_tags.take();
        if follows {
            lane.pings.probes.push(itt);
            lane.liveness.ping_followed();
        } else {
            let ask = Ask::new(now);
            lane.pings.ping =
                Some(Ping { itt, cmd_sn, asked_at: now, number: None, reveals: None, ask, is_probe });
            lane.liveness.ask(now, counts_from);
        }
        lane.push(Request::Nop(NopOut { itt, ..nop_out(cmd_sn) }));
        self.counters.pings += 1;
        true
    }

    /// Pings a lane that has been silent too long, or gives it up.
    pub(super) fn lane_is_silent(&mut self, now: Instant, lane: LaneId) {
        let recovers = self.recovers();
        let Some(place) = self.lanes.get_mut(lane) else { return };
        let patience = place.patience(&self.limits, recovers);
        match place.liveness.measure(now, &patience) {
            // A timer of its own repeats a ping that may be lost.
            Measure::None | Measure::Late => {}
            Measure::Ping => self.ping(now, lane),
            Measure::GiveUp => self.fail_lane(lane, Fault::Timeout("a ping")),
        }
    }

    /// Sends a ping once more.
    pub(super) fn ping_again(&mut self, now: Instant, lane: LaneId) {
        if let Some(place) = self.lanes.get_mut(lane) {
            let again = place.repeat_ping(now);
            place.outgoing.extend(again.map(Request::Nop));
        }
    }

    /// Takes an answer to a ping, a ping to be answered, or mere news of the window, which the caller has taken
    /// already.
    pub(super) fn receive_nop_in(&mut self, now: Instant, lane: LaneId, pdu: &NopIn) -> Result<(), Fault> {
        // In a split session, only what comes with the responses is one of them; elsewhere a StatSN says nothing, as the
        // responses before it may still be under way.
        let is_numbered = self.lanes.numbers_responses(lane);
        if pdu.itt.is_some() {
            if is_numbered && self.receive_status(lane, pdu.stat_sn)? == Arrival::Repeated {
                return Ok(());
            }
            return self.receive_answer(now, lane, pdu);
        }
        if is_numbered {
            self.told_next_status(lane, pdu.stat_sn)?;
        }
        let cmd_sn = self.window.current();
        let Some(lane) = self.lanes.get_mut(lane) else { return Ok(()) };
        if pdu.ttt.is_some() {
            lane.pings.answers += 1;
            if lane.pings.answers > ANSWERS_MAX {
                return Err(Fault::Limit("pings that wait for an answer"));
            }
            lane.push(Request::Nop(NopOut { lun: pdu.lun, ttt: pdu.ttt, ..nop_out(cmd_sn) }));
        }
        Ok(())
    }

    fn receive_answer(&mut self, now: Instant, lane: LaneId, pdu: &NopIn) -> Result<(), Fault> {
        let is_expected = self.end_ping(now, lane, pdu.itt, pdu.window.exp_cmd_sn);
        if is_expected { Ok(()) } else { self.late_answer(Question::Ping) }
    }

    /// Notes what the answer to a ping can tell that leaves `lane` now, if it leaves for the first time.
    pub(super) fn ping_leaves(&mut self, lane: LaneId, itt: Itt) {
        if let Some(ping) = self.lanes.get_mut(lane).and_then(|lane| lane.pings.not_left(itt)) {
            ping.reveals = self.unacknowledged.first_in_doubt(lane, &self.tasks);
        }
    }

    /// Ends a ping, whether it was answered or rejected: both show that the target has read what preceded it on the
    /// lane, and the command that it expected then. `false` if no such ping is outstanding.
    pub(super) fn end_ping(&mut self, now: Instant, lane: LaneId, itt: Itt, exp_cmd_sn: CmdSn) -> bool {
        let Some(place) = self.lanes.get_mut(lane) else { return true };
        if let Some(at) = place.pings.probes.iter().position(|probe| *probe == itt) {
            place.pings.probes.swap_remove(at);
            return true;
        }
        let Some(ping) = place.pings.ping.take_if(|ping| ping.itt == itt) else { return false };
        place.liveness.answered(now);
        if self.recovers() {
            let lost = ping.reveals.filter(|cmd_sn| *cmd_sn == exp_cmd_sn);
            self.retry_lost_command(now, lane, ping.number.unwrap_or_default(), lost);
            if !ping.is_probe {
                self.ask_for_tails(lane, ping.asked_at);
            }
        }
        true
    }

    /// Acknowledges the responses that came on `lane` at once, by a NOP-Out (§11.18).
    pub(super) fn acknowledge(&mut self, lane: LaneId) {
        let cmd_sn = self.window.current();
        if let Some(lane) = self.lanes.get_mut(lane)
            && lane.statuses.owed() > 0
        {
            lane.statuses.acknowledge();
            lane.push(Request::Nop(nop_out(cmd_sn)));
        }
    }
}

impl Lane {
    /// Notes that a NOP-Out was pulled as PDU `number` of the lane.
    pub(super) fn nop_pulled(&mut self, pdu: &NopOut, number: u64) {
        if pdu.ttt.is_some() {
            self.pings.answers -= 1;
        } else if let Some(ping) = self.pings.not_left(pdu.itt) {
            ping.number = Some(number);
            self.liveness.ping_pulled(number);
        }
    }

    /// The ping to send once more; `None` while it has not left for the first time. Repetitions are not limited: only
    /// silence ends a lane.
    fn repeat_ping(&mut self, now: Instant) -> Option<NopOut> {
        let ping = self.pings.ping.as_mut()?;
        let has_left = self.liveness.ping_has_left();
        if !has_left || !ping.ask.again(now) {
            ping.ask = Ask::new(now);
        }
        if !has_left {
            return None;
        }
        self.liveness.ask_again(now);
        Some(NopOut { itt: ping.itt, ..nop_out(ping.cmd_sn) })
    }
}
