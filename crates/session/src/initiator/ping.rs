//! NOP-Out and NOP-In: whether the other end still answers (RFC 7143 §11.18, §11.19).

use super::ask::Ask;
use super::data_sequence::Arrival;
use super::lane::{Lane, Phase};
use super::outgoing::Request;
use super::session::Session;
use crate::parameters::InitiatorLimits;
use crate::seam::Fault;
use pdu::{CmdSn, Instant, Itt, LaneId, Lun, NopIn, NopOut, StatSn, Ttt};

/// The most answers to a target's pings that wait on one lane. Only a target that pings without reading reaches it.
const ANSWERS_MAX: u32 = 64;

/// What a lane knows of its peer's life.
#[derive(Debug)]
pub(super) struct Liveness {
    heard_at: Instant,
    sent_at: Instant,
    ping: Option<Ping>,
    /// Answers to the target's pings that have not been pulled.
    answers: u32,
}

/// A ping that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Ping {
    itt: Itt,
    cmd_sn: CmdSn,
    asked_at: Instant,
    progress: Progress,
    /// The first PDU of its lane that carried it.
    number: Option<u64>,
    ask: Ask,
}

#[derive(Clone, Copy, Debug)]
enum Progress {
    Queued,
    /// Pulled as the PDU of this number on its lane.
    Pulled {
        number: u64,
    },
    Left {
        at: Instant,
    },
}

impl Liveness {
    pub(super) fn new(now: Instant) -> Self {
        Self { heard_at: now, sent_at: now, ping: None, answers: 0 }
    }

    pub(super) fn heard(&mut self, now: Instant) {
        self.heard_at = now;
    }

    /// When something was heard last.
    pub(super) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// When this lane must be pinged, or given up.
    ///
    /// Whatever arrives is a sign of life, not only the answer: that may stand behind much data. A ping that cannot
    /// leave counts from the last PDU that could.
    pub(super) fn deadline(&self, limits: &InitiatorLimits) -> Instant {
        let Some(ping) = self.ping else { return self.heard_at + limits.ping_after };
        let since = match ping.progress {
            Progress::Left { at } => at,
            Progress::Queued | Progress::Pulled { .. } => ping.asked_at.max(self.sent_at),
        };
        since.max(self.heard_at) + limits.ping_timeout
    }

    /// When the last request of a lane, asked for at `asked_at`, must have been answered.
    pub(super) fn deadline_from(&self, asked_at: Instant, limits: &InitiatorLimits) -> Instant {
        asked_at.max(self.heard_at).max(self.sent_at) + limits.ping_timeout
    }

    pub(super) fn is_pinging(&self) -> bool {
        self.ping.is_some()
    }

    /// When a ping that may have been lost was sent.
    pub(super) fn ping_ask(&self) -> Option<Ask> {
        self.ping.map(|ping| ping.ask)
    }

    /// The ping to send once more, if it is time; none while it has not left for the first time.
    pub(super) fn ping_again(&mut self, now: Instant) -> Result<Option<NopOut>, Fault> {
        let Some(ping) = self.ping.as_mut().filter(|ping| ping.ask.due() <= now) else { return Ok(None) };
        if !ping.ask.again(now) {
            return Err(Fault::Timeout("a ping"));
        }
        let again = matches!(ping.progress, Progress::Left { .. });
        Ok(again.then(|| NopOut { itt: ping.itt, ..nop_out(ping.cmd_sn) }))
    }

    /// PDUs have left, up to the one of this number on the lane.
    pub(super) fn sent(&mut self, now: Instant, number: u64) {
        self.sent_at = now;
        if let Some(ping) = &mut self.ping
            && let Progress::Pulled { number: of_ping } = ping.progress
            && of_ping <= number
        {
            ping.progress = Progress::Left { at: now };
        }
    }

