//! A path that answers PDUs with Rejects instead of passing them on, and passes on PDUs that nobody has sent.
//!
//! In place of a PDU that it rejects, the target is given a ping, and the answer to that becomes the Reject. So the target
//! numbers the Reject among its responses, and sends it again if it is asked to.

use super::ConnectionId;
use crate::random::Random;
use pdu::{
    CmdSn, DataSn, Header, InitiatorPdu, Itt, LogoutReason, Lun, NopOut, Opcode, Reject, RejectReason, Snack,
    SnackKind, StatSn, TargetPdu, TaskManagementFunction, Ttt,
};
use std::collections::{HashMap, HashSet};

/// What is done to the next PDU that it can be done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meddling {
    /// A PDU of this kind is rejected.
    Reject(Opcode, RejectReason),
    /// Something precedes it.
    Precede(Stranger),
}

/// A PDU that no initiator has sent, and that a target must reject without any harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranger {
    /// It has an opcode for vendors' own use.
    UnknownOpcode,
    /// It asks for data of a task that there is not.
    DataSnack,
    /// It acknowledges data of a transfer that there is not.
    DataAck,
}

/// What arrives in place of a PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The PDU is lost.
    Nothing,
    /// Another, with this data.
    Other(Header, Vec<u8>),
    /// Another, and then the PDU itself.
    Preceded(Header),
}

/// A PDU that was rejected on its way, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The header of the rejected PDU.
    pub header: Header,
    /// The reason that its initiator is told.
    pub reason: RejectReason,
}

/// No initiator comes to these tags: they count from a random one, and a world makes some thousands.
const TAGS_FROM: u32 = 0x5eed_0000;

/// One of the opcodes for vendors' own use (RFC 7143 §11.2.1.2).
const VENDORS_OPCODE: u8 = 0x1c;

/// What is wanted of the paths of a network, and what they have done.
#[derive(Debug, Default)]
pub struct Meddler {
    wanted: Vec<Meddling>,
    rejected: HashMap<u32, Rejected>,
    /// The Rejects by their places among the responses of their connections.
    rejects: HashMap<(ConnectionId, StatSn), u32>,
    /// Commands whose unsolicited data has nowhere to go.
    cut_off: HashSet<(ConnectionId, Itt)>,
}

impl Meddler {
    /// Meddles with one more PDU.
    pub fn want(&mut self, meddling: Meddling) {
        self.wanted.push(meddling);
    }

    /// Lets everything pass again, but for answers to what did not.
    pub fn stop(&mut self) {
        self.wanted.clear();
    }

    /// The PDU that a Reject speaks of, if a path has made it.
    #[must_use]
    pub fn rejected(&self, connection: ConnectionId, stat_sn: StatSn) -> Option<&Rejected> {
        self.rejected.get(self.rejects.get(&(connection, stat_sn))?)
    }

    /// An initiator sends this.
    pub fn initiator_sends(&mut self, connection: ConnectionId, header: &Header) -> Option<Instead> {
        if self.wanted.is_empty() && self.cut_off.is_empty() {
            return None;
        }
        let pdu = InitiatorPdu::parse(header).ok()?;
        let place = (connection, header.task_tag());
        match &pdu {
            InitiatorPdu::DataOut(data) if data.ttt == Ttt::NONE && self.cut_off.contains(&place) => {
                return Some(Instead::Nothing);
            }
            InitiatorPdu::ScsiCommand(_) => drop(self.cut_off.remove(&place)),
            _ => {}
        }
        let chosen = self.wanted.iter().position(|meddling| meddling.suits(&pdu))?;
        let reason = match self.wanted.swap_remove(chosen) {
            Meddling::Precede(stranger) => {
                return Some(Instead::Preceded(stranger.header(pdu.exp_stat_sn())));
            }
            Meddling::Reject(_, reason) => reason_for(&pdu, reason),
        };
        if let InitiatorPdu::ScsiCommand(_) = pdu {
            self.cut_off.insert(place);
        }
        let tag = TAGS_FROM + u32::try_from(self.rejected.len()).unwrap_or_default();
        self.rejected.insert(tag, Rejected { header: header.clone(), reason });
        let ping = NopOut {
            immediate: true,
            lun: Lun::default(),
            itt: Itt(tag),
            ttt: Ttt::NONE,
            cmd_sn: CmdSn::default(),
            exp_stat_sn: pdu.exp_stat_sn(),
            data_segment_bytes: 0,
        };
        Some(Instead::Other(ping.emit(), Vec::new()))
    }

