//! What one seed means: hosts, sessions, parameters, network, units and faults.

use crate::disk::Geometry;
use crate::fault::{self, Fault, FaultKind};
use crate::host::{HostPlan, HostTuner, Mix, PathPlan, plan_contest, plan_copies};
use crate::network::Profile;
use crate::portal::Portals;
use crate::random::Random;
use crate::target::TargetPlan;
use crate::unit::{self, UnitPlan};
use crate::users::Users;
use device::{Ipv6Prefix, SessionLimits};
use pdu::Duration;
use policy::{PlacementPolicy, Rule};
use session::parameters::{DigestPreference, Offer, SplitLanes};

/// The highest error recovery level that a seed draws.
const RECOVERY_LEVEL_MAX: u8 = 2;

/// Operations of one seed.
pub const OPERATIONS: u32 = 2000;

/// What is left out of a seed, to find what it takes to fail, or done otherwise, to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Operations to begin.
    pub operations: u32,
    /// Faults by their places in the seed's list.
    pub faults_left_out: Vec<usize>,
    /// Connections of one session.
    pub connections_max: u16,
    /// Hosts, at most; those with higher numbers are left out.
    pub hosts_max: usize,
    /// ErrorRecoveryLevel that sessions may agree on.
    pub recovery_level_max: u8,
    /// Where all hosts place commands, instead of what the seed draws.
    pub placement: Option<PlacementPolicy>,
}

impl Default for Reduction {
    fn default() -> Self {
        Self {
            operations: OPERATIONS,
            faults_left_out: Vec::new(),
            connections_max: u16::MAX,
            hosts_max: usize::MAX,
            recovery_level_max: RECOVERY_LEVEL_MAX,
            placement: None,
        }
    }
}

/// Everything that a seed decides before time begins.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The number that everything else was drawn from.
    pub seed: u64,
    /// Operations to begin.
    pub operations: u32,
    /// The initiators and their workloads.
    pub hosts: Vec<HostPlan>,
    /// The machine that serves the units.
    pub target: TargetPlan,
    /// The logical units, and the disks behind them.
    pub units: Vec<UnitPlan>,
    /// The network between.
    pub network: Profile,
    /// What goes wrong, by place in the seed's list.
    pub faults: Vec<(usize, Fault)>,
    /// Silence after which an initiator probes a connection.
    pub ping_after: Duration,
    /// How long an answer to that may take.
    pub ping_timeout: Duration,
}

/// How rare a seed with persistent reservations is.
const RESERVATIONS_ONE_IN: u64 = 3;

/// Bytes of a block of the first unit.
const BLOCK_BYTES: u32 = 512;

/// How rare a seed with long reads is, how large its disk is, and how many operations read all of it: long enough for
/// the target to ask for acknowledgements meanwhile.
const LONG_READS_ONE_IN: u64 = 8;
const LONG_READ_BLOCKS: u64 = 1400;
const WHOLE_READS_PERCENT: u64 = 2;

/// How rare a seed is whose target asks for logouts and drops sessions.
const NOTICES_ONE_IN: u64 = 3;

/// The tuners of hosts; most have a fixed number of connections.
const TUNERS: [Option<HostTuner>; 6] =
    [None, None, None, Some(HostTuner::Fickle), Some(HostTuner::Fickle), Some(HostTuner::Guided)];

/// How hosts ask for their sessions to be split; most do not.
const SPLITS: [SplitLanes; 6] = {
    use SplitLanes::{None, Three, Two};
    [None, None, None, None, Two, Three]
};

/// How rare a host is that places its commands by one of the plain rules.
const PLAIN_PLACEMENT_ONE_IN: u64 = 8;

/// In one seed of so many paths meddle with what they carry.
const MEDDLING_ONE_IN: u64 = 3;

/// Connections in all, at least.
pub const CONNECTIONS_MIN: u16 = 4;

/// How rare a host is that leaves the number of its sessions to the portal groups.
const BY_PORTAL_GROUP_ONE_IN: u64 = 2;

