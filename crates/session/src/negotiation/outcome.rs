//! The outcome of a negotiation, with a check of values that must fit together (RFC 7143 §6.2).

use super::engine::Role;
use super::rule::{Key, RULES};
use super::{Negotiation, NegotiationError};
use crate::parameters::{ConnectionParameters, SessionParameters, SessionType};

impl Negotiation {
    /// Ends the negotiation. For a connection that joins a session, only the connection's parameters are meaningful.
    ///
    /// A key that was proposed and not answered keeps its default: only an answer changes a value (§6.2).
    ///
    /// # Errors
    /// [`NegotiationError`] if this side cannot work with a value, or two values contradict each other.
    pub fn finish(&mut self) -> Result<(SessionParameters, ConnectionParameters), NegotiationError> {
        self.take_determined_booleans();
        if self.role == Role::Initiator {
            self.use_less_than_allowed();
        }
        if let Some(key) = self.discontent() {
            return Err(NegotiationError::NoAgreement(key));
        }
        if self.leading && self.session_type == SessionType::Normal {
            self.check_integrity()?;
        }
        let session = SessionParameters::of(self.session_type, |key| self.value(key));
        Ok((session, self.connection_parameters()))
    }

    /// Applies proposals of booleans that decide the outcome alone, which need no answer (§6.2.2).
    fn take_determined_booleans(&mut self) {
        let offer = self.offer;
        if self.is_proposed(Key::ImmediateData.rule()) && !offer.immediate_data {
            self.entries[Key::ImmediateData as usize].value = 0;
        }
        if self.is_proposed(Key::InitialR2T.rule()) && offer.initial_r2t {
            self.entries[Key::InitialR2T as usize].value = 1;
        }
    }

    /// Lowers burst lengths at the initiator. They are limits on what it sends, so it may use the smaller value where
    /// the target left a default or two limits contradict each other.
    fn use_less_than_allowed(&mut self) {
        let max_burst = self.value(Key::MaxBurstLength);
        let first_burst = &mut self.entries[Key::FirstBurstLength as usize];
        first_burst.value = first_burst.value.min(max_burst).min(self.offer.first_burst_bytes);
    }

    fn check_integrity(&self) -> Result<(), NegotiationError> {
        let first_burst_exceeds = self.value(Key::FirstBurstLength) > self.value(Key::MaxBurstLength);
        if first_burst_exceeds && self.allows_unsolicited_data() {
            return Err(NegotiationError::Contradiction(Key::FirstBurstLength, Key::MaxBurstLength));
        }
        let recovers = self.value(Key::ErrorRecoveryLevel) != 0;
        let one_sequence_at_a_time = recovers && self.flag(Key::DataSequenceInOrder);
        if one_sequence_at_a_time && self.value(Key::MaxOutstandingR2T) > 1 {
            return Err(NegotiationError::Contradiction(Key::MaxOutstandingR2T, Key::ErrorRecoveryLevel));
        }
        Ok(())
    }

    fn connection_parameters(&self) -> ConnectionParameters {
        let declared = self.entries[Key::MaxRecvDataSegmentLength as usize].sent;
        let undeclared = RULES[Key::MaxRecvDataSegmentLength as usize].kind.default_value();
        ConnectionParameters {
            header_digest: self.flag(Key::HeaderDigest),
            data_digest: self.flag(Key::DataDigest),
            send_segment_bytes_max: self.value(Key::MaxRecvDataSegmentLength),
            receive_segment_bytes_max: if declared {
                self.offer.receive_segment_bytes_max
            } else {
                undeclared
            },
        }
    }
}
