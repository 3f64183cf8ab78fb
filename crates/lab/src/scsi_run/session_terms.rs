//! The negotiated terms of a run by name, with the configuration of both ends and their answers.

use super::ScsiRunError;
use super::tuner_trace::TunerTrace;
use initiator::{Connections, Policies, Report, SplitLanes, Tuning};
use netem::Bytes;
use policy::PlacementPolicy;
use policy::time_model::WriteTerms;
use policy::tuner::TunerChoice;
use serde::{Deserialize, Serialize};
use session::parameters::{ConnectionParameters, DigestPreference, Offer, SessionParameters};
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;
use target::{ByteSize, DigestUse, Negotiation};

/// The keys that affect throughput (RFC 7143 §13). Both ends offer and accept only these values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionTerms {
    /// TCP connections, over all sessions. A tuner begins with as many as it likes.
    pub connections: u16,
    /// What chooses their number instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuner: Option<Named<TunerChoice>>,
    /// Whether that may use BBR, on two connections.
    pub may_use_bbr: bool,
    /// The flows as which a tuned session behaves where the path is full.
    pub as_flows: u32,
    /// The number of iSCSI sessions for these connections.
    pub sessions: u16,
    /// What each connection carries: `whole`, or `split` or `split3` into several, in a session of its own.
    pub lanes: Named<SplitLanes>,
    /// How the initiator chooses a connection for each command.
    pub placement: Named<PlacementPolicy>,
    /// InitialR2T (§13.10): solicit all data of every write.
    pub initial_r2t: bool,
    /// ImmediateData (§13.11): a command PDU may carry data of its write.
    pub immediate_data: bool,
    /// FirstBurstLength (§13.14): the most unsolicited data of a write.
    pub first_burst: Bytes,
    /// MaxBurstLength (§13.13): the most data in one burst of Data-In, or that one R2T asks for.
    pub max_burst: Bytes,
    /// MaxRecvDataSegmentLength (§13.12), at both ends.
    pub receive_segment: Bytes,
    /// MaxOutstandingR2T. Above error recovery level 0 it can only be 1 (§13.19).
    pub max_outstanding_r2t: u16,
    /// ErrorRecoveryLevel (§13.20), from 0 to 2.
    pub error_recovery_level: u8,
    /// HeaderDigest (§13.1): CRC32C or none.
    pub header_digest: bool,
    /// DataDigest (§13.1): CRC32C or none.
    pub data_digest: bool,
    /// The most outstanding commands of each session at the target.
    pub window_commands: u32,
}

impl Default for SessionTerms {
    /// One connection, and otherwise the terms that our own ends would agree on.
    fn default() -> Self {
        let offer = initiator::Config::default().offer;
        Self {
            connections: 1,
            tuner: None,
            may_use_bbr: false,
            as_flows: Tuning::default().as_flows,
            sessions: 1,
            lanes: Named::default(),
            placement: Named::default(),
            initial_r2t: offer.initial_r2t,
            immediate_data: offer.immediate_data,
            first_burst: Bytes(offer.first_burst_bytes.into()),
            max_burst: Bytes(offer.max_burst_bytes.into()),
            receive_segment: Bytes(offer.receive_segment_bytes_max.into()),
            max_outstanding_r2t: 1,
            error_recovery_level: offer.error_recovery_level,
            header_digest: false,
            data_digest: false,
            window_commands: target::Limits::default().window_commands,
        }
    }
}

/// A policy by its name, such as `"earliest delivery"` for placement, or `"guided"` for a tuner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    try_from = "String",
    into = "String",
    bound(serialize = "T: Clone + Display", deserialize = "T: FromStr, T::Err: Display")
)]
pub struct Named<T>(pub T);

impl<T: FromStr> TryFrom<String> for Named<T> {
    type Error = T::Err;

    fn try_from(name: String) -> Result<Self, T::Err> {
        name.parse().map(Self)
    }
}

impl<T: Display> From<Named<T>> for String {
    fn from(Named(policy): Named<T>) -> Self {
        policy.to_string()
    }
}

