//! The rules of all keys that the standard defines, and of our own, in one table (RFC 7143 §6.2, §12, §13; RFC 7144
//! §7.1.1).

/// A key that this implementation understands.
///
/// The order is that of [`RULES`], and that in which the keys of one PDU are answered, in whatever order they arrived.
/// A key whose answer depends on others comes after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "each is named and specified by the standard under its own name, but for two of ours"
)]
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
    SplitLanes,
    Lane,
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

/// The number of keys.
pub const KEYS: usize = Key::IFMarkInt as usize + 1;

impl Key {
    /// The key of this name, if this implementation understands it. Names are case-sensitive (§6.1).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        RULES.iter().find(|rule| rule.name == name).map(|rule| rule.key)
    }

    /// The key's rule in the standard.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }

    /// The key's name on the wire.
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
    /// The key that these rules are for.
    pub key: Key,
    /// The key's name on the wire.
    pub name: &'static str,
    /// The sides that may send it during login.
    pub senders: Senders,
    /// The phase in which it may be sent, and the connections of a session on which it may.
    pub usage: Usage,
    /// The stages of a login in which it may be sent.
    pub stages: Stages,
    /// Whether its value holds for the session or for one connection.
    pub scope: Scope,
    /// Whether it means nothing in a discovery session, where it is answered `Irrelevant`.
    pub normal_session_only: bool,
    /// How its value is determined.
    pub kind: Kind,
}

/// The "Senders" of a key (§13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Senders {
    Initiator,
    Target,
    Both,
}

/// The "Use" of a key (§13).
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
    /// SecurityNegotiation only: authentication keys.
    Security,
    /// LoginOperationalNegotiation only: the parameters of the session and the connection.
    Operational,
    /// Either stage of the login ("Any-Stage").
    Any,
}

/// The "Scope" of a key (§13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// SW: the value holds for all connections of the session.
    Session,
    /// CO: the value holds for one connection.
    Connection,
}

/// How a key's value is determined. Every number of the standard fits 32 bits.
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
        /// How the two sides' values combine.
        result: BooleanResult,
        /// The value if not negotiated.
        default: bool,
    },
    /// A number on which both agree (§6.2.2).
    Number {
        /// The least admissible value.
        min: u32,
        /// The greatest admissible value.
        max: u32,
        /// How the two sides' values combine.
        result: NumberResult,
        /// The value if not negotiated.
        default: u32,
    },
    /// A number that each side declares for itself, without answer.
    DeclaredNumber {
        /// The least admissible value.
        min: u32,
        /// The greatest admissible value.
        max: u32,
        /// The value if not declared.
        default: u32,
    },
    /// Text that one side declares, without answer.
    DeclaredText {
        /// The longest value.
        bytes_max: usize,
    },
    /// A step of an authentication method's own exchange (§12.1).
    Authentication,
    /// A key of Text Requests, never part of a login.
    TextRequest,
    /// A key that the standard withdrew: always answered `Reject` (§13.25).
    Obsolete,
}

/// The "Result function" of a boolean key (§13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BooleanResult {
    And,
    Or,
}

/// The "Result function" of a numeric key (§13).
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
/// The digests, the default first (§13.1).
pub const DIGESTS: &[&str] = &["None", "CRC32C"];
const TASK_REPORTING: &[&str] = &["RFC3720", "ResponseFence", "FastAbort"];
/// How many connections carry what one does in an ordinary session.
pub(super) const SPLIT_LANES: &[&str] = &["None", "2", "3"];
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

/// The rule of most operational keys: either side may send them, at the leading login, for the whole session.
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
        // §12.1 allows AuthMethod in the security stage only, but initiators that skip that stage send AuthMethod=None
        // in the operational one.
        Rule { stages: Stages::Any, ..authentication(Key::AuthMethod, "AuthMethod") },
        authentication(Key::ChapAlgorithm, "CHAP_A"),
        authentication(Key::ChapName, "CHAP_N"),
        authentication(Key::ChapResponse, "CHAP_R"),
        authentication(Key::ChapIdentifier, "CHAP_I"),
        authentication(Key::ChapChallenge, "CHAP_C"),
        digest(Key::HeaderDigest, "HeaderDigest"),
        digest(Key::DataDigest, "DataDigest"),
        leading_normal(Key::MaxConnections, "MaxConnections", minimum(1, 65535, 1)),
        leading_normal(
            Key::SplitLanes,
            "X-io.github.ropewalk.SplitLanes",
            Kind::List { values: SPLIT_LANES },
        ),
        declared(Key::Lane, "X-io.github.ropewalk.Lane", Initiator, Initialize, SIMPLE_VALUE_BYTES_MAX),
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
    /// Whether the first edition of the standard has the key. Only for other keys may a peer answer `NotUnderstood`
    /// (§6.2).
    #[must_use]
    pub fn is_original(&self) -> bool {
        !matches!(self.key, Key::TaskReporting | Key::ISCSIProtocolLevel | Key::NodeArchitecture)
            && !self.is_ours()
    }

    /// Whether it is this project's own (§6.2).
    pub(super) const fn is_ours(&self) -> bool {
        matches!(self.key, Key::SplitLanes | Key::Lane)
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
