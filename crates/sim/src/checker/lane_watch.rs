//! One connection of a session: the numbers of its statuses (RFC 7143 §4.2.2.2), and how far they are acknowledged.

use super::asked_again::AskedAgain;
use super::tap::SessionKey;
use pdu::{Cid, DataIn, Duration, InitiatorPdu, Instant, Itt, NopOut, Snack, SnackKind, StatSn, TargetPdu};
use session::parameters::{Established, LaneRole, SplitLanes};
use std::collections::VecDeque;

/// The shortest silence that a target may break with a ping. Every world's `ping_after` is longer.
const SILENCE_MIN: Duration = Duration::from_secs(1);

/// The longest data of a read that comes with its status although the data of others has a connection of its own.
const SHORT_READ_BYTES_MAX: u32 = 4096;

#[derive(Debug)]
pub(super) struct LaneWatch {
    pub session: SessionKey,
    /// The longest data segment that each side takes, by the side that sends it.
    pub segment_bytes_max: [u32; 2],
    /// Since when the target knows it no more.
    pub gone_since: Option<Instant>,
    pub cid: Cid,
    /// What it carries of its session.
    pub role: LaneRole,
    /// The first status.
    first: StatSn,
    /// The next status.
    stat_sn: StatSn,
    /// Which statuses were asked for again, by their places behind the first.
    asked_again: AskedAgain,
    /// Whose the last statuses were, and which; the last of them has the number before `stat_sn`.
    statuses: VecDeque<(Itt, u8)>,
    /// The initiator has sent that all before this one have arrived.
    told: StatSn,
    /// The target has heard that all before this one have arrived.
    acknowledged: StatSn,
    /// When the answer to a ping acknowledged all statuses, if none has left since.
    answered_in_full: Option<Instant>,
    /// Until when it must be logged out, if it is the only one of its session and its initiator has been asked to.
    logout_by: Option<Instant>,
    /// Its initiator has logged it out.
    is_logged_out: bool,
}

impl LaneWatch {
    /// `early` is the next status, if some were sent before the initiator knew of the connection.
    pub fn new(session: SessionKey, established: &Established, early: Option<StatSn>) -> Self {
        Self {
            session,
            segment_bytes_max: [
                established.connection.send_segment_bytes_max,
                established.connection.receive_segment_bytes_max,
            ],
            gone_since: None,
            cid: established.cid,
            role: established.role,
            first: established.stat_sn,
            stat_sn: early.unwrap_or(established.stat_sn),
            asked_again: AskedAgain::default(),
            statuses: VecDeque::new(),
            told: established.stat_sn,
            acknowledged: established.stat_sn,
            answered_in_full: None,
            logout_by: None,
            is_logged_out: false,
        }
    }

    /// Whether statuses are sent on it.
    pub fn bears_statuses(&self) -> bool {
        matches!(self.role, LaneRole::Whole | LaneRole::Responses)
    }

    /// The status that a PDU of the target brings on it.
    pub fn status_number(&self, pdu: &TargetPdu) -> Option<StatSn> {
        status_number(pdu).filter(|_| self.bears_statuses())
    }

    /// The number of the next status.
    pub fn next_status(&self) -> StatSn {
        self.stat_sn
    }

    /// Each connection of a split session carries what is its own, and pings.
    ///
    /// # Errors
    /// The initiator sends something else.
    pub fn check_initiators(&self, pdu: &InitiatorPdu) -> Result<(), String> {
        let is_for_requests = !matches!(pdu, InitiatorPdu::NopOut(_));
        match self.role {
            LaneRole::Responses | LaneRole::DataIn if is_for_requests => {
                Err(format!("{pdu:?} on a connection for {}", self.role.name()))
            }
            _ => Ok(()),
        }
    }