/// A key, its requested value, and its negotiated value.
type Term = (&'static str, u64, u64);

/// The target's memory as a multiple of one session's window. A target reserves a 22nd of its memory for the unsolicited
/// data of each session; this leaves a margin.
const MEMORY_PER_WINDOW: u64 = 24;

/// The kernel's name for it.
pub(crate) const BBR: &str = "bbr";

/// Immediate commands besides the window.
const SPARE_COMMANDS: u64 = 4;

impl SessionTerms {
    pub(super) fn connections(&self) -> Connections {
        match self.tuner {
            Some(_) => Connections::Auto,
            None => Connections::Fixed(self.connections),
        }
    }

    pub(super) fn tuning(&self) -> Tuning {
        let bbr = self.may_use_bbr.then(|| BBR.to_owned());
        Tuning { as_flows: self.as_flows, bbr, ..Tuning::default() }
    }

    /// The tuner's slices are kept in `trace`.
    pub(super) fn policies(&self, trace: &TunerTrace) -> Policies {
        let (trace, choice) = (trace.clone(), self.tuner.unwrap_or_default().0);
        let tuner = Arc::new(move |terms| trace.begin(choice, terms));
        Policies { placement: self.placement.0, tuner }
    }

    pub(super) fn offer(&self) -> Offer {
        Offer {
            initial_r2t: self.initial_r2t,
            immediate_data: self.immediate_data,
            first_burst_bytes: whole(self.first_burst),
            max_burst_bytes: whole(self.max_burst),
            max_outstanding_r2t: self.max_outstanding_r2t,
            error_recovery_level: self.error_recovery_level,
            receive_segment_bytes_max: whole(self.receive_segment),
            header_digest: preference(self.header_digest),
            data_digest: preference(self.data_digest),
            split: self.lanes.0,
            ..initiator::Config::default().offer
        }
    }

    pub(super) fn negotiation(&self) -> Negotiation {
        Negotiation {
            initial_r2t: self.initial_r2t,
            immediate_data: self.immediate_data,
            first_burst: ByteSize(self.first_burst.0),
            max_burst: ByteSize(self.max_burst.0),
            max_outstanding_r2t: self.max_outstanding_r2t,
            error_recovery_level: self.error_recovery_level,
            receive_segment: ByteSize(self.receive_segment.0),
            header_digest: digest_use(self.header_digest),
            data_digest: digest_use(self.data_digest),
            ..Negotiation::default()
        }
    }

    /// The number of sessions: as many as connections, if they are split.
    pub(crate) fn sessions(&self) -> u16 {
        if self.lanes.0 == SplitLanes::None { self.sessions } else { self.connections }
    }

    /// The memory with which the window fits a session's share. Only data in transit uses it.
    pub(super) fn limits(&self) -> target::Limits {
        let limits = target::Limits::default();
        let commands = u64::from(self.window_commands) + SPARE_COMMANDS;
        let window_bytes = self.first_burst.0.next_power_of_two().saturating_mul(commands);
        let sessions = u64::from(self.sessions()) + 1;
        let wanted = window_bytes.saturating_mul(sessions).saturating_mul(MEMORY_PER_WINDOW);
        let buffer_bytes = ByteSize(limits.buffer_bytes.0.max(wanted));
        target::Limits { window_commands: self.window_commands, buffer_bytes, ..limits }
    }

    /// Checks that all sessions and connections have the requested terms.
    pub(super) fn check(&self, report: &Report) -> Result<(), ScsiRunError> {
        let lanes = self.lanes.0.roles().len() as u64;
        let connections = match self.tuner {
            Some(_) => report.connections() as u64,
            None => u64::from(self.connections) * lanes,
        };
        let counts = [
            ("connections", connections, report.connections() as u64),
            ("sessions", self.sessions().into(), report.sessions() as u64),
        ];
        let sessions = report.paths.iter().filter_map(|path| path.parameters.as_ref());
        let connections = report.paths.iter().flat_map(|path| &path.connections);
        let negotiated = self.negotiated(sessions, connections.map(|connection| &connection.parameters));
        match counts.into_iter().chain(negotiated).find(|(_, asked, found)| asked != found) {
            Some((key, asked, found)) => {
                Err(ScsiRunError::Negotiated { key, asked: asked.to_string(), found: found.to_string() })
            }
            None => Ok(()),
        }
    }

    /// For each key, the requested and the negotiated value.
    fn negotiated<'a>(
        &self,
        sessions: impl Iterator<Item = &'a SessionParameters>,
        connections: impl Iterator<Item = &'a ConnectionParameters>,
    ) -> impl Iterator<Item = Term> {
        let sessions = sessions.flat_map(|session| self.of_session(session));
        sessions.chain(connections.flat_map(|connection| self.of_connection(connection)))
    }

    fn of_session(&self, found: &SessionParameters) -> [Term; 7] {
        [
            ("SplitLanes", self.lanes.0.roles().len() as u64, found.split.roles().len() as u64),
            ("InitialR2T", self.initial_r2t.into(), found.initial_r2t.into()),
            ("ImmediateData", self.immediate_data.into(), found.immediate_data.into()),
            ("FirstBurstLength", self.first_burst.0, found.first_burst_bytes.into()),
            ("MaxBurstLength", self.max_burst.0, found.max_burst_bytes.into()),
            ("MaxOutstandingR2T", self.max_outstanding_r2t.into(), found.max_outstanding_r2t.into()),
            ("ErrorRecoveryLevel", self.error_recovery_level.into(), found.error_recovery_level.into()),
        ]
    }

    fn of_connection(&self, found: &ConnectionParameters) -> [Term; 4] {
        const SEGMENT: &str = "MaxRecvDataSegmentLength";
        [
            (SEGMENT, self.receive_segment.0, found.send_segment_bytes_max.into()),
            (SEGMENT, self.receive_segment.0, found.receive_segment_bytes_max.into()),
            ("HeaderDigest", self.header_digest.into(), found.header_digest.into()),
            ("DataDigest", self.data_digest.into(), found.data_digest.into()),
        ]
    }

    /// The terms for the time model.
    #[must_use]
    pub fn write_terms(&self) -> WriteTerms {
        WriteTerms {
            initial_r2t: self.initial_r2t,
            immediate_data: self.immediate_data,
            first_burst_bytes: whole(self.first_burst),
            max_burst_bytes: whole(self.max_burst),
            max_outstanding_r2t: self.max_outstanding_r2t,
            segment_bytes_max: whole(self.receive_segment),
        }
    }
}

