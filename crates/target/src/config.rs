//! The configuration of a server: targets, LUNs and access rights.

mod limits;

pub use limits::Limits;

use crate::access::Mask;
use crate::chap::{Chap, ChapAlgorithms};
use crate::lun_spec::LunSpec;
use crate::name::IscsiName;
use crate::portal_group::PortalGroupConfig;
use crate::redirect::Redirect;
use crate::size::ByteSize;
use device::Ipv6Prefix;
use framing::{Congestion, SocketOptions, Threads, UnsentLimit};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use session::parameters::{DigestPreference, Offer, SplitLanes};
use std::collections::{BTreeSet, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The parameters of [`Server::start`](crate::Server::start).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Addresses to accept connections on. Port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// The tag of the portal group that these addresses form.
    pub portal_group_tag: u16,
    /// Several portal groups, instead of [`Self::listen`].
    #[serde(rename = "portal_group")]
    pub portal_groups: Vec<PortalGroupConfig>,
    /// The CHAP algorithms that initiators may use; all by default.
    pub chap_algorithms: ChapAlgorithms,
    /// The targets to serve.
    #[serde(rename = "target")]
    pub targets: Vec<TargetConfig>,
    /// The protection of the list of targets. By default everybody may ask, and gets only the targets that it may use.
    pub discovery: DiscoveryConfig,
    /// Listen beyond loopback even if initiators without a name or password could reach a target.
    pub allow_insecure: bool,
    /// The directory for persistent reservations of LUNs on files that must survive a restart (APTPL). Empty or
    /// missing: no reservation survives, and initiators are told so.
    pub state_directory: Option<PathBuf>,
    /// Event loops, each on its own thread. Every target belongs to one of them.
    pub shards: usize,
    /// The bounds on connections, sessions, commands and memory.
    pub limits: Limits,
    /// The parameters to offer and accept in negotiation.
    pub negotiation: Negotiation,
    /// The options of every connection's socket.
    pub socket: SocketConfig,
}

/// The port that IANA gives to iSCSI.
pub const ISCSI_PORT: u16 = 3260;

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![(Ipv4Addr::LOCALHOST, ISCSI_PORT).into()],
            portal_group_tag: 1,
            portal_groups: Vec::new(),
            chap_algorithms: ChapAlgorithms::default(),
            targets: Vec::new(),
            discovery: DiscoveryConfig::default(),
            allow_insecure: false,
            state_directory: None,
            shards: 1,
            limits: Limits::default(),
            negotiation: Negotiation::default(),
            socket: SocketConfig::default(),
        }
    }
}

/// A target: its name, its logical units, and who may use them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// Its iSCSI name.
    pub name: IscsiName,
    /// A name for people.
    #[serde(default)]
    pub alias: Option<String>,
    /// The user and secret that an initiator must prove.
    #[serde(default)]
    pub chap: Option<Chap>,
    /// The tags of the portal groups that serve it; all by default.
    #[serde(default)]
    pub portal_groups: Vec<u16>,
    /// Another address to send initiators to.
    #[serde(default)]
    pub redirect: Option<Redirect>,
    /// The initiators that may log in; all by default.
    #[serde(flatten)]
    pub mask: Mask,
    /// Its logical units.
    #[serde(rename = "lun", default)]
    pub luns: Vec<LunConfig>,
}

impl TargetConfig {
    /// A target of this name, with every option at its default and no LUN.
    #[must_use]
    pub fn new(name: IscsiName) -> Self {
        Self {
            name,
            alias: None,
            chap: None,
            portal_groups: Vec::new(),
            redirect: None,
            mask: Mask::default(),
            luns: Vec::new(),
        }
    }

    /// Whether a stranger could use it, because it requires neither a password nor an address. (A name is no secret.)
    fn is_open(&self) -> bool {
        let addresses = &self.mask.addresses;
        let any_address = addresses.is_empty() || addresses.iter().any(|network| network.prefix_len() == 0);
        self.chap.is_none() && any_address && self.redirect.is_none()
    }
}

