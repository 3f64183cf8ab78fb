//! An orderly stop: caches are flushed, initiators are asked to log out, writes come to rest, caches are flushed again.
//!
//! The first flush tells its failure to every initiator that is still there, by a deferred error. The last one covers the
//! writes that came after it; its failure is in the report only.

use crate::shard::Shard;
use device::SessionDriver;
use scsi::Outcome;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// The result of a stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Sessions that had not ended by the deadline and were cut off.
    pub sessions_cut: usize,
    /// LUNs, as `TARGET LUN n`, of which a flush during the stop failed: their unflushed writes may be lost.
    pub unflushed: Vec<String>,
}

impl ShutdownReport {
    pub(crate) fn merge(&mut self, other: Self) {
        self.sessions_cut += other.sessions_cut;
        self.unflushed.extend(other.unflushed);
    }

    /// Waits for flushes, and adds the LUNs of those that fail.
    async fn add_failed(&mut self, flushes: &mut Flushes) {
        while let Some(flush) = flushes.join_next().await {
            if let Ok(Err(lun)) = flush
                && !self.unflushed.contains(&lun)
            {
                self.unflushed.push(lun);
            }
        }
    }
}

/// The longest time for the writes of cut-off sessions to come to rest.
const REST_TIME: Duration = Duration::from_secs(10);

/// Flushes under way, each of which names its LUN if it fails.
type Flushes = JoinSet<Result<(), String>>;

/// Ends every session of a shard, and flushes every unit.
pub(crate) async fn shut_down(shard: &Shard, deadline: Instant) -> ShutdownReport {
    let mut report = ShutdownReport::default();
    let mut flushes = start_to_flush(shard);
    // A slow or dead backend leaves initiators half of the time.
    let half = deadline.saturating_duration_since(Instant::now()) / 2;
    let _ = timeout_at(Instant::now() + half, report.add_failed(&mut flushes)).await;
    let seconds = seconds_to_log_out(deadline.saturating_duration_since(Instant::now()));
    sessions(shard).iter().for_each(|session| session.request_logout(seconds));
    if !all_ended(shard, deadline).await {
        let left = sessions(shard);
        report.sessions_cut = left.len();
        left.iter().for_each(SessionDriver::close);
        if !all_ended(shard, Instant::now() + REST_TIME).await {
            tracing::error!("a backend did not finish its operations: stopping without them");
        }
    }
    report.add_failed(&mut flushes).await;
    flushes = start_to_flush(shard);
    report.add_failed(&mut flushes).await;
    report
}

fn start_to_flush(shard: &Shard) -> Flushes {
    let mut flushes = Flushes::new();
    for node in shard.nodes() {
        for unit in node.units() {
            let (unit, lun) = (Rc::clone(unit), format!("{} LUN {}", node.name(), unit.number()));
            flushes.spawn_local(async move {
                if unit.flush().await == Outcome::good() { Ok(()) } else { Err(lun) }
            });
        }
    }
    flushes
}

/// The whole seconds that initiators are told. One second is left for the request's way there and the logout's way
/// back.
fn seconds_to_log_out(left: Duration) -> u16 {
    let seconds = (left + Duration::from_millis(500)).as_secs().saturating_sub(1);
    u16::try_from(seconds).unwrap_or(u16::MAX)
}

fn sessions(shard: &Shard) -> Vec<Rc<SessionDriver>> {
    shard.nodes().iter().flat_map(|node| node.sessions()).collect()
}

/// Waits until no session is left; `false` if some are left at the deadline.
async fn all_ended(shard: &Shard, deadline: Instant) -> bool {
    for node in shard.nodes() {
        loop {
            if node.sessions().is_empty() {
                break;
            }
            if timeout_at(deadline, node.session_end()).await.is_err() {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initiators_are_told_a_second_less_than_they_have() {
        let told = [0, 400, 1000, 4998, 5000, 100_000_000].map(Duration::from_millis).map(seconds_to_log_out);
        assert_eq!(told, [0, 0, 0, 4, 4, u16::MAX]);
    }
}
