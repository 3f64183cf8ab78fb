//! How a peer breaks the protocol in full feature phase, and how this end answers.
//!
//! During a login the counterparts are [`crate::login::target::Refusal`], with its status (RFC 7143 §11.13.5), and
//! [`crate::login::initiator::Failure`].

use pdu::{InvalidPdu, RejectReason};

/// A peer's breach of the protocol. First come breaches by either end, then those by initiators, then those by targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerFault {
    /// A header, or the fixed part of a data segment, that breaks the standard.
    #[error("invalid PDU: {0} (RFC 7143 §7.7)")]
    Format(#[from] InvalidPdu),
    /// More data in one PDU than this end declared to take.
    #[error("a data segment longer than MaxRecvDataSegmentLength (RFC 7143 §13.12)")]
    SegmentTooLong,
    /// A Login Request or Login Response on a connection that is logged in.
    #[error("a login PDU in full feature phase (RFC 7143 §6.3)")]
    LoginInFullFeature,
    /// A PDU on a connection of a split session that does not carry such PDUs, or before all connections are there.
    #[error("a PDU that this connection of a split session does not carry (RFC 7143 §6.2, key SplitLanes)")]
    LaneMisused,

    /// Immediate data that was not negotiated.
    #[error("immediate data although ImmediateData=No (RFC 7143 §13.11)")]
    ImmediateDataForbidden,
    /// Immediate data that exceeds FirstBurstLength or the command's data.
    #[error("more immediate data than FirstBurstLength or the command's data (RFC 7143 §13.14)")]
    ImmediateDataTooLong,
    /// A command that announces unsolicited Data-Out, which InitialR2T=Yes forbids.
    #[error("unsolicited data although InitialR2T=Yes (RFC 7143 §13.10)")]
    UnsolicitedDataForbidden,
    /// Data-Out on another connection than its command's.
    #[error("Data-Out on another connection than its command (RFC 7143 §4.2.5.1)")]
    DataOutElsewhere,
    /// Data-Out that does not continue its sequence.
    #[error("Data-Out at another offset than its turn (RFC 7143 §13.18)")]
    DataOutOffset,
    /// Data-Out that runs beyond its sequence.
    #[error("more Data-Out than asked for (RFC 7143 §11.8.4)")]
    DataOutTooLong,
    /// The final Data-Out of a sequence came although data of the sequence is missing.
    #[error("less Data-Out than asked for (RFC 7143 §11.8.4)")]
    DataOutTooShort,
    /// Data-Out that no R2T asked for, and no command announced.
    #[error("Data-Out that was not asked for (RFC 7143 §11.7.4)")]
    DataOutUnasked,
    /// A command with the tag of a task that has not ended.
    #[error("an Initiator Task Tag that is in use (RFC 7143 §11.2.1.8)")]
    TagInUse,
    /// A PDU other than Text, Logout and NOP-Out in a discovery session.
    #[error("a PDU that has no place in a discovery session (RFC 7143 §4.3)")]
    NotForDiscovery,

    /// A task's PDU on another connection than the task's own.
    #[error("a task's PDU on another connection (RFC 7143 §4.2.5.1)")]
    TaskElsewhere,
    /// A PDU of a task whose command has not left.
    #[error("a PDU for a command that was not sent (RFC 7143 §11.2.1.8)")]
    TaskNotSent,
    /// An R2T that runs beyond the data that its command writes.
    #[error("an R2T beyond the data of its command (RFC 7143 §11.8.4)")]
    R2tBeyondData,
    /// An R2T for more than one burst.
    #[error("an R2T for more than MaxBurstLength (RFC 7143 §13.13)")]
    R2tTooLong,
    /// An R2T with a wrong number, at error recovery level 0.
    #[error("an R2TSN out of order (RFC 7143 §11.8.2)")]
    R2tOutOfOrder,
    /// More outstanding R2Ts than were negotiated.
    #[error("more R2Ts than MaxOutstandingR2T (RFC 7143 §13.17)")]
    TooManyR2ts,
    /// Data for a command that reads none.
    #[error("Data-In for a command that reads nothing (RFC 7143 §11.7)")]
    DataInForbidden,
    /// Data that runs beyond what its command reads.
    #[error("Data-In beyond the data of its command (RFC 7143 §11.7.6)")]
    DataInBeyondData,
    /// A Data-In PDU with a wrong number, at error recovery level 0.
    #[error("a DataSN out of order (RFC 7143 §11.7.5)")]
    DataSnOutOfOrder,
    /// Numbered data that does not fit between its neighbours.
    #[error("Data-In out of order (RFC 7143 §13.18)")]
    DataInOutOfOrder,
    /// A response with a wrong number, at error recovery level 0.
    #[error("a StatSN out of order (RFC 7143 §4.2.2.2)")]
    StatSnOutOfOrder,
    /// A response whose ExpDataSN counts more data PDUs than the target sent.
    #[error("a response that counts more data than came (RFC 7143 §11.4.8)")]
    DataMissing,
    /// An answer to a request that was not made, or was answered.
    #[error("an answer to {0} that was not asked for (RFC 7143 §11.2.1.8)")]
    AnswerUnasked(Question),
    /// A Reject for a reason that was removed from the standard.
    #[error("a negotiation reset (RFC 7143 §11.17.1)")]
    NegotiationReset,
    /// A Reject that does not say what it rejects.
    #[error("a Reject without the header of what it rejects (RFC 7143 §11.17.4)")]
    RejectWithoutHeader,
    /// The target refused to send an unacknowledged response again.
    #[error("a response that cannot be sent again (RFC 7143 §7.8)")]
    StatusForgotten,
}

