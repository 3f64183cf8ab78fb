//! What is negotiated for a run, by name, with what both ends are told and what they then say.

use super::ScsiRunError;
use initiator::Report;
use netem::Bytes;
use policy::time_model::WriteTerms;
use serde::{Deserialize, Serialize};
use session::parameters::{DigestPreference, Offer};
use target::{ByteSize, DigestUse, Negotiation};

/// The keys that decide about throughput (RFC 7143 §13). Both ends offer and accept these, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionTerms {
    /// TCP connections, over all sessions.
    pub connections: u16,
    /// iSCSI sessions over which they are spread.
    pub sessions: u16,
    /// InitialR2T: ask for every write's data first.
    pub initial_r2t: bool,
    /// ImmediateData.
    pub immediate_data: bool,
    /// FirstBurstLength.
    pub first_burst: Bytes,
    /// MaxBurstLength.
    pub max_burst: Bytes,
    /// MaxRecvDataSegmentLength, at both ends.
    pub receive_segment: Bytes,
    /// MaxOutstandingR2T. Above error recovery level 0 it can only be 1 (§13.19).
    pub max_outstanding_r2t: u16,
    /// ErrorRecoveryLevel.
    pub error_recovery_level: u8,
    /// HeaderDigest: CRC32C or none.
    pub header_digest: bool,
    /// DataDigest: CRC32C or none.
    pub data_digest: bool,
    /// Commands that the target lets each session have under way, at the most.
    pub window_commands: u32,
}

impl Default for SessionTerms {
    /// One connection, and otherwise what our own ends would agree on.
    fn default() -> Self {
        let offer = initiator::Config::default().offer;
        Self {
            connections: 1,
            sessions: 1,
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

/// A target sets aside for each session a 22nd of its memory, for a window of unsolicited data.
const MEMORY_PER_WINDOW: u64 = 24;

/// Immediate commands beside the window.
const SPARE_COMMANDS: u64 = 4;

impl SessionTerms {
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

    /// Memory of which the window fits what a session is granted. Used is what is under way.
    pub(super) fn limits(&self) -> target::Limits {
        let limits = target::Limits::default();
        let commands = u64::from(self.window_commands) + SPARE_COMMANDS;
        let window_bytes = self.first_burst.0.next_power_of_two().saturating_mul(commands);
        let sessions = u64::from(self.sessions) + 1;
        let wanted = window_bytes.saturating_mul(sessions).saturating_mul(MEMORY_PER_WINDOW);
        let buffer_bytes = ByteSize(limits.buffer_bytes.0.max(wanted));
        target::Limits { window_commands: self.window_commands, buffer_bytes, ..limits }
    }

    /// What both ends agreed on, if it is what was to be.
    pub(super) fn check(&self, report: &Report) -> Result<(), ScsiRunError> {
        let found = self.found(report);
        let pairs = [
            ("connections", u64::from(self.connections), found.connections.into()),
            ("sessions", self.sessions.into(), found.sessions.into()),
            ("InitialR2T", self.initial_r2t.into(), found.initial_r2t.into()),
            ("ImmediateData", self.immediate_data.into(), found.immediate_data.into()),
            ("FirstBurstLength", self.first_burst.0, found.first_burst.0),
            ("MaxBurstLength", self.max_burst.0, found.max_burst.0),
            ("MaxRecvDataSegmentLength", self.receive_segment.0, found.receive_segment.0),
            ("MaxOutstandingR2T", self.max_outstanding_r2t.into(), found.max_outstanding_r2t.into()),
            ("ErrorRecoveryLevel", self.error_recovery_level.into(), found.error_recovery_level.into()),
            ("HeaderDigest", self.header_digest.into(), found.header_digest.into()),
            ("DataDigest", self.data_digest.into(), found.data_digest.into()),
        ];
        match pairs.into_iter().find(|(_, asked, found)| asked != found) {
            Some((key, asked, found)) => {
                Err(ScsiRunError::Negotiated { key, asked: asked.to_string(), found: found.to_string() })
            }
            None => Ok(()),
        }
    }

    /// Of the first session and connection; what they do not have is as it was asked for.
    fn found(&self, report: &Report) -> Self {
        let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        let mut found =
            Self { connections: count(report.connections()), sessions: count(report.sessions()), ..*self };
        if let Some(session) = report.paths.first().and_then(|path| path.parameters) {
            found.initial_r2t = session.initial_r2t;
            found.immediate_data = session.immediate_data;
            found.first_burst = Bytes(session.first_burst_bytes.into());
            found.max_burst = Bytes(session.max_burst_bytes.into());
            found.max_outstanding_r2t = session.max_outstanding_r2t;
            found.error_recovery_level = session.error_recovery_level;
        }
        if let Some(connection) = report.paths.first().and_then(|path| path.connections.first()) {
            let parameters = connection.parameters;
            found.receive_segment =
                Bytes(parameters.send_segment_bytes_max.min(parameters.receive_segment_bytes_max).into());
            found.header_digest = parameters.header_digest;
            found.data_digest = parameters.data_digest;
        }
        found
    }

    /// The same for the time model.
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

/// What is too long is refused by the target, which has the same numbers.
fn whole(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0).unwrap_or(u32::MAX)
}

fn preference(wanted: bool) -> DigestPreference {
    if wanted { DigestPreference::Required } else { DigestPreference::Never }
}

fn digest_use(wanted: bool) -> DigestUse {
    if wanted { DigestUse::Required } else { DigestUse::Never }
}
