//! What a server is told: targets, LUNs, who may use them, and limits.

use crate::access::Mask;
use crate::chap::{Chap, ChapAlgorithms};
use crate::lun_spec::LunSpec;
use crate::name::IscsiName;
use crate::portal_group::PortalGroupConfig;
use crate::redirect::Redirect;
use crate::size::ByteSize;
use device::{Ipv6Prefix, SessionLimits};
use framing::SocketOptions;
use serde::Deserialize;
use session::parameters::{DigestPreference, Offer};
use std::collections::{BTreeSet, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that [`Server::start`](crate::Server::start) needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where to accept connections. Port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// These addresses together are one portal group; this is its tag.
    pub portal_group_tag: u16,
    /// Several portal groups, in the place of [`Self::listen`].
    #[serde(rename = "portal_group")]
    pub portal_groups: Vec<PortalGroupConfig>,
    /// The CHAP algorithms that initiators may use; all by default.
    pub chap_algorithms: ChapAlgorithms,
    /// What is served.
    #[serde(rename = "target")]
    pub targets: Vec<TargetConfig>,
    /// Who may ask for the list of targets; open to all by default, who see only what they may use.
    pub discovery: DiscoveryConfig,
    /// Listen beyond loopback although somebody without name or password could reach a target.
    pub allow_insecure: bool,
    /// Where persistent reservations of LUNs on files are kept that initiators want to survive a restart (APTPL);
    /// nowhere if it is empty or missing: then no reservation survives, and initiators are told so.
    pub state_directory: Option<PathBuf>,
    /// Event loops, each a thread of its own. Every target belongs to one of them.
    pub shards: usize,
    /// Bounds.
    pub limits: Limits,
    /// What is offered and accepted when a session is negotiated.
    pub negotiation: Negotiation,
    /// Socket options.
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

/// One target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// Its iSCSI name.
    pub name: IscsiName,
    /// A name for people.
    #[serde(default)]
    pub alias: Option<String>,
    /// The user and secret that an initiator must prove to have.
    #[serde(default)]
    pub chap: Option<Chap>,
    /// The tags of the portal groups that serve it; all by default.
    #[serde(default)]
    pub portal_groups: Vec<u16>,
    /// Where initiators are sent instead.
    #[serde(default)]
    pub redirect: Option<Redirect>,
    /// Who may log in; everybody by default.
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

    /// Whether a stranger could use it: neither a password nor an address is asked for. (A name is no secret.)
    fn is_open(&self) -> bool {
        let addresses = &self.mask.addresses;
        let any_address = addresses.is_empty() || addresses.iter().any(|network| network.prefix_len() == 0);
        self.chap.is_none() && any_address && self.redirect.is_none()
    }
}

/// One logical unit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LunConfig {
    /// Its number.
    pub number: u16,
    /// What is behind it.
    pub backend: LunSpec,
    /// Who sees it, among those who may log in; all of them by default.
    #[serde(flatten)]
    pub mask: Mask,
}

/// Who may ask for the list of targets.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiscoveryConfig {
    /// The user and secret that an initiator must prove to have.
    pub chap: Option<Chap>,
    /// Where initiators are sent instead.
    pub redirect: Option<Redirect>,
}