/// A request that one PDU answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// NOP-Out, answered by NOP-In.
    Ping,
    /// Text Request, answered by Text Response.
    Text,
    /// Logout Request, answered by Logout Response.
    Logout,
    /// Task Management Function Request, answered by Task Management Function Response.
    TaskManagement,
}

impl core::fmt::Display for Question {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::Ping => "a ping",
            Self::Text => "a text",
            Self::Logout => "a logout",
            Self::TaskManagement => "a task management function",
        })
    }
}

/// Which end broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offender {
    /// The initiator broke it, as a target finds.
    Initiator,
    /// The target broke it, as an initiator finds.
    Target,
}

/// What ends with a fault (RFC 7143 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recovery {
    /// Only the PDU is rejected: the next one can still be read.
    Pdu,
    /// The connection is closed. Its tasks go on elsewhere at error recovery level 2, else the session ends with it.
    Connection,
    /// The session ends: the peer would do the same on any connection.
    Session,
}

impl PeerFault {
    /// The Reject reason for an initiator's fault (§11.17.1). `None` for faults of targets, because an initiator cannot
    /// send a Reject.
    #[must_use]
    pub const fn reject_reason(self) -> Option<RejectReason> {
        match self {
            Self::Format(invalid) => Some(invalid.reject_reason()),
            Self::SegmentTooLong
            | Self::LoginInFullFeature
            | Self::LaneMisused
            | Self::ImmediateDataForbidden
            | Self::ImmediateDataTooLong
            | Self::UnsolicitedDataForbidden
            | Self::DataOutElsewhere
            | Self::DataOutOffset
            | Self::DataOutTooLong
            | Self::DataOutTooShort
            | Self::NotForDiscovery => Some(RejectReason::ProtocolError),
            Self::DataOutUnasked => Some(RejectReason::InvalidPduField),
            Self::TagInUse => Some(RejectReason::TaskInProgress),
            Self::TaskElsewhere
            | Self::TaskNotSent
            | Self::R2tBeyondData
            | Self::R2tTooLong
            | Self::R2tOutOfOrder
            | Self::TooManyR2ts
            | Self::DataInForbidden
            | Self::DataInBeyondData
            | Self::DataSnOutOfOrder
            | Self::DataInOutOfOrder
            | Self::StatSnOutOfOrder
            | Self::DataMissing
            | Self::AnswerUnasked(_)
            | Self::NegotiationReset
            | Self::RejectWithoutHeader
            | Self::StatusForgotten => None,
        }
    }