/// A logical unit of a target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LunConfig {
    /// The logical unit number, from 0 to 16383; no other unit of the target has it.
    pub number: u16,
    /// The medium of its blocks, and the options of its disk.
    pub backend: LunSpec,
    /// The initiators that see it, among those that may log in; all of them by default.
    #[serde(flatten)]
    pub mask: Mask,
}

/// The protection of the list of targets.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiscoveryConfig {
    /// The user and secret that an initiator must prove.
    pub chap: Option<Chap>,
    /// Another address to send initiators to.
    pub redirect: Option<Redirect>,
}

/// The parameters to offer and accept in negotiation (RFC 7143 §13).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Negotiation {
    /// MaxConnections (§13.2): the most connections of a session.
    pub max_connections: u16,
    /// InitialR2T (§13.10): solicit all data of every write.
    pub initial_r2t: bool,
    /// ImmediateData (§13.11): a command PDU may carry data of its write.
    pub immediate_data: bool,
    /// FirstBurstLength (§13.14): the most unsolicited data of a write.
    pub first_burst: ByteSize,
    /// MaxBurstLength (§13.13): the most data in one burst of Data-In, or that one R2T asks for.
    pub max_burst: ByteSize,
    /// MaxOutstandingR2T (§13.17): the most unanswered R2Ts of one write.
    pub max_outstanding_r2t: u16,
    /// ErrorRecoveryLevel (§13.20): the highest level accepted, from 0 to 2.
    pub error_recovery_level: u8,
    /// DefaultTime2Wait (§13.15): seconds before an initiator that lost a connection or session tries again.
    pub time2wait: u16,
    /// DefaultTime2Retain (§13.16): seconds after those, for which its commands are kept.
    pub time2retain: u16,
    /// MaxRecvDataSegmentLength (§13.12): the longest data segment that the target receives.
    pub receive_segment: ByteSize,
    /// HeaderDigest (§13.1): CRC32C over the headers of every PDU.
    pub header_digest: DigestUse,
    /// DataDigest (§13.1): CRC32C over the data segment of every PDU.
    pub data_digest: DigestUse,
}

/// The use of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DigestUse {
    /// Connections without it are refused.
    Required,
    /// Used if the initiator supports it.
    Preferred,
    /// Used if the initiator asks for it.
    Accepted,
    /// Not used, even if the initiator asks for it.
    Never,
}

impl From<DigestUse> for DigestPreference {
    fn from(wanted: DigestUse) -> Self {
        match wanted {
            DigestUse::Required => Self::Required,
            DigestUse::Preferred => Self::Preferred,
            DigestUse::Accepted => Self::Accepted,
            DigestUse::Never => Self::Never,
        }
    }
}

impl Default for Negotiation {
    fn default() -> Self {
        let offer = Offer::default();
        Self {
            max_connections: offer.max_connections,
            initial_r2t: offer.initial_r2t,
            immediate_data: offer.immediate_data,
            first_burst: ByteSize(offer.first_burst_bytes.into()),
            max_burst: ByteSize(offer.max_burst_bytes.into()),
            max_outstanding_r2t: offer.max_outstanding_r2t,
            error_recovery_level: ERROR_RECOVERY_LEVEL_MAX,
            time2wait: offer.default_time2wait_s,
            time2retain: TIME2RETAIN_S,
            receive_segment: ByteSize(offer.receive_segment_bytes_max.into()),
            header_digest: DigestUse::Accepted,
            data_digest: DigestUse::Accepted,
        }
    }
}

/// The standard's range of burst and segment lengths (RFC 7143 §13.12–13.14).
const LENGTH_BYTES: std::ops::RangeInclusive<u64> = 512..=(1 << 24) - 1;

/// The highest level (RFC 7143 §13.20).
const ERROR_RECOVERY_LEVEL_MAX: u8 = 2;

/// Twice the half minute in which an initiator usually notices that a peer has fallen silent. A target that saw the
/// connection break keeps its commands for that long, and for a new connection to be made.
const TIME2RETAIN_S: u16 = 60;