/// Bounds on what the server takes on, and what a peer sees that exceeds one.
///
/// | bound | beyond it |
/// |---|---|
/// | [`connections`](Self::connections), [`connections_per_address`](Self::connections_per_address) | closed at once |
/// | [`unauthenticated_connections`](Self::unauthenticated_connections) | the oldest of the busiest address is closed |
/// | [`login_seconds`](Self::login_seconds), however many bytes come | closed |
/// | a login of more than 32 PDUs, 8 KiB of data in one, or 16 KiB of text in all | refused (0200) or closed |
/// | [`sessions_per_target`](Self::sessions_per_target), [`sessions_per_address`](Self::sessions_per_address) | Login Response 0302, out of resources |
/// | a session's MaxConnections | Login Response 0206, too many connections |
/// | [`window_commands`](Self::window_commands) | MaxCmdSN; what ignores it is dropped (RFC 7143 §4.2.2.1) |
/// | four immediate commands of a session, one of a kind on each connection aside | Reject, immediate command (0x06) |
/// | 16 KiB of one text request | Reject |
/// | [`buffer_bytes`](Self::buffer_bytes), a quarter of it for the data that one address was asked for | R2Ts wait; TASK SET FULL if unsolicited data exceeds what was promised |
/// | [`ping_after_seconds`](Self::ping_after_seconds) and [`ping_timeout_seconds`](Self::ping_timeout_seconds) | closed |
///
/// So those who have not said who they are hold at most `unauthenticated_connections` × (8 KiB of data + 16 KiB of text +
/// 8 KiB of answer), 2 MiB by default. Sessions are bounded for an address and not for a name: anybody can claim the name
/// of another, and use up what is his.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// TCP connections at a time.
    pub connections: usize,
    /// How many leading bits of an IPv6 address name its host, from 1 to 128. An "address" of the other limits is an
    /// IPv4 address, or an IPv6 network of this length: one host may have every address of its network.
    pub ipv6_prefix: u8,
    /// TCP connections from one address at a time.
    pub connections_per_address: usize,
    /// Connections whose login is not done. When one more comes, the oldest of them is closed that comes from the
    /// address with the most: an honest login takes milliseconds.
    pub unauthenticated_connections: usize,
    /// Seconds that a login may take.
    pub login_seconds: u64,
    /// Sessions of one target at a time.
    pub sessions_per_target: u16,
    /// Sessions of one target that one address may have at a time.
    pub sessions_per_address: u16,
    /// Memory for data on its way, in all shards together.
    pub buffer_bytes: ByteSize,
    /// Commands that one session may have outstanding. Fewer are granted when their unsolicited data could
    /// exceed the memory set aside for it.
    pub window_commands: u32,
    /// Seconds of silence after which a connection is probed.
    pub ping_after_seconds: u64,
    /// Seconds for which a connection that was probed may be silent, at the most: with the answer to the probe ahead of
    /// nothing else and the round trip known, it may be fewer. Any byte counts, of whatever arrives or is acknowledged.
    pub ping_timeout_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Below the usual 1024 descriptors of a process, with some left for files.
            connections: 900,
            // The network of one link (RFC 4291 §2.5.1).
            ipv6_prefix: 64,
            // Four for each of its sessions; and no address can take them all.
            connections_per_address: 256,
            // More than log in at once after a power failure of a rack.
            unauthenticated_connections: 64,
            // The time for a person's initiator with a slow name service in between.
            login_seconds: 15,
            sessions_per_target: 256,
            // Their short reads, which nothing but their command windows bounds, fit half of the memory below.
            sessions_per_address: 64,
            // Half of it is for unsolicited data: four sessions with windows of 128 × 256 KiB, and a thousand with at
            // least 16 × 4 KiB. Memory is taken only when it is needed, and given back when it is not.
            buffer_bytes: ByteSize(1 << 30),
            // With 256 KiB each, 32 MiB in flight without a single R2T.
            window_commands: 128,
            ping_after_seconds: 30,
            ping_timeout_seconds: 30,
        }
    }
}

impl Limits {
    /// Which IPv6 addresses are one host's.
    pub(crate) fn ipv6_prefix(&self) -> Ipv6Prefix {
        Ipv6Prefix::new(self.ipv6_prefix).unwrap_or(Ipv6Prefix::LINK)
    }

    /// Those of every session.
    pub(crate) fn session(&self) -> SessionLimits {
        SessionLimits {
            window_commands: self.window_commands,
            sessions_per_address: self.sessions_per_address,
            ipv6_prefix: self.ipv6_prefix(),
            ping_after: Duration::from_secs(self.ping_after_seconds),
            ping_timeout: Duration::from_secs(self.ping_timeout_seconds),
        }
    }
}

/// What is offered and accepted when a session is negotiated (RFC 7143 §13).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Negotiation {
    /// MaxConnections.
    pub max_connections: u16,
    /// InitialR2T: ask for every write's data first.
    pub initial_r2t: bool,
    /// ImmediateData.
    pub immediate_data: bool,
    /// FirstBurstLength.
    pub first_burst: ByteSize,
    /// MaxBurstLength.
    pub max_burst: ByteSize,
    /// MaxOutstandingR2T.
    pub max_outstanding_r2t: u16,
    /// ErrorRecoveryLevel: the highest that is agreed to, from 0 to 2.
    pub error_recovery_level: u8,
    /// DefaultTime2Wait: seconds before an initiator that lost a connection or session tries again.
    pub time2wait: u16,
    /// DefaultTime2Retain: seconds after those for which its commands are kept.
    pub time2retain: u16,
    /// MaxRecvDataSegmentLength.
    pub receive_segment: ByteSize,
    /// HeaderDigest.
    pub header_digest: DigestUse,
    /// DataDigest.
    pub data_digest: DigestUse,
}

/// How much a digest is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DigestUse {
    /// No connection without it.
    Required,
    /// If the initiator can.
    Preferred,
    /// If the initiator wants it.
    Accepted,
    /// Never.
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

/// What the standard allows for burst and segment lengths (RFC 7143 §13.12–13.14).
const LENGTH_BYTES: std::ops::RangeInclusive<u64> = 512..=(1 << 24) - 1;

/// There is no higher one (RFC 7143 §13.20).
const ERROR_RECOVERY_LEVEL_MAX: u8 = 2;

