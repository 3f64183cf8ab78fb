//! The rules of all keys that the standard defines, in one table (RFC 7143 §12, §13; RFC 7144 §7.1.1).

/// A key that this implementation understands.
///
/// The order is that of [`RULES`], and is the order in which one PDU's keys are answered, however they arrived: a key
/// whose answer depends on others stands after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is named and specified by the standard under its own name")]
pub enum Key {
    SessionType,
    InitiatorName,
    InitiatorAlias,
    TargetName,
    TargetAlias,
    TargetAddress,
    TargetPortalGroupTag,
    AuthMethod,
    ChapAlgorithm,
    ChapName,
    ChapResponse,
    ChapIdentifier,
    ChapChallenge,
    HeaderDigest,
    DataDigest,
    MaxConnections,
    InitialR2T,
    ImmediateData,
    MaxRecvDataSegmentLength,
    MaxBurstLength,
    FirstBurstLength,
    DefaultTime2Wait,
    DefaultTime2Retain,
    DataPDUInOrder,
    DataSequenceInOrder,
    ErrorRecoveryLevel,
    MaxOutstandingR2T,
    TaskReporting,
    ISCSIProtocolLevel,
    NodeArchitecture,
    SendTargets,
    OFMarker,
    IFMarker,
    OFMarkInt,
    IFMarkInt,
}

/// How many keys there are.
pub const KEYS: usize = Key::IFMarkInt as usize + 1;

impl Key {
    /// The key of this name, if this implementation understands it. Names are case-sensitive (§6.1).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        RULES.iter().find(|rule| rule.name == name).map(|rule| rule.key)
    }

    /// What the standard says of it.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }

    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.rule().name
    }
}

impl core::fmt::Display for Key {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One key's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which.
    pub key: Key,
    /// Its name on the wire.
    pub name: &'static str,
    /// Who may send it during login.
    pub senders: Senders,
    /// In which phase, and on which of a session's connections.
    pub usage: Usage,
    /// In which stage of a login.
    pub stages: Stages,
    /// What its value holds for.
    pub scope: Scope,
    /// Whether it means nothing in a discovery session, where it is answered `Irrelevant`.
    pub normal_session_only: bool,
    /// How its value comes about.
    pub kind: Kind,
}

/// "Senders".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Senders {
    Initiator,
    Target,
    Both,
}

/// "Use".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// LO: login of a session's leading connection.
    Leading,
    /// IO: login of any connection.
    Initialize,
    /// ALL: login and full feature phase.
    All,
    /// FFPO: full feature phase.
    FullFeature,
}

/// The stages of a login in which a key may appear (§12 has the list for security).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stages {
    /// SecurityNegotiation.
    Security,
    /// LoginOperationalNegotiation.
    Operational,
    /// Any-Stage.
    Any,
}

/// SW or CO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Session-wide.
    Session,
    /// Connection-only.
    Connection,
}

/// How a value comes about. Numbers fit 32 bits in every standard key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The answer is the first value of the proposed list that the acceptor supports (§6.2.1). The default is the
    /// first of `values`.
    List {
        /// All values that the standard defines.
        values: &'static [&'static str],
    },
    /// `Yes` or `No` (§6.2.2).
    Boolean {
        /// How both wishes combine.
        result: BooleanResult,
        /// If not negotiated.
        default: bool,
    },
    /// A number on which both agree (§6.2.2).
    Number {
        /// Least admissible value.
        min: u32,
        /// Greatest admissible value.
        max: u32,
        /// How both wishes combine.
        result: NumberResult,
        /// If not negotiated.
        default: u32,
    },
    /// A number that each side declares for itself, without answer.
    DeclaredNumber {
        /// Least admissible value.
        min: u32,
        /// Greatest admissible value.
        max: u32,
        /// If not declared.
        default: u32,
    },
    /// Text that one side declares, without answer.
    DeclaredText {
        /// The longest value.
        bytes_max: usize,
    },
    /// A step of an authentication method's own exchange (§12.1).
    Authentication,
    /// Text requests only; never part of a login.
    TextRequest,
    /// Withdrawn from the standard: always answered `Reject` (§13.25).
    Obsolete,
}

/// "Result function" of a boolean key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BooleanResult {
    And,
    Or,
}

/// "Result function" of a numeric key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum NumberResult {
    Minimum,
    Maximum,
}