    /// As [`Self::check_initiators`], of the target.
    ///
    /// # Errors
    /// The target sends something else.
    pub fn check_targets(&self, pdu: &TargetPdu, split: SplitLanes) -> Result<(), String> {
        let is_own = match (self.role, pdu) {
            (LaneRole::Responses, TargetPdu::DataIn(pdu)) => {
                split == SplitLanes::Two || pdu.data_segment_bytes <= SHORT_READ_BYTES_MAX
            }
            (LaneRole::Whole | LaneRole::Responses, _) | (_, TargetPdu::NopIn(_)) => true,
            (LaneRole::DataIn, TargetPdu::DataIn(DataIn { status, .. })) => status.is_none(),
            (LaneRole::Requests | LaneRole::DataIn, _) => false,
        };
        if is_own { Ok(()) } else { Err(format!("{pdu:?} on a connection for {}", self.role.name())) }
    }

    /// A status leaves. Whether it left before.
    ///
    /// # Errors
    /// It has another number than its turn, or is not what had that number before.
    pub fn send_status(&mut self, stat_sn: StatSn, pdu: &TargetPdu, level: u8) -> Result<bool, String> {
        /// Statuses that a lane remembers; what is older was acknowledged long ago.
        const STATUSES_MAX: usize = 1 << 12;
        let what = status_of(pdu);
        if stat_sn == self.stat_sn {
            self.stat_sn = stat_sn.next();
            self.answered_in_full = None;
            if level > 0 {
                self.statuses.push_back(what);
                if self.statuses.len() > STATUSES_MAX {
                    self.statuses.pop_front();
                }
            }
            return Ok(false);
        }
        if level == 0 || !stat_sn.precedes(self.stat_sn) {
            return Err(format!("StatSN {} where {} is due", stat_sn.0, self.stat_sn.0));
        }
        let age = usize::try_from(self.stat_sn.distance_from(stat_sn)).unwrap_or(usize::MAX);
        let before = self.statuses.len().checked_sub(age).and_then(|place| self.statuses.get(place));
        match before {
            Some(before) if *before != what => {
                Err(format!("StatSN {} is {what:x?} and was {before:x?}", stat_sn.0))
            }
            _ => {
                self.asked_again.send_again(stat_sn.distance_from(self.first))?;
                Ok(true)
            }
        }
    }

    /// The initiator sends this on it.
    ///
    /// # Errors
    /// It asks for statuses that it cannot miss.
    pub fn initiator_sends(&mut self, pdu: &InitiatorPdu) -> Result<(), String> {
        self.is_logged_out |= matches!(pdu, InitiatorPdu::LogoutRequest(_));
        match requested(pdu) {
            Some((begin, count)) => {
                let sent = self.stat_sn.distance_from(self.first);
                self.asked_again.check_request(begin.distance_from(self.first), count, sent)
            }
            None => Ok(()),
        }
    }

    /// The initiator has received this on it, whole or with damaged data.
    pub fn initiator_hears(&mut self, pdu: &TargetPdu, is_whole: bool) {
        if let Some(stat_sn) = self.status_number(pdu) {
            self.asked_again.arrive(stat_sn.distance_from(self.first), is_whole);
        }
        if let TargetPdu::R2t(pdu::R2t { stat_sn, .. }) | TargetPdu::NopIn(pdu::NopIn { stat_sn, .. }) = pdu
            && self.bears_statuses()
        {
            self.asked_again.learn_end(stat_sn.distance_from(self.first));
        }
    }

    /// A ping leaves: it asks for acknowledgements, or breaks a silence. At error recovery levels 1 and 2 it may ask for
    /// acknowledgements of data, which this does not count.
    ///
    /// # Errors
    /// The initiator has just answered a ping, and acknowledged every status by that.
    pub fn send_ping(&self, now: Instant, level: u8) -> Result<(), String> {
        let is_fresh = |at: Instant| now.saturating_duration_since(at) < SILENCE_MIN;
        match self.answered_in_full.filter(|at| level == 0 && is_fresh(*at)) {
            Some(_) => Err(format!("StatSN {} is acknowledged and asked for again", self.acknowledged.0)),
            None => Ok(()),
        }
    }