/// Connections of a session with another target than the first.
const ELSEWHERE_CONNECTIONS_MAX: u16 = 3;

/// The target's memory for data in transit: enough for the smallest windows of all sessions together, and little enough
/// to limit larger ones.
const TARGET_MEMORY_BYTES: (u64, u64) = (12 << 20, 32 << 20);

/// How rare a seed is whose target has hardly more memory than its sessions need with the smallest windows that it
/// grants.
const SCARCE_MEMORY_ONE_IN: u64 = 3;
const WINDOW_COMMANDS_MIN: u32 = 4;

/// The longest transfer of such a seed: a few of them take all of the memory.
const SCARCE_MEMORY_TRANSFER_BYTES_MAX: u64 = 128 << 10;

/// The most memory of such a seed, in percent of the need.
const SCARCE_MEMORY_PERCENT_MAX: u64 = 200;

impl Scenario {
    /// What `seed` means, without what `reduction` leaves out.
    #[must_use]
    pub fn of(seed: u64, reduction: &Reduction) -> Self {
        let mut random = Random::new(seed, "scenario");
        let digests = *random.choose(&[
            (DigestPreference::Required, DigestPreference::Required),
            (DigestPreference::Required, DigestPreference::Never),
            (DigestPreference::Never, DigestPreference::Required),
            (DigestPreference::Never, DigestPreference::Never),
        ]);
        let mut disk = Geometry {
            block_bytes: BLOCK_BYTES,
            blocks: random.between(64, 512),
            volatile_cache: random.one_in(2),
            latency_max: Duration::from_micros(random.between(10, 20_000)),
        };
        let mut hosts = hosts(&mut random, digests, &disk);
        // With a generator of its own, so that the rest of the seed is what it would be without it.
        if Random::new(seed, "long reads").one_in(LONG_READS_ONE_IN) {
            disk.blocks = LONG_READ_BLOCKS;
            hosts.iter_mut().for_each(|host| host.mix.whole_reads_percent = WHOLE_READS_PERCENT);
        }
        let mut units = unit::draw(seed, disk);
        let mut elsewhere = Random::new(seed, "further targets");
        for host in &mut hosts {
            let path = |_| PathPlan {
                connections: elsewhere.between(1, ELSEWHERE_CONNECTIONS_MAX),
                offer: offer(&mut elsewhere, digests),
            };
            host.elsewhere = (1..unit::targets_of(&units)).map(path).collect();
        }
        let mut holding_back = Random::new(seed, "holding back");
        hosts.iter_mut().for_each(|host| host.held_back_percent = *holding_back.choose(&[0, 0, 30, 90]));
        let mut placement = Random::new(seed, "placement policies");
        hosts.iter_mut().for_each(|host| host.placement = placement_policy(&mut placement));
        let mut splits = Random::new(seed, "split sessions");
        hosts.iter_mut().for_each(|host| host.ask_for_split(*splits.choose(&SPLITS)));
        let mut tuners = Random::new(seed, "tuners");
        hosts.iter_mut().for_each(|host| host.tuner = *tuners.choose(&TUNERS));
        let mut lengths = Random::new(seed, "transfer lengths");
        hosts.iter_mut().for_each(|host| host.mix.mismatched_percent = *lengths.choose(&[0, 0, 5, 20]));
        let reserves = Random::new(seed, "reservations").one_in(RESERVATIONS_ONE_IN);
        hosts.iter_mut().for_each(|host| {
            host.mix.reservations = reserves;
            // Registrations belong to one session, and the client chooses among several by itself.
            host.paths.truncate(if reserves { 1 } else { usize::MAX });
        });
        widen(&mut hosts);
        let portals = Portals::of(seed);
        spread(&mut hosts, &portals, &mut Random::new(seed, "paths to portals"));
        if !reserves && portals.all().len() > 1 {
            leave_sessions_to_portal_groups(&mut hosts, &mut Random::new(seed, "sessions of portal groups"));
        }
        let target_offer = offer(&mut random, digests);
        let mut limits = SessionLimits {
            window_commands: random.between(4, 64),
            sessions_per_address: u16::MAX,
            ipv6_prefix: Ipv6Prefix::LINK,
            ping_after: Duration::from_millis(random.between(2_000, 10_000)),
            ping_timeout: Duration::from_millis(random.between(5_000, 10_000)),
        };
        let ample = random.between(TARGET_MEMORY_BYTES.0, TARGET_MEMORY_BYTES.1);
        let mut scarcity = Random::new(seed, "memory");
        let memory = if scarcity.one_in(SCARCE_MEMORY_ONE_IN) {
            limits.window_commands = WINDOW_COMMANDS_MIN;
            let transfer_bytes_max = SCARCE_MEMORY_TRANSFER_BYTES_MAX.min(units[0].shared_bytes());
            for host in &mut hosts {
                host.mix.transfer_bytes_max = transfer_bytes_max;
                // The memory is for the sessions that are planned, and further connections of split ones are sessions.
                host.ask_for_split(SplitLanes::None);
            }
            scarce_memory_bytes(&hosts, &target_offer, &units)
                * scarcity.between(100, SCARCE_MEMORY_PERCENT_MAX)
                / 100
        } else {
            ample
        };
        let users = Users::of(seed, hosts.len());
        for (index, host) in (0..).zip(&mut hosts) {
            host.credentials = users.as_ref().and_then(|users| users.credentials(index));
            // A client asks for targets without digests.
            let discovers = digests == (DigestPreference::Never, DigestPreference::Never);
            host.discovers = discovers.then(|| portals.clone());
        }
        let target = TargetPlan {
            authentication: users.and_then(|users| users.authentication()),
            offer: Offer { max_connections: random.between(4, 8), split: SplitLanes::Three, ..target_offer },
            portals,
            limits,
            memory_bytes: usize::try_from(memory).unwrap_or(usize::MAX),
        };
        let network = network(&mut random);
        // Drawn last, so that a bound on it leaves the rest of the seed as it is.
        let recovery_level = Random::new(seed, "recovery level").between(0, 2);
        let mut faults = fault::draw(&mut random, OPERATIONS);
        if target.portals.all().len() > 1 {
            let mut outages = Random::new(seed, "outages");
            fault::add(&mut faults, FaultKind::Outage, &mut outages, OPERATIONS);
        }
        let mut notices = Random::new(seed, "notices");
        if notices.one_in(NOTICES_ONE_IN) {
            fault::add(&mut faults, FaultKind::Notice, &mut notices, OPERATIONS);
        }
        let mut meddling = Random::new(seed, "meddling");
        if meddling.one_in(MEDDLING_ONE_IN) {
            fault::add(&mut faults, FaultKind::Meddling, &mut meddling, OPERATIONS);
        }
        plan_copies(seed, &mut hosts, &mut units);
        plan_contest(seed, &mut hosts, &mut units);
        let (ping_after, ping_timeout) = (limits.ping_after, limits.ping_timeout);
        let operations = OPERATIONS;
        let scenario = Self {
            seed,
            operations,
            hosts,
            target,
            units,
            network,
            faults: Vec::new(),
            ping_after,
            ping_timeout,
        };
        scenario.reduced(reduction, faults, recovery_level)
    }