    /// A target sends this.
    pub fn target_sends(&mut self, connection: ConnectionId, header: &Header) -> Option<Instead> {
        if self.rejected.is_empty() {
            return None;
        }
        let Ok(TargetPdu::NopIn(pong)) = TargetPdu::parse(header) else { return None };
        let Rejected { header, reason } = self.rejected.get(&pong.itt.0)?;
        self.rejects.insert((connection, pong.stat_sn), pong.itt.0);
        let mut data = Vec::new();
        header.write_to(&mut data);
        let reject = Reject {
            reason: *reason,
            stat_sn: pong.stat_sn,
            window: pong.window,
            next_data_or_r2t_sn: 0,
            data_segment_bytes: u32::try_from(data.len()).unwrap_or(u32::MAX),
        };
        Some(Instead::Other(reject.emit(), data))
    }
}

impl Meddling {
    /// One that is fair to initiators and targets of an error recovery level.
    #[must_use]
    pub fn draw(random: &mut Random, recovery_level: u8) -> Self {
        use RejectReason::{
            CommandNotSupported, DataDigestError, ImmediateCommandReject, InvalidPduField, ProtocolError,
            SnackReject, Unassigned, WaitingForLogout,
        };
        const UNASSIGNED: RejectReason = Unassigned(0x42);
        let strangers = [Stranger::UnknownOpcode, Stranger::DataSnack, Stranger::DataAck].map(Self::Precede);
        let for_good = [CommandNotSupported, ProtocolError, InvalidPduField, WaitingForLogout, UNASSIGNED];
        let commands = for_good.map(|reason| Self::Reject(Opcode::ScsiCommand, reason));
        let functions = [ImmediateCommandReject, CommandNotSupported]
            .map(|reason| Self::Reject(Opcode::TaskManagementRequest, reason));
        let pings =
            [ImmediateCommandReject, CommandNotSupported].map(|reason| Self::Reject(Opcode::NopOut, reason));
        let logouts = [Self::Reject(Opcode::LogoutRequest, ProtocolError)];
        // Only where it is repaired.
        let snacks = [SnackReject, ProtocolError].map(|reason| Self::Reject(Opcode::Snack, reason));
        let data = [Opcode::ScsiCommand, Opcode::DataOut].map(|opcode| Self::Reject(opcode, DataDigestError));
        let always = [&strangers[..], &commands, &functions, &pings, &logouts];
        let recovering = [&snacks[..], &data];
        let kinds = if recovery_level > 0 { [&always[..], &recovering].concat() } else { always.to_vec() };
        let kind = *random.choose(&kinds);
        *random.choose(kind)
    }

    fn suits(self, pdu: &InitiatorPdu) -> bool {
        let Self::Reject(opcode, reason) = self else {
            // The ExpStatSN of a logout may be of another connection (§11.14.4).
            return !matches!(pdu, InitiatorPdu::LogoutRequest(_));
        };
        match pdu {
            InitiatorPdu::ScsiCommand(pdu) => {
                let has_data = pdu.data_segment_bytes > 0;
                opcode == Opcode::ScsiCommand && (has_data || reason != RejectReason::DataDigestError)
            }
            InitiatorPdu::DataOut(_) => opcode == Opcode::DataOut,
            InitiatorPdu::NopOut(pdu) => opcode == Opcode::NopOut && pdu.itt.is_some(),
            InitiatorPdu::TaskManagementRequest(_) => opcode == Opcode::TaskManagementRequest,
            InitiatorPdu::Snack(_) => opcode == Opcode::Snack,
            InitiatorPdu::LogoutRequest(pdu) => {
                opcode == Opcode::LogoutRequest && pdu.reason != LogoutReason::RemoveConnectionForRecovery
            }
            InitiatorPdu::TextRequest(_) | InitiatorPdu::LoginRequest(_) => false,
        }
    }
}

/// The reason wanted, unless only another can be meant.
fn reason_for(pdu: &InitiatorPdu, wanted: RejectReason) -> RejectReason {
    match pdu {
        InitiatorPdu::Snack(Snack { kind: SnackKind::DataAck { .. }, .. }) => RejectReason::InvalidDataAck,
        // Why a task may not move is told by the function's own response.
        InitiatorPdu::TaskManagementRequest(pdu) if pdu.function == TaskManagementFunction::TaskReassign => {
            RejectReason::ImmediateCommandReject
        }
        _ => wanted,
    }
}

impl Stranger {
    fn header(self, exp_stat_sn: StatSn) -> Header {
        let (lun, tag) = (Lun::default(), TAGS_FROM);
        let kind = match self {
            Self::DataAck => SnackKind::DataAck { ttt: Ttt(tag), next: DataSn(1) },
            _ => SnackKind::DataOrR2t { itt: Itt(tag), begin: 0, count: 1 },
        };
        let header = Snack { kind, lun, exp_stat_sn }.emit();
        if self != Self::UnknownOpcode {
            return header;
        }
        let mut bhs = *header.bhs();
        bhs[0] = VENDORS_OPCODE;
        Header::new(bhs)
    }
}
