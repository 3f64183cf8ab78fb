//! One connection of a session: its sequence numbers, its queues, and the answers that it awaits.

use super::event::LaneState;
use super::load::Load;
use super::logout::Logout;
use super::outgoing::{Outgoing, Request};
use super::ping::Pings;
use super::status_sequence::StatusSequence;
use super::text::TextExchange;
use crate::inflow::Inflow;
use crate::lanes::{Lanes, Roled};
use crate::liveness::Liveness;
use crate::parameters::{ConnectionParameters, Established, LaneRole};
use crate::seam::{LaneLoss, Transmit};
use pdu::{BufferId, Cid, Duration, Header, Instant, LaneId, LogoutReason, StatSn, TargetPdu};
use std::collections::VecDeque;

/// How far a lane's life has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The lane takes commands.
    Open,
    /// The lane is logged out once nothing is outstanding on it.
    Draining,
    /// The lane's logout has been requested and not been answered.
    LoggingOut,
    /// The owner has been told to close it.
    Closing,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) cid: Cid,
    pub(super) connection: ConnectionParameters,
    pub(super) role: LaneRole,
    pub(super) phase: Phase,
    /// The loss that [`super::Event::CloseLane`] named, once the owner has been told to close the lane.
    pub(super) closing: Option<LaneLoss>,
    pub(super) statuses: StatusSequence,
    pub(super) outgoing: Outgoing,
    /// The PDU whose data segment is arriving.
    pub(super) incoming: Option<TargetPdu>,
    /// The buffer that this data segment goes into, if its task has ended meanwhile.
    pub(super) held: Option<BufferId>,
    /// Lengths of the PDUs that were pulled and have not left.
    unsent: VecDeque<u32>,
    unsent_bytes: u64,
    /// Number of PDUs that have left.
    left_pdus: u64,
    pub(super) load: Load,
    pub(super) liveness: Liveness,
    pub(super) inflow: Inflow,
    pub(super) pings: Pings,
    /// Number of SNACKs that have not been pulled.
    pub(super) snacks: u32,
    pub(super) text: Option<TextExchange>,
    /// The logout request that this lane carries.
    pub(super) logout: Option<Logout>,
    /// Time2Wait and Time2Retain from the target's message that it drops this connection, if one came.
    pub(super) drop_told: Option<(Duration, Duration)>,
    /// When the target stops waiting for a logout that it asked for.
    pub(super) logout_by: Option<Instant>,
}

impl Lane {
    pub(super) fn new(now: Instant, established: &Established) -> Self {
        Self {
            cid: established.cid,
            connection: established.connection,
            role: established.role,
            phase: Phase::Open,
            closing: None,
            statuses: StatusSequence::new(established.stat_sn),
            outgoing: Outgoing::default(),
            incoming: None,
            held: None,
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            left_pdus: 0,
            load: Load::default(),
            liveness: Liveness::new(now),
            inflow: Inflow::new(now),
            pings: Pings::default(),
            snacks: 0,
            text: None,
            logout: None,
            drop_told: None,
            logout_by: None,
        }
    }

    pub(super) fn state(&self) -> LaneState {
        LaneState {
            accepts_commands: self.phase == Phase::Open && self.role.takes_requests(),
            accepts_orphans: false,
            outstanding_commands: self.load.tasks(),
            outstanding_out_bytes: self.load.out_bytes(),
            outstanding_in_bytes: self.load.in_bytes(),
            unsent_bytes: self.unsent_bytes,
            is_receiving: self.incoming.is_some(),
        }
    }

    pub(super) fn push(&mut self, request: Request) {
        self.outgoing.push_request(request);
    }

    /// Counts a PDU that was pulled.
    pub(super) fn pulled(&mut self, transmit: &Transmit) {
        let header_bytes = Header::BHS_BYTES + transmit.header.ahs().len();
        let bytes = u32::try_from(header_bytes + transmit.payload.bytes()).unwrap_or(u32::MAX);
        self.unsent.push_back(bytes);
        self.unsent_bytes += u64::from(bytes);
    }

    /// Notes that the first `pdus` of the pulled PDUs have left.
    pub(super) fn left(&mut self, now: Instant, pdus: u32) {
        for _ in 0..pdus {
            let Some(bytes) = self.unsent.pop_front() else { break };
            self.unsent_bytes -= u64::from(bytes);
            self.left_pdus += 1;
        }
        self.liveness.left(now, self.left_pdus);
    }

    /// The number that the next pulled PDU will have on this lane.
    pub(super) fn next_pdu(&self) -> u64 {
        self.left_pdus + self.unsent.len() as u64 + 1
    }

    /// Completes a request that needs no task, as it leaves. It acknowledges all responses before `exp_stat_sn`.
    pub(super) fn pull_request(&mut self, request: Request, exp_stat_sn: StatSn) -> Option<Transmit> {
        if let Request::Nop(pdu) = &request {
            let number = self.next_pdu();
            self.nop_pulled(pdu, number);
        }
        if matches!(request, Request::Snack(..)) {
            self.snacks -= 1;
        }
        request.emit(exp_stat_sn)
    }
}

impl Roled for Lane {
    fn role(&self) -> LaneRole {
        self.role
    }

    fn is_usable(&self) -> bool {
        self.phase != Phase::Closing
    }
}

impl Lanes<Lane> {
    /// The ExpStatSN for a PDU that leaves on this lane: it acknowledges the responses to this lane's requests.
    pub(super) fn acknowledge(&mut self, lane: LaneId) -> StatSn {
        let responses = self.of_responses(lane).unwrap_or(lane);
        self.get_mut(responses).map(|lane| lane.statuses.acknowledge()).unwrap_or_default()
    }

    /// As [`Self::acknowledge`], for a request; one that removes another connection acknowledges nothing here.
    pub(super) fn acknowledge_by(&mut self, lane: LaneId, request: &Request) -> StatSn {
        match request {
            Request::Logout(pdu) if pdu.reason == LogoutReason::RemoveConnectionForRecovery => {
                pdu.exp_stat_sn
            }
            _ => self.acknowledge(lane),
        }
    }
}
