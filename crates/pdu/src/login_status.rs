//! How a login stands, or why it failed (RFC 7143 §11.13.5).

use core::fmt;

/// Status-Class and Status-Detail of a Login Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginStatus {
    /// Login goes on, or is done.
    Success,
    /// The target is at another address for now.
    TargetMovedTemporarily,
    /// The target is at another address for good.
    TargetMovedPermanently,
    /// The initiator made an error that has no code of its own.
    InitiatorError,
    /// The initiator is not who it says, or the target will not say who it is.
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
    /// A key that login needs is absent.
    MissingParameter,
    /// A session cannot span to this address.
    CannotIncludeInSession,
    /// Not this type of session, or not for this initiator.
    SessionTypeNotSupported,
    /// A connection was to join a session that does not exist.
    SessionDoesNotExist,
    /// Not a PDU for the login phase.
    InvalidDuringLogin,
    /// The target failed.
    TargetError,
    /// The target does not operate at present.
    ServiceUnavailable,
    /// The target lacks memory, connections or the like.
    OutOfResources,
    /// A code that the standard does not assign; its class still tells what to do.
    Unassigned {
        /// Status-Class.
        class: u8,
        /// Status-Detail.
        detail: u8,
    },
}

/// What an initiator should make of a login status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginStatusClass {
    /// Go on.
    Success,
    /// Go to the address in the TargetAddress key.
    Redirection,
    /// Do not try again.
    InitiatorError,
    /// Try again later.
    TargetError,
    /// A class that the standard does not know: a failure.
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

    /// What to make of it.
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

    /// Whether login goes on; if not, both ends close the connection.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self.class(), LoginStatusClass::Success)
    }

    /// The standard's description, in few words.
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