    /// What ends with the fault. A PDU with a wrong layout casts doubt on the next one's, so its connection ends
    /// (§7.7). A target's fault ends the session, because it would recur on any connection (§7.13); but a response that
    /// one connection has lost may come on another (§7.8).
    #[must_use]
    pub const fn recovery(self, offender: Offender) -> Recovery {
        match self {
            Self::Format(invalid) => match (offender, invalid.reject_reason()) {
                (Offender::Target, _) => Recovery::Session,
                (Offender::Initiator, RejectReason::ProtocolError) => Recovery::Connection,
                (Offender::Initiator, _) => Recovery::Pdu,
            },
            Self::SegmentTooLong | Self::LoginInFullFeature | Self::LaneMisused => match offender {
                Offender::Initiator => Recovery::Connection,
                Offender::Target => Recovery::Session,
            },
            Self::DataOutUnasked | Self::TagInUse | Self::NotForDiscovery => Recovery::Pdu,
            Self::ImmediateDataForbidden
            | Self::ImmediateDataTooLong
            | Self::UnsolicitedDataForbidden
            | Self::DataOutElsewhere
            | Self::DataOutOffset
            | Self::DataOutTooLong
            | Self::DataOutTooShort
            | Self::StatusForgotten => Recovery::Connection,
            Self::TaskElsewhere
            | Self::TaskNotSent
            | Self::R2tBeyondData
            | Self::R2tTooLong
            | Self::R2tOutOfOrder
            | Self::TooManyR2ts
            | Self::DataInForbidden
            | Self::DataInBeyondData
            | Self::DataSnOutOfOrder
            | Self::DataInOutOfOrder
            | Self::StatSnOutOfOrder
            | Self::DataMissing
            | Self::AnswerUnasked(_)
            | Self::NegotiationReset
            | Self::RejectWithoutHeader => Recovery::Session,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdu::Field;

    /// The fault after this one in declaration order. A new variant does not compile until it is listed here.
    fn next(fault: PeerFault) -> Option<PeerFault> {
        use PeerFault as F;
        Some(match fault {
            F::Format(_) => F::SegmentTooLong,
            F::SegmentTooLong => F::LoginInFullFeature,
            F::LoginInFullFeature => F::LaneMisused,
            F::LaneMisused => F::ImmediateDataForbidden,
            F::ImmediateDataForbidden => F::ImmediateDataTooLong,
            F::ImmediateDataTooLong => F::UnsolicitedDataForbidden,
            F::UnsolicitedDataForbidden => F::DataOutElsewhere,
            F::DataOutElsewhere => F::DataOutOffset,
            F::DataOutOffset => F::DataOutTooLong,
            F::DataOutTooLong => F::DataOutTooShort,
            F::DataOutTooShort => F::DataOutUnasked,
            F::DataOutUnasked => F::TagInUse,
            F::TagInUse => F::NotForDiscovery,
            F::NotForDiscovery => F::TaskElsewhere,
            F::TaskElsewhere => F::TaskNotSent,
            F::TaskNotSent => F::R2tBeyondData,
            F::R2tBeyondData => F::R2tTooLong,
            F::R2tTooLong => F::R2tOutOfOrder,
            F::R2tOutOfOrder => F::TooManyR2ts,
            F::TooManyR2ts => F::DataInForbidden,
            F::DataInForbidden => F::DataInBeyondData,
            F::DataInBeyondData => F::DataSnOutOfOrder,
            F::DataSnOutOfOrder => F::DataInOutOfOrder,
            F::DataInOutOfOrder => F::StatSnOutOfOrder,
            F::StatSnOutOfOrder => F::DataMissing,
            F::DataMissing => F::AnswerUnasked(Question::Ping),
            F::AnswerUnasked(_) => F::NegotiationReset,
            F::NegotiationReset => F::RejectWithoutHeader,
            F::RejectWithoutHeader => F::StatusForgotten,
            F::StatusForgotten => return None,
        })
    }

    fn format(field: Field) -> PeerFault {
        PeerFault::Format(InvalidPdu { opcode: 0x01, field, found: 1 })
    }

    fn all() -> impl Iterator<Item = PeerFault> {
        let others = core::iter::successors(next(format(Field::Flags)), |fault| next(*fault));
        Field::ALL.map(format).into_iter().chain(others)
    }

    #[test]
    fn every_fault_cites_the_standard_and_no_two_say_the_same() {
        let mut said: Vec<String> = all().map(|fault| fault.to_string()).collect();
        assert!(said.iter().all(|what| what.contains("(RFC 7143 §")), "{said:?}");
        let count = said.len();
        said.sort();
        said.dedup();
        assert_eq!((said.len(), count), (count, Field::ALL.len() + 29));
    }

    #[test]
    fn a_protocol_error_ends_the_connection_and_any_other_reject_concerns_its_pdu_alone() {
        for fault in all().filter(|fault| *fault != PeerFault::NotForDiscovery) {
            let Some(reason) = fault.reject_reason() else { continue };
            let ends = reason == RejectReason::ProtocolError;
            let expected = if ends { Recovery::Connection } else { Recovery::Pdu };
            assert_eq!(fault.recovery(Offender::Initiator), expected, "{fault}");
        }
    }

    #[test]
    fn what_no_initiator_can_do_ends_the_session_unless_another_connection_can_bring_what_was_lost() {
        for fault in all().filter(|fault| fault.reject_reason().is_none()) {
            let heals = fault == PeerFault::StatusForgotten;
            let expected = if heals { Recovery::Connection } else { Recovery::Session };
            assert_eq!(fault.recovery(Offender::Target), expected, "{fault}");
        }
    }

    #[test]
    fn what_either_end_can_do_ends_the_session_if_a_target_does_it() {
        let common = [PeerFault::SegmentTooLong, PeerFault::LoginInFullFeature, PeerFault::LaneMisused];
        for fault in Field::ALL.map(format).into_iter().chain(common) {
            assert_eq!(fault.recovery(Offender::Target), Recovery::Session, "{fault}");
        }
    }
}
