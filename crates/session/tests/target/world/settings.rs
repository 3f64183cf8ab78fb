//! What the target's session is built with.

use super::{PING_AFTER, PING_TIMEOUT};
use ropewalk_session::parameters::{
    ConnectionParameters, SessionParameters, SessionType, SplitLanes, TargetLimits,
};

/// What a session may be built with.
pub struct Settings {
    pub session: SessionParameters,
    pub connection: ConnectionParameters,
    pub limits: TargetLimits,
    /// Bytes of buffers that there are.
    pub budget_bytes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            session: SessionParameters {
                session_type: SessionType::Normal,
                max_connections: 8,
                initial_r2t: false,
                immediate_data: true,
                first_burst_bytes: 4096,
                max_burst_bytes: 8192,
                max_outstanding_r2t: 1,
                default_time2wait_s: 2,
                default_time2retain_s: 0,
                data_pdu_in_order: true,
                data_sequence_in_order: true,
                error_recovery_level: 0,
                split: SplitLanes::None,
            },
            connection: ConnectionParameters {
                header_digest: false,
                data_digest: false,
                send_segment_bytes_max: 1024,
                receive_segment_bytes_max: 2048,
            },
            limits: TargetLimits {
                window_commands: 8,
                immediate_commands_max: 2,
                transfer_bytes_max: 1 << 20,
                retained_bytes_max: 1 << 20,
                ping_after: PING_AFTER,
                ping_timeout: PING_TIMEOUT,
            },
            budget_bytes: u32::MAX,
        }
    }
}

impl Settings {
    /// The usual session, at this error recovery level.
    pub fn of_level(error_recovery_level: u8) -> Self {
        let mut settings = Self::default();
        settings.session.error_recovery_level = error_recovery_level;
        settings.session.default_time2retain_s = 20;
        settings
    }
}