/// The least MaxRecvDataSegmentLength and burst length (§13.12 to §13.14).
pub const SEGMENT_BYTES_MIN: u32 = 512;
/// The greatest MaxRecvDataSegmentLength and burst length (§13.12 to §13.14).
pub const SEGMENT_BYTES_MAX: u32 = (1 << 24) - 1;
/// MaxRecvDataSegmentLength during login, and after it if not declared (§6.3, §13.12).
pub const DEFAULT_SEGMENT_BYTES: u32 = 8192;
/// The longest iSCSI name (§4.2.7.1).
pub const NAME_BYTES_MAX: usize = 223;
/// The longest simple value (§6.1), which binds aliases and addresses too.
pub const SIMPLE_VALUE_BYTES_MAX: usize = 255;
const SECONDS_MAX: u32 = 3600;
/// Digests by preference of the default, which is the first (§13.1).
pub const DIGESTS: &[&str] = &["None", "CRC32C"];
const TASK_REPORTING: &[&str] = &["RFC3720", "ResponseFence", "FastAbort"];
/// The protocol level of RFC 7143 (§13.24).
pub const PROTOCOL_LEVEL: u32 = 1;

const fn rule(
    key: Key,
    name: &'static str,
    senders: Senders,
    usage: Usage,
    stages: Stages,
    scope: Scope,
    kind: Kind,
) -> Rule {
    Rule { key, name, senders, usage, stages, scope, normal_session_only: false, kind }
}

/// What holds for most operational keys: both may send them, at the leading login, for the session.
const fn leading(key: Key, name: &'static str, kind: Kind) -> Rule {
    rule(key, name, Senders::Both, Usage::Leading, Stages::Operational, Scope::Session, kind)
}

/// As [`leading`], and "Irrelevant when: SessionType=Discovery".
const fn leading_normal(key: Key, name: &'static str, kind: Kind) -> Rule {
    Rule { normal_session_only: true, ..leading(key, name, kind) }
}

const fn declared(key: Key, name: &'static str, senders: Senders, usage: Usage, bytes_max: usize) -> Rule {
    rule(key, name, senders, usage, Stages::Any, Scope::Session, Kind::DeclaredText { bytes_max })
}

const fn authentication(key: Key, name: &'static str) -> Rule {
    rule(
        key,
        name,
        Senders::Both,
        Usage::Initialize,
        Stages::Security,
        Scope::Connection,
        Kind::Authentication,
    )
}

const fn digest(key: Key, name: &'static str) -> Rule {
    rule(
        key,
        name,
        Senders::Both,
        Usage::Initialize,
        Stages::Operational,
        Scope::Connection,
        Kind::List { values: DIGESTS },
    )
}

const fn burst(key: Key, name: &'static str, default: u32) -> Rule {
    leading_normal(key, name, minimum(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX, default))
}

const fn minimum(min: u32, max: u32, default: u32) -> Kind {
    Kind::Number { min, max, result: NumberResult::Minimum, default }
}

const fn boolean(result: BooleanResult, default: bool) -> Kind {
    Kind::Boolean { result, default }
}

