//! What a session waited for in a time in which it was watched, and what that says.

use super::path_tally::PathTally;
use super::wait::{Wait, Waits};
use super::{Diagnosis, Limit, PathEvidence, Remedy};
use crate::outlook::LONG_PATH;
use pdu::Duration;

/// What a session waited for in a time in which it was watched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Seconds, by what was waited for.
    pub(super) waits_s: Waits,
    /// Of the seconds in which data of reads arrived, those in which every read was answered at once, and those of these
    /// in which the command window was closed.
    pub(super) prompt_s: f64,
    pub(super) prompt_closed_s: f64,
    pub(super) path: PathTally,
    /// Seconds from the first look to the end of that time.
    pub(super) age_s: f64,
    /// The delivery rate of the only connection that works, times seconds, and the seconds in which there is only one.
    pub(super) delivery_bytes: f64,
    pub(super) delivery_s: f64,
    /// Seconds in which the working thread used a processor or waited for one, and the seconds in which that is known.
    pub(super) processor_s: f64,
    pub(super) processor_seen_s: f64,
}

/// The least that must have been seen for a verdict.
const TIME_MIN_S: f64 = 0.1;

/// The shortest round trip in which several looks show whether data of reads pauses.
const LOOKED_INTO: Duration = Duration::from_millis(20);

/// The network limits a session if it is busy for this share of the time. Whatever else is waited for then costs less than
/// the rest.
const BUSY: f64 = 0.7;

/// What is waited for a smaller part of the time than this limits nothing beside a network that is waited for longer.
const MINOR: f64 = 0.2;

/// A larger part of the network's time that is waited for a buffer names that buffer.
pub(super) const BUFFER: f64 = 0.2;

/// If every read is answered at once in this share of the time in which data arrives, more reads would bring more.
const PROMPT: f64 = 0.8;

/// Windows that grow again for this share of the time in which there is something to send are what limits.
const RESTARTING: f64 = 0.5;

/// A thread that uses a processor, or waits for one, for this share of the time is limited by it.
const PROCESSOR: f64 = 0.9;

impl Seen {
    /// What was seen after `earlier`, an earlier state of the same tally.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut later = *self;
        later.waits_s.add_scaled(&earlier.waits_s, -1.0);
        later.prompt_s -= earlier.prompt_s;
        later.prompt_closed_s -= earlier.prompt_closed_s;
        later.path.subtract(&earlier.path);
        later.delivery_bytes -= earlier.delivery_bytes;
        later.delivery_s -= earlier.delivery_s;
        later.processor_s -= earlier.processor_s;
        later.processor_seen_s -= earlier.processor_seen_s;
        later
    }

    /// The mean of the shortest round-trip times of all connections.
    #[must_use]
    pub fn rtt_min(&self) -> Duration {
        self.path.evidence().rtt_min
    }

    /// The bytes that the network carried in both directions, and the time in which it did; `None` if nothing measured it.
    #[must_use]
    pub fn carried(&self) -> Option<(u64, Duration)> {
        let time = Duration::try_from_secs_f64(self.waits_s.sum()).ok()?;
        self.path.carried_bytes().map(|bytes| (bytes, time))
    }

    /// What limited the session; `None` if too little of it was seen, or if its path is shorter than a millisecond and the
    /// processor was not the limit: disks take as long as the network there, and nothing that is measured here tells them
    /// apart.
    #[must_use]
    pub fn diagnose(&self) -> Option<Diagnosis> {
        let sum_s = self.waits_s.sum();
        if sum_s < TIME_MIN_S {
            return None;
        }
        let share = |wait| self.waits_s.of(wait) / sum_s;
        let network_share = share(Wait::Network) + share(Wait::SendBuffer);
        let path = self.path.evidence();
        let arrival_share = share(Wait::Arrival);
        let of = |limit, share, is_incoming| {
            let moving_share = if is_incoming { Some(arrival_share) } else { self.sending_share() };
            let remedy = Remedy::against(limit, moving_share, is_incoming);
            Diagnosis { limit, share, remedy, network_share, is_incoming, path }
        };
        let outgoing = |limit, share| of(limit, share, false);
        if self.processor_s > PROCESSOR * self.processor_seen_s && self.processor_seen_s > sum_s / 2.0 {
            return Some(outgoing(Limit::Processor, self.processor_s / self.processor_seen_s));
        }
        if path.rtt_min < LONG_PATH {
            return None;
        }
        let others = Wait::ALL.into_iter().filter_map(|wait| Some((limit(wait)?, share(wait))));
        let (other, other_share) = others.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        if network_share > other_share && self.path.restarting_share() > RESTARTING {
            return Some(outgoing(Limit::IdleRestart, self.path.restarting_share()));
        }
        if network_share >= BUSY || (network_share > other_share && other_share < MINOR) {
            if share(Wait::SendBuffer) > BUFFER * network_share {
                return Some(outgoing(Limit::SendBuffer, share(Wait::SendBuffer)));
            }
            return Some(outgoing(self.path.limit(&path, self.age_s), network_share));
        }
        // Nothing is sent while data of reads is waited for.
        let is_incoming = arrival_share > network_share;
        if other == Limit::Arrival {
            let incoming = self.limit_of_arrival(&path);
            let is_seen = matches!(incoming, Limit::Saturation | Limit::Losses);
            return (is_seen || path.rtt_min >= LOOKED_INTO).then(|| of(incoming, other_share, true));
        }
        if matches!(other, Limit::Depth | Limit::CommandWindow) && self.path.is_queued(is_incoming) {
            // More on its way would wait in the queue.
            return Some(of(Limit::Saturation, other_share, is_incoming));
        }
        Some(of(other, other_share, is_incoming))
    }

    /// What limits data that arrives most of the time. Reads that are answered at once want others beside them.
    fn limit_of_arrival(&self, path: &PathEvidence) -> Limit {
        let is_prompt = self.prompt_s > PROMPT * self.waits_s.of(Wait::Arrival);
        match self.path.limit_of_arrival(path) {
            Limit::Arrival if is_prompt && self.prompt_closed_s > self.prompt_s / 2.0 => Limit::CommandWindow,
            Limit::Arrival if is_prompt => Limit::Depth,
            limit => limit,
        }
    }

    /// What was sent, as a share of what the network carried when there was something to send; `None` if that is not known.
    /// What a window is filled with leaves at the path's rate, however rarely that is.
    fn sending_share(&self) -> Option<f64> {
        let delivery = self.delivery_bytes / self.delivery_s;
        let sent = self.path.fresh_bytes() / self.waits_s.sum();
        Some(sent / delivery).filter(|share| share.is_finite()).map(|share| share.min(1.0))
    }
}

/// What limits a session that mostly waits for this; `None` for the network, which has many reasons.
fn limit(wait: Wait) -> Option<Limit> {
    match wait {
        Wait::Caller => Some(Limit::Caller),
        Wait::Depth => Some(Limit::Depth),
        Wait::CommandWindow => Some(Limit::CommandWindow),
        Wait::ReadyToTransfer => Some(Limit::ReadyToTransfer),
        Wait::Target => Some(Limit::Target),
        Wait::Arrival => Some(Limit::Arrival),
        Wait::SendBuffer | Wait::Network => None,
    }
}