    /// The ErrorRecoveryLevel on which all sessions can rely: a split session has level 0.
    pub(crate) fn least_recovery_level(&self) -> u8 {
        let is_split =
            self.hosts.iter().flat_map(HostPlan::offers).any(|offer| offer.split != SplitLanes::None);
        if is_split { 0 } else { self.target.offer.error_recovery_level }
    }

    fn reduced(mut self, reduction: &Reduction, faults: Vec<Fault>, recovery_level: u8) -> Self {
        let recovery_level = recovery_level.min(reduction.recovery_level_max);
        self.target.offer.error_recovery_level = recovery_level;
        self.operations = self.operations.min(reduction.operations);
        self.hosts.truncate(reduction.hosts_max.max(1));
        for host in &mut self.hosts {
            host.placement = reduction.placement.unwrap_or(host.placement);
        }
        for path in self.hosts.iter_mut().flat_map(|host| host.paths.iter_mut().chain(&mut host.elsewhere)) {
            path.connections = path.connections.min(reduction.connections_max).max(1);
            path.offer.error_recovery_level = recovery_level;
        }
        let faults = faults.into_iter().enumerate();
        let kept = faults.filter(|(place, _)| !reduction.faults_left_out.contains(place));
        self.faults = kept.filter(|(_, fault)| fault.at_operation <= self.operations).collect();
        self
    }

