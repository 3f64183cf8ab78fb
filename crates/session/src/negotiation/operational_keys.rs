//! The operational keys on which both sides agree at a leading login, declared once: each with its field, unit, key and
//! default offer. [`super::rule::RULES`] has the rule of each key.

use super::rule::{Key, Kind};
use crate::parameters::{DigestPreference, MAX_CONNECTIONS, SessionType, SplitLanes};

/// A field's type, which holds every value that its key's rule admits. A boolean is 0 or 1.
trait Value: Copy + Into<u32> {
    fn of(number: u32) -> Self;
}

impl Value for bool {
    fn of(number: u32) -> Self {
        number != 0
    }
}

impl Value for u8 {
    fn of(number: u32) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}

impl Value for u16 {
    fn of(number: u32) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}

impl Value for u32 {
    fn of(number: u32) -> Self {
        number
    }
}

/// Declares one field for each key in [`SessionParameters`] and in [`Offer`].
macro_rules! operational_keys {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $key:ident, offered: $offered:expr;)+) => {
        /// Keys that hold for a whole session (RFC 7143 §13, "LO" and "SW").
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct SessionParameters {
            /// Normal or discovery.
            pub session_type: SessionType,
            $($(#[$doc])* pub $field: $type,)+
            /// DataPDUInOrder: data PDUs of a sequence travel in order.
            pub data_pdu_in_order: bool,
            /// DataSequenceInOrder: sequences of a command travel in order.
            pub data_sequence_in_order: bool,
            /// SplitLanes: what the session's connections carry.
            pub split: SplitLanes,
        }

        /// The values that one side offers and accepts in a negotiation: the largest number, the preferred boolean. The
        /// defaults suit a path with a large bandwidth-delay product.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Offer {
            $($(#[$doc])* pub $field: $type,)+
            /// MaxRecvDataSegmentLength declared, in bytes.
            pub receive_segment_bytes_max: u32,
            /// The wish for HeaderDigest.
            pub header_digest: DigestPreference,
            /// The wish for DataDigest.
            pub data_digest: DigestPreference,
            /// SplitLanes: what an initiator asks for, and the most that a target accepts.
            pub split: SplitLanes,
        }

        impl SessionParameters {
            /// The parameters from the values of all keys; a boolean is 0 or 1.
            pub(super) fn of(session_type: SessionType, value: impl Fn(Key) -> u32) -> Self {
                Self {
                    session_type,
                    $($field: Value::of(value(Key::$key)),)+
                    data_pdu_in_order: Value::of(value(Key::DataPDUInOrder)),
                    data_sequence_in_order: Value::of(value(Key::DataSequenceInOrder)),
                    split: SplitLanes::ALL[value(Key::SplitLanes) as usize],
                }
            }
        }

        impl Default for Offer {
            fn default() -> Self {
                Self {
                    $($field: $offered,)+
                    receive_segment_bytes_max: 256 << 10,
                    header_digest: DigestPreference::Accepted,
                    data_digest: DigestPreference::Accepted,
                    split: SplitLanes::None,
                }
            }
        }

        impl Offer {
            /// The number or boolean (as 0 or 1) that is offered for a key; `None` for a key that has neither.
            pub(super) fn of(&self, key: Key) -> Option<u32> {
                match key {
                    $(Key::$key => Some(self.$field.into()),)+
                    Key::MaxRecvDataSegmentLength => Some(self.receive_segment_bytes_max),
                    _ => None,
                }
            }

            /// The same offer with every number in the range of its rule.
            fn admissible(self) -> Self {
                Self {
                    $($field: Value::of(admissible(Key::$key, self.$field.into())),)+
                    receive_segment_bytes_max: admissible(
                        Key::MaxRecvDataSegmentLength,
                        self.receive_segment_bytes_max,
                    ),
                    ..self
                }
            }
        }
    };
}

operational_keys! {
    /// MaxConnections: 1 to 65535 in the standard; this implementation stops at [`MAX_CONNECTIONS`].
    max_connections: u16 = MaxConnections, offered: MAX_CONNECTIONS;
    /// InitialR2T: whether a write's data beyond the immediate needs an R2T from the start.
    initial_r2t: bool = InitialR2T, offered: false;
    /// ImmediateData: whether a write's first data may travel in the command PDU.
    immediate_data: bool = ImmediateData, offered: true;
    /// FirstBurstLength: unsolicited bytes of one command, immediate data included.
    first_burst_bytes: u32 = FirstBurstLength, offered: 256 << 10;
    /// MaxBurstLength: bytes that one R2T may ask for, and one Data-In sequence may carry.
    max_burst_bytes: u32 = MaxBurstLength, offered: (16 << 20) - 1024;
    /// MaxOutstandingR2T: R2Ts of one task that may be outstanding.
    max_outstanding_r2t: u16 = MaxOutstandingR2T, offered: 16;
    /// DefaultTime2Wait: seconds to wait before reconnecting. The default offer is 0, because the target delays a login
    /// that reinstates a session until the old nexus is at rest.
    default_time2wait_s: u16 = DefaultTime2Wait, offered: 0;
    /// DefaultTime2Retain: seconds for which a lost session's or connection's tasks are kept.
    default_time2retain_s: u16 = DefaultTime2Retain, offered: 0;
    /// ErrorRecoveryLevel: 0, 1 or 2.
    error_recovery_level: u8 = ErrorRecoveryLevel, offered: 0;
}

impl Offer {
    /// The same offer with every number in the range of its rule, and consistent in itself.
    pub(super) fn bounded(self) -> Self {
        let offer = self.admissible();
        Self {
            max_connections: offer.max_connections.min(MAX_CONNECTIONS),
            first_burst_bytes: offer.first_burst_bytes.min(offer.max_burst_bytes),
            ..offer
        }
    }
}

/// The value nearest to this one that the key's rule admits.
fn admissible(key: Key, value: u32) -> u32 {
    match key.rule().kind {
        Kind::Number { min, max, .. } | Kind::DeclaredNumber { min, max, .. } => value.clamp(min, max),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiation::rule::RULES;

    #[test]
    fn every_number_and_boolean_that_both_agree_on_has_a_field() {
        let told = Offer::default();
        for rule in &RULES {
            let is_agreed = matches!(rule.kind, Kind::Boolean { .. } | Kind::Number { .. });
            // These values do not depend on the offer.
            let is_fixed =
                [Key::DataPDUInOrder, Key::DataSequenceInOrder, Key::ISCSIProtocolLevel].contains(&rule.key);
            let is_declared = rule.key == Key::MaxRecvDataSegmentLength;
            assert_eq!(told.of(rule.key).is_some(), is_agreed && !is_fixed || is_declared, "{}", rule.name);
        }
    }

    #[test]
    fn the_default_offer_is_one_that_the_rules_admit() {
        assert_eq!(Offer::default().bounded(), Offer::default());
    }
}
