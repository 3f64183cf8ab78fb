//! Changes of a link at given times.

use crate::cross_traffic::CrossTraffic;
use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::model::InvalidModel;
use crate::time::{NEVER, nanoseconds};
use crate::units::{Rate, Span};
use serde::{Deserialize, Serialize};

/// A change at a given time. Properties that it does not name stay.
///
/// The packet being sent is completed at the old rate, and packets under way keep the old delay. With a
/// shorter one nothing overtakes it: the order is kept. A queue given as a multiple of the bandwidth-delay product keeps
/// the bytes that it has, as a router's memory does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    /// The time of the change, since the beginning.
    pub at: Span,
    /// The parallel path that changes, counted from 0; all of them if it is missing.
    pub path: Option<u16>,
    /// The new rate.
    pub rate: Option<Rate>,
    /// The new delay.
    pub delay: Option<Span>,
    /// The new jitter.
    pub jitter: Option<Jitter>,
    /// The new kind of loss.
    pub loss: Option<Loss>,
    /// The new cross traffic.
    pub cross_traffic: Option<CrossTraffic>,
    /// `false` makes the line a black hole: it loses everything sent on it until this is `true` again, without notice,
    /// and flows keep their paths.
    pub up: Option<bool>,
}

/// The changes that are still to come.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    changes: Vec<Change>,
    next: usize,
}

/// Refuses changes that are out of order, name a path that does not exist, or set an impossible value.
pub(crate) fn validate(changes: &[Change], paths: u16, segment_bytes_max: u64) -> Result<(), InvalidModel> {
    if let Some(pair) = changes.windows(2).find(|pair| pair[0].at > pair[1].at) {
        return Err(InvalidModel::new("schedule", pair[1].at, "changes in the order of their times"));
    }
    for change in changes {
        if let Some(path) = change.path.filter(|path| *path >= paths) {
            return Err(InvalidModel::new("path", path, "less than the number of parallel paths"));
        }
        change.jitter.map_or(Ok(()), |jitter| jitter.validate())?;
        change.loss.map_or(Ok(()), |loss| loss.validate())?;
        change.cross_traffic.map_or(Ok(()), |cross_traffic| cross_traffic.validate(segment_bytes_max))?;
    }
    Ok(())
}

impl Schedule {
    pub fn new(changes: Vec<Change>) -> Self {
        Self { changes, next: 0 }
    }

    /// When the next change comes; [`NEVER`] if there is none.
    pub fn next_ns(&self) -> u64 {
        self.changes.get(self.next).map_or(NEVER, |change| nanoseconds(change.at.0))
    }

    /// The next change.
    pub fn take(&mut self) -> Option<Change> {
        let change = self.changes.get(self.next).copied();
        self.next += 1;
        change
    }
}