    /// The target has received this, `here` or on another connection of its split session.
    pub fn target_hears(&mut self, now: Instant, here: bool, pdu: &InitiatorPdu) {
        if let Some((begin, count)) = requested(pdu) {
            let sent = self.stat_sn.distance_from(self.first);
            self.asked_again.ask(begin.distance_from(self.first), count, sent);
        }
        self.acknowledged = self.acknowledged_by(pdu, self.acknowledged);
        let is_answer =
            matches!(pdu, InitiatorPdu::NopOut(NopOut { itt: Itt::NONE, ttt, .. }) if ttt.is_some());
        if here && is_answer && self.acknowledged == self.stat_sn {
            self.answered_in_full = Some(now);
        }
    }

    /// The initiator sends this, here or on another connection of its split session.
    pub fn initiator_acknowledges(&mut self, pdu: &InitiatorPdu) {
        self.told = self.acknowledged_by(pdu, self.told);
    }

    fn acknowledged_by(&self, pdu: &InitiatorPdu, before: StatSn) -> StatSn {
        // A logout may speak of another connection (§11.14.4).
        let is_own = !matches!(pdu, InitiatorPdu::LogoutRequest(logout) if logout.cid != self.cid);
        let exp_stat_sn = pdu.exp_stat_sn();
        if is_own && before.precedes(exp_stat_sn) { exp_stat_sn } else { before }
    }

    /// Whether the initiator has sent that a status has arrived.
    pub fn has_told(&self, stat_sn: StatSn) -> bool {
        stat_sn.precedes(self.told)
    }

    /// The initiator is asked to log it out, and its session with it (RFC 7143 §11.9.1).
    pub fn ask_for_logout(&mut self, by: Instant) {
        self.logout_by.get_or_insert(by);
    }

    /// Whether the initiator has logged it out because it was asked to.
    pub fn obeys(&self) -> bool {
        self.logout_by.is_some() && self.is_logged_out
    }

    /// Whether the initiator should have logged it out.
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.logout_by.is_some_and(|by| by < now) && !self.is_logged_out
    }

    /// Whether the target knows it no more.
    pub fn is_gone(&self) -> bool {
        self.gone_since.is_some()
    }

    /// Whether the target knows that a status has arrived.
    pub fn is_acknowledged(&self, stat_sn: StatSn) -> bool {
        stat_sn.precedes(self.acknowledged)
    }
}

/// The statuses that a SNACK asks for.
fn requested(pdu: &InitiatorPdu) -> Option<(StatSn, u32)> {
    match pdu {
        InitiatorPdu::Snack(Snack { kind: SnackKind::Status { begin, count }, .. }) => Some((*begin, *count)),
        _ => None,
    }
}

/// Whose status a PDU brings, and which.
fn status_of(pdu: &TargetPdu) -> (Itt, u8) {
    match pdu {
        TargetPdu::DataIn(pdu) => (pdu.itt, pdu.status.map_or(0, |status| status.status)),
        TargetPdu::ScsiResponse(pdu) => (pdu.itt, pdu.status),
        TargetPdu::TaskManagementResponse(pdu) => (pdu.itt, 0),
        TargetPdu::TextResponse(pdu) => (pdu.itt, 0),
        TargetPdu::LogoutResponse(pdu) => (pdu.itt, 0),
        TargetPdu::NopIn(pdu) => (pdu.itt, 0),
        _ => (Itt::NONE, 0),
    }
}

/// The StatSN of PDUs that use one up (RFC 7143 §4.2.2.2).
pub(super) fn status_number(pdu: &TargetPdu) -> Option<StatSn> {
    match pdu {
        TargetPdu::DataIn(pdu) => pdu.status.map(|status| status.stat_sn),
        TargetPdu::ScsiResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::TaskManagementResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::TextResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::LogoutResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::AsyncMessage(pdu) => Some(pdu.stat_sn),
        TargetPdu::Reject(pdu) => Some(pdu.stat_sn),
        TargetPdu::NopIn(pdu) if pdu.itt != Itt::NONE => Some(pdu.stat_sn),
        TargetPdu::NopIn(_) | TargetPdu::R2t(_) | TargetPdu::LoginResponse(_) => None,
    }
}