/// An hour, the longest that can be negotiated (RFC 7143 §13.15, §13.16).
const RECOVERY_SECONDS_MAX: u16 = 3600;

impl Negotiation {
    fn offer(&self) -> Result<Offer, InvalidConfig> {
        let length = |key, size: ByteSize| match u32::try_from(size.0) {
            Ok(bytes) if LENGTH_BYTES.contains(&size.0) => Ok(bytes),
            _ => Err(InvalidConfig::Length { key, size }),
        };
        if self.error_recovery_level > ERROR_RECOVERY_LEVEL_MAX {
            return Err(InvalidConfig::ErrorRecoveryLevel(self.error_recovery_level));
        }
        if let Some(seconds) =
            [self.time2wait, self.time2retain].into_iter().find(|s| *s > RECOVERY_SECONDS_MAX)
        {
            return Err(InvalidConfig::RecoveryTime(seconds));
        }
        Ok(Offer {
            max_connections: self.max_connections.clamp(1, session::parameters::MAX_CONNECTIONS),
            initial_r2t: self.initial_r2t,
            immediate_data: self.immediate_data,
            first_burst_bytes: length("first_burst", self.first_burst.min(self.max_burst))?,
            max_burst_bytes: length("max_burst", self.max_burst)?,
            max_outstanding_r2t: self.max_outstanding_r2t.max(1),
            error_recovery_level: self.error_recovery_level,
            default_time2wait_s: self.time2wait,
            default_time2retain_s: self.time2retain,
            receive_segment_bytes_max: length("receive_segment", self.receive_segment)?,
            header_digest: self.header_digest.into(),
            data_digest: self.data_digest.into(),
            split: SplitLanes::Three,
        })
    }
}

/// Options of every connection's socket.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SocketConfig {
    /// Congestion control: a name, and for one with groups (rw_fair, rw_fast) their terms, `rw_fair:single,cubic`. The
    /// system's default if missing.
    #[serde(deserialize_with = "deserialize_congestion")]
    pub congestion: Option<Congestion>,
    /// `SO_SNDBUF`, for experiments: disables the kernel's own tuning.
    pub send_buffer: Option<u32>,
    /// `SO_RCVBUF`, for experiments: disables the kernel's own tuning.
    pub receive_buffer: Option<u32>,
    /// Whether the kernel paces what is sent, whatever the congestion control; it does if missing.
    pub paced: Option<bool>,
    /// The least retransmission timeout beyond the round trip, in milliseconds: 50 if missing; Linux takes up to 200,
    /// which is its own.
    pub retransmission_timeout_min_ms: Option<u16>,
    /// The threads that move the bytes of connections: `"shared"`, those of the shards, or `"per-lane"`, two for each
    /// connection.
    #[serde(deserialize_with = "deserialize_threads")]
    pub threads: Threads,
}

fn deserialize_threads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Threads, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn deserialize_congestion<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Congestion>, D::Error> {
    let text = String::deserialize(deserializer)?;
    congestion::parse(&text).map(Some).map_err(D::Error::custom)
}

impl SocketConfig {
    pub(crate) fn options(&self) -> SocketOptions {
        let ours = SocketOptions::default();
        let timeout_min = self.retransmission_timeout_min_ms.map(|ms| Duration::from_millis(ms.into()));
        SocketOptions {
            congestion: self.congestion.clone(),
            group: ours.group,
            send_buffer_bytes: self.send_buffer,
            receive_buffer_bytes: self.receive_buffer,
            // A response goes where its command came from: nothing is placed here.
            unsent: UnsentLimit::System,
            is_paced: self.paced.unwrap_or(ours.is_paced),
            retransmission_timeout_min: timeout_min.unwrap_or(ours.retransmission_timeout_min),
            threads: self.threads,
        }
    }
}