    /// A NOP-Out was pulled as the PDU of this number on the lane.
    pub(super) fn pulled(&mut self, pdu: &NopOut, number: u64) {
        if pdu.ttt.is_some() {
            self.answers -= 1;
        } else if let Some(ping) =
            self.ping.as_mut().filter(|ping| ping.itt == pdu.itt && ping.number.is_none())
        {
            ping.number = Some(number);
            ping.progress = Progress::Pulled { number };
        }
    }
}

/// A NOP-Out; immediate, so that a closed window does not hold it up.
fn nop_out(cmd_sn: CmdSn) -> NopOut {
    NopOut {
        immediate: true,
        lun: Lun::default(),
        itt: Itt::NONE,
        ttt: Ttt::NONE,
        cmd_sn,
        // Filled in when it is pulled.
        exp_stat_sn: StatSn::default(),
        data_segment_bytes: 0,
    }
}

impl Session {
    /// Asks the target for a sign of life on `lane`. Nothing happens if one is being waited for already, or if the
    /// lane is being logged out or closed.
    pub fn ping(&mut self, now: Instant, lane: LaneId) {
        let cmd_sn = self.window.current();
        let Some(lane) = self.lanes.get_mut(&lane) else { return };
        if lane.liveness.ping.is_some() || matches!(lane.phase, Phase::LoggingOut | Phase::Closing) {
            return;
        }
        let itt = self.request_tags.take();
        lane.liveness.ping = Some(Ping {
            itt,
            cmd_sn,
            asked_at: now,
            progress: Progress::Queued,
            number: None,
            ask: Ask::new(now),
        });
        lane.push(Request::Nop(NopOut { itt, ..nop_out(cmd_sn) }));
        self.counters.pings += 1;
    }

    /// An answer to a ping, a ping to be answered, or news of the window, which has been taken.
    pub(super) fn receive_nop_in(&mut self, now: Instant, lane: LaneId, pdu: &NopIn) -> Result<(), Fault> {
        if pdu.itt.is_some() {
            if self.receive_status(lane, pdu.stat_sn)? == Arrival::Repeated {
                return Ok(());
            }
            return self.receive_answer(now, lane, pdu.itt);
        }
        self.told_next_status(lane, pdu.stat_sn)?;
        let cmd_sn = self.window.current();
        let Some(lane) = self.lanes.get_mut(&lane) else { return Ok(()) };
        if pdu.ttt.is_some() {
            lane.liveness.answers += 1;
            if lane.liveness.answers > ANSWERS_MAX {
                return Err(Fault::Limit("pings that wait for an answer"));
            }
            lane.push(Request::Nop(NopOut { lun: pdu.lun, ttt: pdu.ttt, ..nop_out(cmd_sn) }));
        }
        Ok(())
    }

    fn receive_answer(&mut self, now: Instant, lane: LaneId, itt: Itt) -> Result<(), Fault> {
        let Some(place) = self.lanes.get_mut(&lane) else { return Ok(()) };
        let Some(ping) = place.liveness.ping.take_if(|ping| ping.itt == itt) else {
            return self.late_answer("an answer to a ping that was not sent");
        };
        if self.recovers() {
            self.retry_lost_command(now, lane, ping.number.unwrap_or_default());
            self.ask_for_tails(lane, ping.asked_at);
        }
        Ok(())
    }

    /// Acknowledges the responses that came on `lane` without waiting for other traffic to do it (§11.18).
    pub(super) fn acknowledge(&mut self, lane: LaneId) {
        let cmd_sn = self.window.current();
        if let Some(lane) = self.lanes.get_mut(&lane)
            && lane.statuses.owes_acknowledgement()
        {
            lane.statuses.acknowledge();
            lane.push(Request::Nop(nop_out(cmd_sn)));
        }
    }
}

impl Lane {
    /// A ping was rejected: a sign of life too.
    pub(super) fn ping_rejected(&mut self, itt: Itt) {
        self.liveness.ping.take_if(|ping| ping.itt == itt);
    }
}