/// Twice the half minute in which an initiator usually notices that a peer has fallen silent: a target that saw the
/// connection break keeps its commands for that long, and for another one to be made.
const TIME2RETAIN_S: u16 = 60;

/// An hour, the most that can be negotiated (RFC 7143 §13.15, §13.16).
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
        })
    }
}

/// Options of every connection's socket.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SocketConfig {
    /// Congestion control by the kernel's name for it; the system's default otherwise.
    pub congestion: Option<String>,
    /// `SO_SNDBUF`, for experiments: switches the kernel's own tuning off.
    pub send_buffer: Option<u32>,
    /// `SO_RCVBUF`, for experiments: switches the kernel's own tuning off.
    pub receive_buffer: Option<u32>,
}

impl SocketConfig {
    pub(crate) fn options(&self) -> SocketOptions {
        SocketOptions {
            congestion: self.congestion.clone(),
            send_buffer_bytes: self.send_buffer,
            receive_buffer_bytes: self.receive_buffer,
            // A response goes where its command came from: nothing is placed here.
            unsent_bytes: None,
        }
    }
}

/// A configuration that makes no sense, or no safe one.
#[derive(Debug, thiserror::Error)]
pub enum InvalidConfig {
    /// Nothing to serve.
    #[error("there is no target: name one, with at least one LUN")]
    NoTarget,
    /// Nowhere to listen.
    #[error("there is no address to listen on")]
    NoAddress,
    /// Addresses of no group beside addresses of groups.
    #[error(
        "there are portal groups and addresses of none: move the addresses of `listen` to a [[portal_group]]"
    )]
    ListenBesideGroups,
    /// A tag that cannot be the relative identifier of a port, too (SPC-4).
    #[error("portal group tags are from 1 to 65535")]
    NoTag,
    /// Two portal groups of one tag.
    #[error("there are two portal groups with tag {0}: give each its own tag")]
    TwoGroups(u16),
    /// A portal group without portals.
    #[error("portal group {0} has no portal")]
    NoPortal(u16),
    /// A target in a portal group that is not there.
    #[error("target {target} names portal group {tag}, which is not there")]
    NoGroup {
        /// Whose.
        target: IscsiName,
        /// Which.
        tag: u16,
    },
    /// Users to be admitted, but none to be authenticated.
    #[error(
        "target {target} admits user {user}, whom it does not authenticate: name the user under chap.initiator too"
    )]
    NoSuchUser {
        /// Whose.
        target: IscsiName,
        /// Which.
        user: String,
    },
    /// Two targets of one name.
    #[error("there are two targets named {0}: give each its own name")]
    TwoTargets(IscsiName),
    /// A target without LUNs.
    #[error("target {0} has no LUN")]
    NoLun(IscsiName),
    /// Two LUNs of one number.
    #[error("target {target} has two LUNs {number}: give each its own number")]
    TwoLuns {
        /// Whose.
        target: IscsiName,
        /// Which.
        number: u16,
    },
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
    /// A length that the standard does not allow.
    #[error("{key} = {size}: must be from 512 bytes to 1 byte less than 16MiB")]
    Length {
        /// Which.
        key: &'static str,
        /// What was written.
        size: ByteSize,
    },
    /// No such level.
    #[error("error_recovery_level = {0}: it is 0, 1 or 2")]
    ErrorRecoveryLevel(u8),
    /// Longer than the standard allows.
    #[error("time2wait and time2retain are at most 3600 seconds, not {0}")]
    RecoveryTime(u16),
    /// No such prefix.
    #[error("ipv6_prefix = {0}: it is from 1 to 128")]
    Ipv6Prefix(u8),
    /// Too little memory to serve a single session.
    #[error("buffer_bytes = {0}: at least {BUFFER_BYTES_MIN} per shard are needed")]
    Memory(ByteSize),
}

/// With less, one command of the longest kind would not fit beside the unsolicited data of a small window.
pub(crate) const BUFFER_BYTES_MIN: ByteSize = ByteSize(64 << 20);

impl Config {
    /// Whether it can be served, and safely.
    ///
    /// # Errors
    /// The first thing that is wrong, and what to do about it.
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

    /// What is offered and accepted when a session is negotiated.
    pub(crate) fn offer(&self) -> Result<Offer, InvalidConfig> {
        self.negotiation.offer()
    }

    /// Where reservations are kept.
    pub(crate) fn state_directory(&self) -> Option<&Path> {
        self.state_directory.as_deref().filter(|path| !path.as_os_str().is_empty())
    }

    /// Event loops that are worth their thread: no more than targets, as a target belongs to one.
    pub(crate) fn shards(&self) -> usize {
        self.shards.clamp(1, self.targets.len().max(1))
    }

    /// The portal groups, of which `listen` is one if no other is described.
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

    /// Whether a secret stands in the configuration itself: then nobody but its owner may read or change its file.
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