/// A contradictory or unsafe configuration.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum InvalidConfig {
    /// There is no target.
    #[error("there is no target: name one, with at least one LUN")]
    NoTarget,
    /// There is no address to listen on.
    #[error("there is no address to listen on")]
    NoAddress,
    /// There are addresses outside groups besides portal groups.
    #[error(
        "there are portal groups, and addresses outside them: move the addresses of `listen` to a [[portal_group]]"
    )]
    ListenBesideGroups,
    /// The tag cannot be the relative identifier of a port (SPC-4).
    #[error("portal group tags are from 1 to 65535")]
    NoTag,
    /// Two portal groups share a tag.
    #[error("there are two portal groups with tag {0}: give each its own tag")]
    TwoGroups(u16),
    /// A portal group has no portals.
    #[error("portal group {0} has no portal")]
    NoPortal(u16),
    /// A target names a portal group that does not exist.
    #[error("target {target} names portal group {tag}, which does not exist")]
    NoGroup { target: IscsiName, tag: u16 },
    /// A target admits users but authenticates none of them.
    #[error(
        "target {target} admits user {user}, whom it does not authenticate: name the user under chap.initiator too"
    )]
    NoSuchUser { target: IscsiName, user: String },
    /// Two targets share a name.
    #[error("there are two targets named {0}: give each its own name")]
    TwoTargets(IscsiName),
    /// A target has no LUNs.
    #[error("target {0} has no LUN")]
    NoLun(IscsiName),
    /// Two LUNs share a number.
    #[error("target {target} has two LUNs {number}: give each its own number")]
    TwoLuns { target: IscsiName, number: u16 },
    /// Anybody could read and destroy the data.
    #[error(
        "refusing to listen on {address}: anybody who can reach it could use target {target}. Ask for a password \
         (CHAP), restrict it to addresses, listen on loopback only, or say explicitly that insecure access is allowed"
    )]
    Insecure {
        /// The address beyond loopback.
        address: SocketAddr,
        /// The target without protection.
        target: IscsiName,
    },
    /// The standard forbids this length.
    #[error("{key} = {size}: must be from 512 bytes to 1 byte less than 16MiB")]
    Length { key: &'static str, size: ByteSize },
    /// There is no such level.
    #[error("error_recovery_level = {0}: it is 0, 1 or 2")]
    ErrorRecoveryLevel(u8),
    /// The time exceeds the standard's limit.
    #[error("time2wait and time2retain are at most 3600 seconds, not {0}")]
    RecoveryTime(u16),
    /// There is no such prefix.
    #[error("ipv6_prefix = {0}: it is from 1 to 128")]
    Ipv6Prefix(u8),
    /// The memory does not suffice for a single session.
    #[error("buffer_bytes = {0}: at least {BUFFER_BYTES_MIN} per shard are needed")]
    Memory(ByteSize),
}

/// With less, one command of the longest kind would not fit beside the unsolicited data of a small window.
pub(crate) const BUFFER_BYTES_MIN: ByteSize = ByteSize(64 << 20);