/// The rules, one row for each key, in the order of [`Key`].
pub const RULES: [Rule; KEYS] = {
    use BooleanResult::{And, Or};
    use Senders::{Both, Initiator, Target};
    use Usage::{All, FullFeature, Initialize, Leading};
    [
        declared(Key::SessionType, "SessionType", Initiator, Leading, SIMPLE_VALUE_BYTES_MAX),
        declared(Key::InitiatorName, "InitiatorName", Initiator, Initialize, NAME_BYTES_MAX),
        declared(Key::InitiatorAlias, "InitiatorAlias", Initiator, All, SIMPLE_VALUE_BYTES_MAX),
        declared(Key::TargetName, "TargetName", Initiator, Initialize, NAME_BYTES_MAX),
        declared(Key::TargetAlias, "TargetAlias", Target, All, SIMPLE_VALUE_BYTES_MAX),
        declared(Key::TargetAddress, "TargetAddress", Target, All, SIMPLE_VALUE_BYTES_MAX),
        declared(
            Key::TargetPortalGroupTag,
            "TargetPortalGroupTag",
            Target,
            Initialize,
            SIMPLE_VALUE_BYTES_MAX,
        ),
        // Of the security stage only (§12.1). Initiators that skip it send AuthMethod=None in the operational one.
        Rule { stages: Stages::Any, ..authentication(Key::AuthMethod, "AuthMethod") },
        authentication(Key::ChapAlgorithm, "CHAP_A"),
        authentication(Key::ChapName, "CHAP_N"),
        authentication(Key::ChapResponse, "CHAP_R"),
        authentication(Key::ChapIdentifier, "CHAP_I"),
        authentication(Key::ChapChallenge, "CHAP_C"),
        digest(Key::HeaderDigest, "HeaderDigest"),
        digest(Key::DataDigest, "DataDigest"),
        leading_normal(Key::MaxConnections, "MaxConnections", minimum(1, 65535, 1)),
        leading_normal(Key::InitialR2T, "InitialR2T", boolean(Or, true)),
        leading_normal(Key::ImmediateData, "ImmediateData", boolean(And, true)),
        rule(
            Key::MaxRecvDataSegmentLength,
            "MaxRecvDataSegmentLength",
            Both,
            All,
            Stages::Operational,
            Scope::Connection,
            Kind::DeclaredNumber {
                min: SEGMENT_BYTES_MIN,
                max: SEGMENT_BYTES_MAX,
                default: DEFAULT_SEGMENT_BYTES,
            },
        ),
        burst(Key::MaxBurstLength, "MaxBurstLength", 262_144),
        burst(Key::FirstBurstLength, "FirstBurstLength", 65_536),
        leading(
            Key::DefaultTime2Wait,
            "DefaultTime2Wait",
            Kind::Number { min: 0, max: SECONDS_MAX, result: NumberResult::Maximum, default: 2 },
        ),
        leading(Key::DefaultTime2Retain, "DefaultTime2Retain", minimum(0, SECONDS_MAX, 20)),
        leading_normal(Key::DataPDUInOrder, "DataPDUInOrder", boolean(Or, true)),
        leading_normal(Key::DataSequenceInOrder, "DataSequenceInOrder", boolean(Or, true)),
        leading(Key::ErrorRecoveryLevel, "ErrorRecoveryLevel", minimum(0, 2, 0)),
        leading_normal(Key::MaxOutstandingR2T, "MaxOutstandingR2T", minimum(1, 65535, 1)),
        leading_normal(Key::TaskReporting, "TaskReporting", Kind::List { values: TASK_REPORTING }),
        leading_normal(Key::ISCSIProtocolLevel, "iSCSIProtocolLevel", minimum(0, 31, PROTOCOL_LEVEL)),
        declared(Key::NodeArchitecture, "X#NodeArchitecture", Both, Leading, SIMPLE_VALUE_BYTES_MAX),
        rule(
            Key::SendTargets,
            "SendTargets",
            Initiator,
            FullFeature,
            Stages::Operational,
            Scope::Session,
            Kind::TextRequest,
        ),
        leading(Key::OFMarker, "OFMarker", Kind::Obsolete),
        leading(Key::IFMarker, "IFMarker", Kind::Obsolete),
        leading(Key::OFMarkInt, "OFMarkInt", Kind::Obsolete),
        leading(Key::IFMarkInt, "IFMarkInt", Kind::Obsolete),
    ]
};

impl Kind {
    /// The value that holds while nothing was negotiated: a number, a boolean as 0 or 1, a position in a list.
    pub(super) const fn default_value(self) -> u32 {
        match self {
            Self::Boolean { default, .. } => default as u32,
            Self::Number { default, .. } | Self::DeclaredNumber { default, .. } => default,
            Self::List { .. }
            | Self::DeclaredText { .. }
            | Self::Authentication
            | Self::TextRequest
            | Self::Obsolete => 0,
        }
    }
}

impl Kind {
    /// Whether one side proposes and the other answers.
    pub(super) const fn is_negotiated(self) -> bool {
        matches!(self, Self::List { .. } | Self::Boolean { .. } | Self::Number { .. })
    }
}

impl Rule {
    /// Whether the key came with the first edition of the standard. `NotUnderstood` is a fitting answer only to the
    /// others (§6.2).
    #[must_use]
    pub fn is_original(&self) -> bool {
        !matches!(self.key, Key::TaskReporting | Key::ISCSIProtocolLevel | Key::NodeArchitecture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_where_its_key_says() {
        for (row, rule) in RULES.iter().enumerate() {
            assert_eq!(rule.key as usize, row, "{}", rule.name);
            assert_eq!(Key::from_name(rule.name), Some(rule.key));
            assert_eq!(rule.key.rule(), rule);
        }
    }

    #[test]
    fn names_are_case_sensitive() {
        assert_eq!(Key::from_name("maxburstlength"), None);
    }
}
