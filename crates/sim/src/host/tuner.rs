//! The tuners of hosts: what ships, and one without a reason. The protocol must not depend on a good one.

use crate::random::Random;
use crate::shared_cell::SharedCell;
use policy::Tuner;
use policy::tuner::{AS_FLOWS, Decision, Guided, Law, Reason, Slice, Terms};

/// A tuner by its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostTuner {
    /// [`Fickle`].
    #[default]
    Fickle,
    /// [`Guided`], which ships.
    Guided,
}

impl HostTuner {
    /// One that begins with this many connections, or fewer.
    pub fn begin(self, connections: u32, random: &SharedCell<Random>) -> Box<dyn Tuner> {
        match self {
            Self::Fickle => Box::new(Fickle::new(connections, random.clone())),
            Self::Guided => {
                // As few flows it begins with few connections, and has room to grow.
                let as_flows = random.lock().between(1, AS_FLOWS);
                let terms = Terms { connections_max: CONNECTIONS_MAX, as_flows, ..Terms::default() };
                Box::new(Guided::new(terms))
            }
        }
    }
}

/// Changes the number of connections again and again, to any that may be had, and to more than may be.
struct Fickle {
    connections: u32,
    /// It changes its mind after one slice of so many.
    changes_one_in: u64,
    random: SharedCell<Random>,
}

/// Often, or so rarely that connections are logged out because they have been spare for long.
const CHANGES_ONE_IN: [u64; 2] = [2, 100];

/// It keeps to so few more than the target allows, so that it often asks for fewer.
const TOO_MANY: u32 = 2;

/// The most connections that any of them asks for.
pub const CONNECTIONS_MAX: u32 = 8;

impl Fickle {
    /// One that begins with this many connections.
    fn new(connections: u32, random: SharedCell<Random>) -> Self {
        let changes_one_in = *random.lock().choose(&CHANGES_ONE_IN);
        Self { connections, changes_one_in, random }
    }
}

impl Tuner for Fickle {
    fn connections_at_first(&self) -> u32 {
        self.connections
    }

    fn decide(&mut self, slice: &Slice) -> Option<Decision> {
        let mut random = self.random.lock();
        let most = (slice.connections_max + TOO_MANY).min(CONNECTIONS_MAX);
        random.one_in(self.changes_one_in).then(|| Decision {
            at: slice.end,
            connections_before: slice.connections,
            connections: random.between(1, most),
            law: if random.one_in(4) { Law::Bbr } else { Law::Configured },
            bytes_per_second: 0.0,
            reason: Reason::Searching,
        })
    }
}