impl Config {
    /// Checks that the configuration is consistent and safe.
    ///
    /// # Errors
    /// The first defect and its remedy.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if self.targets.is_empty() {
            return Err(InvalidConfig::NoTarget);
        }
        let groups = self.validated_groups()?;
        let mut names = HashSet::new();
        for target in &self.targets {
            if !names.insert(&target.name) {
                return Err(InvalidConfig::TwoTargets(target.name.clone()));
            }
            target.validate(&groups)?;
        }
        if self.limits.buffer_bytes.0 / (self.shards().max(1) as u64) < BUFFER_BYTES_MIN.0 {
            return Err(InvalidConfig::Memory(self.limits.buffer_bytes));
        }
        if Ipv6Prefix::new(self.limits.ipv6_prefix).is_none() {
            return Err(InvalidConfig::Ipv6Prefix(self.limits.ipv6_prefix));
        }
        self.offer()?;
        self.refuse_insecure()
    }

    /// The parameters to offer and accept in negotiation.
    pub(crate) fn offer(&self) -> Result<Offer, InvalidConfig> {
        self.negotiation.offer()
    }

    /// The directory for reservations.
    pub(crate) fn state_directory(&self) -> Option<&Path> {
        self.state_directory.as_deref().filter(|path| !path.as_os_str().is_empty())
    }

    /// The useful number of event loops: no more than targets, because a target belongs to one.
    pub(crate) fn shards(&self) -> usize {
        self.shards.clamp(1, self.targets.len().max(1))
    }

    /// The portal groups; `listen` is the only one if no other is configured.
    pub(crate) fn portal_groups(&self) -> Vec<PortalGroupConfig> {
        match self.portal_groups.is_empty() {
            true => vec![PortalGroupConfig { tag: self.portal_group_tag, portals: self.listen.clone() }],
            false => self.portal_groups.clone(),
        }
    }

    /// The tags of the portal groups that serve a target.
    pub(crate) fn portal_groups_of(&self, target: &TargetConfig) -> Vec<u16> {
        let tags: BTreeSet<u16> = match target.portal_groups.is_empty() {
            true => self.portal_groups().iter().map(|group| group.tag).collect(),
            false => target.portal_groups.iter().copied().collect(),
        };
        tags.into_iter().collect()
    }

    fn validated_groups(&self) -> Result<Vec<PortalGroupConfig>, InvalidConfig> {
        if !self.portal_groups.is_empty() && self.listen != Self::default().listen {
            return Err(InvalidConfig::ListenBesideGroups);
        }
        let groups = self.portal_groups();
        let mut tags = HashSet::new();
        for group in &groups {
            if group.tag == 0 {
                return Err(InvalidConfig::NoTag);
            }
            if !tags.insert(group.tag) {
                return Err(InvalidConfig::TwoGroups(group.tag));
            }
            if group.portals.is_empty() {
                let named = !self.portal_groups.is_empty();
                return Err(if named {
                    InvalidConfig::NoPortal(group.tag)
                } else {
                    InvalidConfig::NoAddress
                });
            }
        }
        Ok(groups)
    }

    /// Whether the configuration itself contains a secret. Only its owner may then read or change its file.
    #[must_use]
    pub fn has_inline_secrets(&self) -> bool {
        let targets = self.targets.iter().filter_map(|target| target.chap.as_ref());
        targets.chain(&self.discovery.chap).any(Chap::has_inline_secret)
    }

    fn refuse_insecure(&self) -> Result<(), InvalidConfig> {
        let groups = self.portal_groups();
        let mut portals = groups.iter().flat_map(|group| &group.portals);
        let exposed = portals.find(|address| !address.ip().is_loopback());
        let open = self.targets.iter().find(|target| target.is_open());
        match (exposed, open) {
            (Some(address), Some(target)) if !self.allow_insecure => {
                Err(InvalidConfig::Insecure { address: *address, target: target.name.clone() })
            }
            _ => Ok(()),
        }
    }
}

impl TargetConfig {
    fn authenticates(&self, user: &str) -> bool {
        let mut users = self.chap.iter().flat_map(|chap| &chap.initiators);
        users.any(|credential| credential.user == user)
    }

    fn validate(&self, groups: &[PortalGroupConfig]) -> Result<(), InvalidConfig> {
        if self.luns.is_empty() && self.redirect.is_none() {
            return Err(InvalidConfig::NoLun(self.name.clone()));
        }
        let is_there = |tag: &&u16| groups.iter().any(|group| group.tag == **tag);
        if let Some(&tag) = self.portal_groups.iter().find(|tag| !is_there(tag)) {
            return Err(InvalidConfig::NoGroup { target: self.name.clone(), tag });
        }
        let luns = self.luns.iter().flat_map(|lun| &lun.mask.users);
        if let Some(user) = self.mask.users.iter().chain(luns).find(|user| !self.authenticates(user)) {
            return Err(InvalidConfig::NoSuchUser { target: self.name.clone(), user: user.clone() });
        }
        let mut numbers = HashSet::new();
        for lun in &self.luns {
            if !numbers.insert(lun.number) {
                return Err(InvalidConfig::TwoLuns { target: self.name.clone(), number: lun.number });
            }
        }
        Ok(())
    }
}