    /// Connections that its hosts want.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.hosts.iter().flat_map(HostPlan::all_paths).map(|path| u32::from(path.connections)).sum()
    }
}

fn hosts(
    random: &mut Random,
    digests: (DigestPreference, DigestPreference),
    disk: &Geometry,
) -> Vec<HostPlan> {
    let hosts: Vec<HostPlan> = (0..random.between(1_u64, 3))
        .map(|_| {
            let several = random.one_in(3);
            let paths = if several { random.between(2_u64, 3) } else { 1 };
            let connections_max = if several { 2 } else { 8 };
            let path = |random: &mut Random| PathPlan {
                connections: random.between(1, connections_max),
                offer: offer(random, digests),
            };
            HostPlan {
                paths: (0..paths).map(|_| path(random)).collect(),
                elsewhere: Vec::new(),
                by_portal_group: false,
                portals: Vec::new(),
                credentials: None,
                discovers: None,
                depth: 1 + random.index(48),
                mix: mix(random, disk),
                copies: None,
                contested: None,
                placement: PlacementPolicy::default(),
                tuner: None,
                astray_percent: *random.choose(&[0, 20, 100]),
                held_back_percent: 0,
            }
        })
        .collect();
    hosts
}

fn placement_policy(random: &mut Random) -> PlacementPolicy {
    let rules = [Rule::RoundRobin, Rule::LeastOutstanding, Rule::LowestRtt];
    match random.one_in(PLAIN_PLACEMENT_ONE_IN) {
        true => PlacementPolicy::Plain(*random.choose(&rules)),
        false => PlacementPolicy::EarliestDelivery,
    }
}

/// Gives the first session so many connections that there are enough in all.
fn widen(hosts: &mut [HostPlan]) {
    let all: u16 = hosts.iter().flat_map(|host| &host.paths).map(|path| path.connections).sum();
    if let Some(path) = hosts.first_mut().and_then(|host| host.paths.first_mut()) {
        // The target takes at least as many in one session.
        path.connections = (path.connections + CONNECTIONS_MIN.saturating_sub(all))
            .min(CONNECTIONS_MIN.max(path.connections));
    }
}

/// Lets each host begin with a portal of its own choice.
fn spread(hosts: &mut [HostPlan], portals: &Portals, random: &mut Random) {
    for host in hosts {
        let first = random.index(portals.all().len());
        host.portals = portals.all().cycle().skip(first).take(portals.all().len()).collect();
    }
}

/// Lets hosts with a single session have as many as there are portal groups.
fn leave_sessions_to_portal_groups(hosts: &mut [HostPlan], random: &mut Random) {
    for host in hosts {
        host.by_portal_group = random.one_in(BY_PORTAL_GROUP_ONE_IN) && host.paths.len() == 1;
        if host.by_portal_group {
            // The target takes them in one session, so that there are not more.
            host.paths.iter_mut().for_each(|path| path.connections = path.connections.min(CONNECTIONS_MIN));
        }
    }
}

