//! The state of a login, or the reason for its failure (RFC 7143 §11.13.5).

use core::fmt;

/// Status-Class and Status-Detail of a Login Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginStatus {
    /// The login continues, or is complete.
    Success,
    /// The target has moved temporarily.
    TargetMovedTemporarily,
    /// The target has moved permanently.
    TargetMovedPermanently,
    /// The initiator made an error without a code of its own.
    InitiatorError,
    /// The initiator failed to prove its identity, or the target refuses to prove its own.
    AuthenticationFailure,
    /// The initiator may not use this target.
    AuthorizationFailure,
    /// There is no such target here.
    NotFound,
    /// The target is gone.
    TargetRemoved,
    /// No common protocol version.
    UnsupportedVersion,
    /// The session has as many connections as it may.
    TooManyConnections,
    /// A required key is missing.
    MissingParameter,
    /// A session cannot span to this address.
    CannotIncludeInSession,
    /// The target does not offer this type of session, or not to this initiator.
    SessionTypeNotSupported,
    /// The session that a connection wants to join does not exist.
    SessionDoesNotExist,
    /// Not a PDU for the login phase.
    InvalidDuringLogin,
    /// The target failed.
    TargetError,
    /// The target does not operate at present.
    ServiceUnavailable,
    /// The target lacks memory, connections or the like.
    OutOfResources,
    /// A code that the standard does not assign; its class still determines the reaction.
    Unassigned {
        /// Status-Class, as on the wire (§11.13.5).
        class: u8,
        /// Status-Detail, as on the wire (§11.13.5).
        detail: u8,
    },
}

/// The reaction that a login status asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginStatusClass {
    /// Continue the login, or begin the full feature phase.
    Success,
    /// Go to the address in the TargetAddress key.
    Redirection,
    /// Do not try again.
    InitiatorError,
    /// Try again later.
    TargetError,
    /// A class that the standard does not assign: a failure.
    Unassigned(u8),
}

impl LoginStatus {
    /// The status for Status-Class and Status-Detail on the wire.
    #[must_use]
    pub const fn from_wire(class: u8, detail: u8) -> Self {
        match (class, detail) {
            (0, 0x00) => Self::Success,
            (1, 0x01) => Self::TargetMovedTemporarily,
            (1, 0x02) => Self::TargetMovedPermanently,
            (2, 0x00) => Self::InitiatorError,
            (2, 0x01) => Self::AuthenticationFailure,
            (2, 0x02) => Self::AuthorizationFailure,
            (2, 0x03) => Self::NotFound,
            (2, 0x04) => Self::TargetRemoved,
            (2, 0x05) => Self::UnsupportedVersion,
            (2, 0x06) => Self::TooManyConnections,
            (2, 0x07) => Self::MissingParameter,
            (2, 0x08) => Self::CannotIncludeInSession,
            (2, 0x09) => Self::SessionTypeNotSupported,
            (2, 0x0a) => Self::SessionDoesNotExist,
            (2, 0x0b) => Self::InvalidDuringLogin,
            (3, 0x00) => Self::TargetError,
            (3, 0x01) => Self::ServiceUnavailable,
            (3, 0x02) => Self::OutOfResources,
            (class, detail) => Self::Unassigned { class, detail },
        }
    }

    /// Status-Class and Status-Detail on the wire.
    #[must_use]
    pub const fn wire(self) -> (u8, u8) {
        match self {
            Self::Success => (0, 0x00),
            Self::TargetMovedTemporarily => (1, 0x01),
            Self::TargetMovedPermanently => (1, 0x02),
            Self::InitiatorError => (2, 0x00),
            Self::AuthenticationFailure => (2, 0x01),
            Self::AuthorizationFailure => (2, 0x02),
            Self::NotFound => (2, 0x03),
            Self::TargetRemoved => (2, 0x04),
            Self::UnsupportedVersion => (2, 0x05),
            Self::TooManyConnections => (2, 0x06),
            Self::MissingParameter => (2, 0x07),
            Self::CannotIncludeInSession => (2, 0x08),
            Self::SessionTypeNotSupported => (2, 0x09),
            Self::SessionDoesNotExist => (2, 0x0a),
            Self::InvalidDuringLogin => (2, 0x0b),
            Self::TargetError => (3, 0x00),
            Self::ServiceUnavailable => (3, 0x01),
            Self::OutOfResources => (3, 0x02),
            Self::Unassigned { class, detail } => (class, detail),
        }
    }

    /// The reaction that the status asks for.
    #[must_use]
    pub const fn class(self) -> LoginStatusClass {
        match self.wire().0 {
            0 => LoginStatusClass::Success,
            1 => LoginStatusClass::Redirection,
            2 => LoginStatusClass::InitiatorError,
            3 => LoginStatusClass::TargetError,
            class => LoginStatusClass::Unassigned(class),
        }
    }

    /// Whether the login continues; if not, both ends close the connection.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self.class(), LoginStatusClass::Success)
    }

    /// A short form of the standard's description.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::TargetMovedTemporarily => "target moved temporarily",
            Self::TargetMovedPermanently => "target moved permanently",
            Self::InitiatorError => "initiator error",
            Self::AuthenticationFailure => "authentication failure",
            Self::AuthorizationFailure => "authorization failure",
            Self::NotFound => "target not found",
            Self::TargetRemoved => "target removed",
            Self::UnsupportedVersion => "unsupported version",
            Self::TooManyConnections => "too many connections",
            Self::MissingParameter => "missing parameter",
            Self::CannotIncludeInSession => "cannot include in session",
            Self::SessionTypeNotSupported => "session type not supported",
            Self::SessionDoesNotExist => "session does not exist",
            Self::InvalidDuringLogin => "invalid during login",
            Self::TargetError => "target error",
            Self::ServiceUnavailable => "service unavailable",
            Self::OutOfResources => "out of resources",
            Self::Unassigned { .. } => "unassigned status",
        }
    }
}

impl fmt::Display for LoginStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, detail) = self.wire();
        write!(formatter, "{} ({class:02x}{detail:02x})", self.name())
    }
}
