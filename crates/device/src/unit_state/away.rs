//! Keeps the reports that lost sessions missed until their initiators come back (SAM-5, RFC 7143 §6.3.5).

use std::collections::VecDeque;

use scsi::Sense;

use super::i_t_nexus::Ports;
use super::unit_attention::UnitAttention;
use super::untold::Untold;

/// The most lost nexuses that one unit remembers; the oldest is forgotten first. More initiators than one target serves
/// at a time. A forgotten initiator that returns is told of a power on, which voids all earlier knowledge.
const AWAY_MAX: usize = 1024;

/// The nexuses that were lost and have not come back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Away(VecDeque<(Ports, Untold)>);

impl Away {
    /// Remembers a lost session and the reports that it missed.
    pub(crate) fn remember(&mut self, ports: Ports, untold: Untold) {
        if self.0.len() == AWAY_MAX {
            self.0.pop_front();
        }
        self.0.push_back((ports, untold));
    }

    /// The reports for the same ports, which have a session again. `None` if they are not known to have had one.
    pub(crate) fn welcome(&mut self, ports: &Ports) -> Option<Untold> {
        let place = self.0.iter().position(|(away, _)| away == ports)?;
        self.0.remove(place).map(|(_, untold)| untold)
    }

    /// Makes a condition pending for the chosen nexuses.
    pub(crate) fn tell(&mut self, chosen: impl Fn(&Ports) -> bool, attention: UnitAttention) {
        let told = self.0.iter_mut().filter(|(ports, _)| chosen(ports));
        told.for_each(|(_, untold)| untold.attentions.establish(attention));
    }

    /// Makes a deferred error pending for all.
    pub(crate) fn defer(&mut self, error: Sense) {
        self.0.iter_mut().for_each(|(_, untold)| untold.defer(error));
    }
}
