//! The record of a run's sessions besides its samples.

use crate::decision_record::DecisionRecord;
use crate::diagnosis_record::DiagnosisRecord;
use crate::sample::{HeldKind, HeldSample, Sample};
use crate::scsi_run::{SliceSample, Verified};
use crate::session_monitor::{Intervals, SessionSamples};
use observe::statistics::Statistic;
use serde::{Deserialize, Serialize};

/// The results of a session monitor, without the commands and single intervals, which are samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// From the start of the first request to the end of the last, in nanoseconds: the whole of all shares.
    pub elapsed_ns: u64,
    /// The compared data; none for a third-party program, which is checked otherwise.
    #[serde(default)]
    pub verified: Option<Verified>,
    /// The times of requests from submission to end, after the warm-up, as in all fields below.
    #[serde(default)]
    pub requests: Option<Statistic>,
    /// The time of WRITEs at the target's medium.
    #[serde(default)]
    pub medium_of_writes: Option<Statistic>,
    /// The time of READs there. A long one includes waits for the network.
    #[serde(default)]
    pub medium_of_reads: Option<Statistic>,
    /// The waits of READs and WRITEs at the target for earlier commands.
    #[serde(default)]
    pub order_wait: Option<Statistic>,
    /// What kept the sessions from moving more, from their beginning on.
    #[serde(default)]
    pub diagnosis: Option<DiagnosisRecord>,
    /// What the tuner decided; nothing without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionRecord>,
    /// What it was shown; kept among the samples.
    #[serde(skip)]
    pub slices: Vec<SliceSample>,
    /// The sessions over the whole time.
    #[serde(flatten)]
    pub sessions: SessionSamples,
}

impl SessionRecord {
    /// Takes the samples out of the record.
    pub(crate) fn take_samples(&mut self) -> Vec<Sample> {
        let SessionSamples { commands, connections, window_closed, cmd_sn_holes, .. } = &mut self.sessions;
        let commands = std::mem::take(commands).into_iter();
        let slices = std::mem::take(&mut self.slices).into_iter();
        let mut samples: Vec<Sample> = commands.map(|command| Sample::Command(Box::new(command))).collect();
        samples.extend(slices.map(|slice| Sample::Slice(Box::new(slice))));
        for (kind, all) in [
            (HeldKind::WindowClosed, window_closed.iter_mut().collect::<Vec<_>>()),
            (HeldKind::CmdSnHole, cmd_sn_holes.iter_mut().collect()),
            (HeldKind::Blocked, connections.iter_mut().map(|connection| &mut connection.blocked).collect()),
        ] {
            for (index, intervals) in all.into_iter().enumerate() {
                let kept = std::mem::take(&mut intervals.kept).into_iter();
                samples.extend(kept.map(|interval| Sample::Held(HeldSample { what: kind, index, interval })));
            }
        }
        samples
    }

    /// The share of the time in these intervals, from 0 to 1, averaged over several. `None` without any.
    pub(crate) fn share<'a>(&self, intervals: impl Iterator<Item = &'a Intervals>) -> Option<f64> {
        let shares = intervals.map(|intervals| {
            // Logins and logouts lie outside, and may include waits too.
            (intervals.total_ns as f64 / self.elapsed_ns.max(1) as f64).min(1.0)
        });
        Some(observe::statistics::Sample::of(shares)?.mean())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_monitor::Interval;

    fn held(moments: &[(u64, u64)]) -> Intervals {
        let mut intervals = Intervals::default();
        for (from_ns, to_ns) in moments {
            intervals.note(*from_ns, true);
            intervals.note(*to_ns, false);
        }
        intervals
    }

    #[test]
    fn single_intervals_become_samples_and_their_sums_stay() {
        let sessions = SessionSamples {
            window_closed: vec![held(&[]), held(&[(10, 30), (50, 55)])],
            cmd_sn_holes: vec![held(&[(7, 8)])],
            ..SessionSamples::default()
        };
        let mut record = SessionRecord { sessions, ..SessionRecord::default() };
        let samples = record.take_samples();
        let interval = Interval { begun_ns: 50, duration_ns: 5 };
        assert_eq!(samples.len(), 3);
        assert_eq!(samples[1], Sample::Held(HeldSample { what: HeldKind::WindowClosed, index: 1, interval }));
        let closed = &record.sessions.window_closed[1];
        assert_eq!((closed.count, closed.total_ns, closed.kept.len()), (2, 25, 0));
    }

    #[test]
    fn a_share_of_time_is_the_mean_over_all_that_share_it() {
        let record = SessionRecord { elapsed_ns: 100, ..SessionRecord::default() };
        assert_eq!(record.share([held(&[(0, 40)]), held(&[])].iter()), Some(0.2));
        assert_eq!(record.share([held(&[(0, 400)])].iter()), Some(1.0));
        assert_eq!(record.share([].iter()), None);
    }

    #[test]
    fn what_is_kept_reads_back() {
        let sessions = SessionSamples { cmd_sn_holes: vec![held(&[(7, 8)])], ..SessionSamples::default() };
        let mut record = SessionRecord { elapsed_ns: 9, sessions, ..SessionRecord::default() };
        record.take_samples();
        let text = serde_json::to_string(&record).expect("keys are texts");
        assert!(!text.contains("kept") && !text.contains("commands\""), "{text}");
        let mut read: SessionRecord = serde_json::from_str(&text).expect("it was written");
        assert_eq!(read.take_samples(), []);
        assert_eq!(read.sessions.cmd_sn_holes[0].longest_ns, 1);
    }
}