/// The target refuses lengths that are too long, and has the same numbers.
fn whole(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0).unwrap_or(u32::MAX)
}

fn preference(wanted: bool) -> DigestPreference {
    if wanted { DigestPreference::Required } else { DigestPreference::Never }
}

fn digest_use(wanted: bool) -> DigestUse {
    if wanted { DigestUse::Required } else { DigestUse::Never }
}

#[cfg(test)]
mod tests {
    use super::*;
    use session::parameters::SessionType;

    fn session() -> SessionParameters {
        let terms = SessionTerms::default();
        SessionParameters {
            session_type: SessionType::Normal,
            max_connections: 1,
            initial_r2t: terms.initial_r2t,
            immediate_data: terms.immediate_data,
            first_burst_bytes: whole(terms.first_burst),
            max_burst_bytes: whole(terms.max_burst),
            max_outstanding_r2t: terms.max_outstanding_r2t,
            default_time2wait_s: 0,
            default_time2retain_s: 0,
            data_pdu_in_order: true,
            data_sequence_in_order: true,
            error_recovery_level: terms.error_recovery_level,
            split: SplitLanes::None,
        }
    }

    fn connection() -> ConnectionParameters {
        let segment_bytes = whole(SessionTerms::default().receive_segment);
        ConnectionParameters {
            header_digest: false,
            data_digest: false,
            send_segment_bytes_max: segment_bytes,
            receive_segment_bytes_max: segment_bytes,
        }
    }

    fn differences(sessions: &[SessionParameters], connections: &[ConnectionParameters]) -> Vec<Term> {
        let terms = SessionTerms::default();
        let negotiated = terms.negotiated(sessions.iter(), connections.iter());
        negotiated.filter(|(_, asked, found)| asked != found).collect()
    }

    #[test]
    fn every_session_is_looked_at() {
        assert_eq!(differences(&[session(); 2], &[connection(); 2]), []);
        let other = SessionParameters { max_outstanding_r2t: 3, ..session() };
        assert_eq!(differences(&[session(), other], &[]), [("MaxOutstandingR2T", 1, 3)]);
    }

    #[test]
    fn every_connection_is_looked_at() {
        let other = ConnectionParameters { data_digest: true, ..connection() };
        assert_eq!(differences(&[session()], &[connection(), other]), [("DataDigest", 0, 1)]);
    }

    #[test]
    fn both_ends_take_segments_of_the_same_length() {
        let asked = u64::from(connection().send_segment_bytes_max);
        for other in [
            ConnectionParameters { send_segment_bytes_max: 512, ..connection() },
            ConnectionParameters { receive_segment_bytes_max: 512, ..connection() },
        ] {
            assert_eq!(differences(&[], &[other]), [("MaxRecvDataSegmentLength", asked, 512)]);
        }
    }
}
