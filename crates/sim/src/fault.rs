//! What goes wrong, and when.

use crate::random::Random;

/// One kind of misfortune.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A connection breaks at some byte; both ends hear of it.
    Reset,
    /// A connection breaks, and only one end hears of it.
    HalfOpen,
    /// A connection carries nothing for a while, in one direction.
    Stall,
    /// Some bits of a header change on the way; only where a digest covers it.
    CorruptHeader,
    /// The same with data.
    CorruptData,
    /// The target refuses connections for a while, and some break.
    Refusal,
    /// Disk operations fail, done in part; perhaps just those that empty the cache, and lose what it holds.
    DiskError,
    /// The disk answers nothing for a while, or only some of what it is asked; perhaps just when a connection breaks, and
    /// perhaps for longer than the initiators wait for a command.
    DiskStall,
    /// The target dies, with the disk's cache, and is started again after a while.
    Crash,
    /// One portal of several refuses, stalls or is unreachable for a while.
    Outage,
    /// The target asks the initiator of a session to log out, or tells that it drops the session.
    Notice,
    /// A path rejects a PDU instead of passing it on, or passes on one that nobody has sent.
    Meddling,
}

impl FaultKind {
    /// All kinds, in the order of their discriminants, which index [`FaultCounts`].
    pub const ALL: [Self; 12] = [
        Self::Reset,
        Self::HalfOpen,
        Self::Stall,
        Self::CorruptHeader,
        Self::CorruptData,
        Self::Refusal,
        Self::DiskError,
        Self::DiskStall,
        Self::Crash,
        Self::Outage,
        Self::Notice,
        Self::Meddling,
    ];

    /// Its name in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::HalfOpen => "half-open",
            Self::Stall => "stall",
            Self::CorruptHeader => "corrupt-header",
            Self::CorruptData => "corrupt-data",
            Self::Refusal => "refusal",
            Self::DiskError => "disk-error",
            Self::DiskStall => "disk-stall",
            Self::Crash => "crash",
            Self::Outage => "outage",
            Self::Notice => "notice",
            Self::Meddling => "meddling",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How likely it is among the others.
    const fn share(self) -> u64 {
        match self {
            Self::Reset => 6,
            Self::Stall | Self::CorruptHeader | Self::CorruptData => 3,
            Self::HalfOpen | Self::DiskError | Self::DiskStall | Self::Crash => 2,
            Self::Refusal => 1,
            // Only in some worlds: see `add`.
            Self::Outage | Self::Notice | Self::Meddling => 0,
        }
    }
}

/// Something that goes wrong once in a world.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The thing that goes wrong.
    pub kind: FaultKind,
    /// The number of operations that have begun when it happens.
    pub at_operation: u32,
    /// Its details: where, how long.
    pub random: Random,
}

/// Faults of one seed: enough to meet each other, few enough to make progress between them.
const FAULTS: (u64, u64) = (8, 24);

/// Faults of a kind that only some worlds know, at most.
const ADDED_MAX: u64 = 6;

/// Draws the faults of a seed, in the order of their time.
#[must_use]
pub fn draw(random: &mut Random, operations: u32) -> Vec<Fault> {
    let number = random.between(FAULTS.0, FAULTS.1);
    let mut faults: Vec<Fault> = (0..number)
        .map(|_| Fault {
            kind: draw_kind(random),
            at_operation: random.between(0, operations.saturating_sub(operations / 10)),
            random: Random::new(random.word(), "fault"),
        })
        .collect();
    faults.sort_by_key(|fault| fault.at_operation);
    faults
}

/// Adds faults of a kind that only some worlds know, in the order of their time.
pub fn add(faults: &mut Vec<Fault>, kind: FaultKind, random: &mut Random, operations: u32) {
    let number = random.between(1, ADDED_MAX);
    faults.extend((0..number).map(|_| Fault {
        kind,
        at_operation: random.between(0, operations.saturating_sub(operations / 10)),
        random: Random::new(random.word(), "fault"),
    }));
    faults.sort_by_key(|fault| fault.at_operation);
}

fn draw_kind(random: &mut Random) -> FaultKind {
    let mut at = random.below(FaultKind::ALL.iter().map(|kind| kind.share()).sum());
    for kind in FaultKind::ALL {
        if at < kind.share() {
            return kind;
        }
        at -= kind.share();
    }
    FaultKind::Reset
}

/// How often each kind happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; FaultKind::ALL.len()]);

impl FaultCounts {
    /// Counts a fault of this kind.
    pub fn count(&mut self, kind: FaultKind) {
        self.0[kind as usize] += 1;
    }

    /// Those of that kind.
    #[must_use]
    pub fn of(&self, kind: FaultKind) -> u64 {
        self.0[kind as usize]
    }

    /// Faults of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Takes another run's in.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
}