fn mix(random: &mut Random, disk: &Geometry) -> Mix {
    Mix {
        reads: random.between(10, 60),
        writes: random.between(10, 60),
        raw_writes: random.between(0, 15),
        compare_and_writes: random.between(0, 8),
        zeroes: random.between(0, 4),
        unmaps: random.between(0, 4),
        flushes: random.between(0, 6),
        test_unit_readys: random.between(0, 4),
        fua_percent: random.between(0, 30),
        whole_reads_percent: 0,
        reservations: false,
        mismatched_percent: 0,
        reset_one_in: random.between(800, 4000),
        transfer_bytes_max: random.between(1, 64).min(disk.blocks) * u64::from(BLOCK_BYTES),
    }
}

fn offer(random: &mut Random, digests: (DigestPreference, DigestPreference)) -> Offer {
    let first_burst_bytes = *random.choose(&[512, 1024, 4096, 16 << 10, 64 << 10]);
    let max_burst_bytes = *random.choose(&[1024, 4096, 8192, 64 << 10, 256 << 10]);
    Offer {
        max_connections: 8,
        initial_r2t: random.one_in(2),
        immediate_data: random.percent(70),
        first_burst_bytes: first_burst_bytes.min(max_burst_bytes),
        max_burst_bytes,
        max_outstanding_r2t: random.between(1, 8),
        default_time2wait_s: 0,
        default_time2retain_s: 20,
        error_recovery_level: 0,
        receive_segment_bytes_max: *random.choose(&[512, 3 * BLOCK_BYTES + 4, 8192, 64 << 10]),
        header_digest: digests.0,
        data_digest: digests.1,
        split: SplitLanes::None,
    }
}

/// What a target needs for these hosts: half of it for windows of the smallest kind, with one more while a session is
/// replaced, and as much for the pieces of all other data, some of which it keeps until they are acknowledged.
fn scarce_memory_bytes(hosts: &[HostPlan], target: &Offer, units: &[UnitPlan]) -> u64 {
    /// Of a window, and immediate ones.
    const COMMANDS: u64 = WINDOW_COMMANDS_MIN as u64 + 4;
    const PAGE_BYTES: u32 = 4 << 10;
    const PIECE_BYTES_MAX: u64 = 1 << 20;
    let bursts_bytes = || {
        let offers = hosts.iter().flat_map(HostPlan::offers);
        offers.map(|offer| {
            let bytes = offer.first_burst_bytes.min(target.first_burst_bytes);
            u64::from(bytes.next_power_of_two().max(PAGE_BYTES))
        })
    };
    let windows_bytes: u64 = bursts_bytes().map(|burst_bytes| COMMANDS * burst_bytes).sum();
    let longest = bursts_bytes().max().unwrap_or_default();
    let reads_all = hosts.iter().any(|host| host.mix.whole_reads_percent > 0);
    let longest_read = |unit: &UnitPlan| if reads_all { unit.shared_bytes() } else { unit.block_bytes() };
    let transfers = hosts.iter().map(|host| host.mix.transfer_bytes_max);
    let transfer_bytes = transfers.chain(units.iter().map(longest_read)).max().unwrap_or_default();
    let piece_bytes = transfer_bytes.next_power_of_two().min(PIECE_BYTES_MAX);
    let common_bytes = piece_bytes * 2;
    2 * (windows_bytes + COMMANDS * longest).max(common_bytes)
}

fn network(random: &mut Random) -> Profile {
    let latency_max = random.between(20, 40_000);
    let jitter_max = *random.choose(&[0, latency_max / 10, latency_max]);
    // On a megabit per second what is late is most likely only queued.
    let bytes_per_ms_max = *random.choose(&[200, 20_000, 1_000_000]);
    Profile {
        latency_min: Duration::from_micros(latency_max / random.between(1, 20)),
        latency_max: Duration::from_micros(latency_max),
        jitter_max: Duration::from_micros(jitter_max),
        bytes_per_ms_min: 10_000.min(bytes_per_ms_max / 2),
        bytes_per_ms_max,
        capacity_bytes_min: 16 << 10,
        capacity_bytes_max: *random.choose(&[16 << 10, 64 << 10, 1 << 20]),
        cut_percent: *random.choose(&[0, 5, 50]),
    }
}
