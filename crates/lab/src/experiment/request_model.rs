//! The time model of a run's SCSI workload.

use super::quantity::Quantity;
use super::setup::Setup;
use crate::scsi_run::ScsiRun;
use crate::workload::{Direction, End, Replay, Request, Workload};
use pdu::Duration as Nanoseconds;
use policy::time_model::TimeModel;
use std::time::Duration;
use transport::SocketBuffer;

/// The header of a PDU that carries data (RFC 7143 §11.2).
const HEADER_BYTES: f64 = 48.0;
/// The read percentage of a workload that only writes.
const WRITES: u8 = 0;
const READS: u8 = 100;

/// The bytes sent in each round trip: two thirds of the buffer, because the kernel wakes a writer that waits for room
/// when a third is free.
fn sent_at_once(asked_bytes: u64) -> u64 {
    SocketBuffer::taken(asked_bytes).saturating_mul(2).div_ceil(3)
}

/// The prediction for a workload with one length of requests, if `host_time_s` (Tb + Tc) is known; `None` for
/// quantities outside the model. `is_ideal` omits waits for R2Ts and for room in the send buffer.
pub(crate) fn predict(
    setup: &Setup,
    run: &ScsiRun,
    quantity: Quantity,
    host_time_s: f64,
    is_ideal: bool,
) -> Option<f64> {
    let Workload::Pattern(pattern) = &run.workload else { return None };
    let requests = RequestModel { setup, run, host_time_s, is_ideal };
    let (bytes, depth, connections) = (pattern.request_size.0, pattern.depth, run.session.connections);
    let time_s = requests.time_s(bytes, pattern.read_percent);
    let model = requests.time_model(bytes, pattern.read_percent);
    match quantity {
        Quantity::Throughput => {
            let time = nanoseconds(time_s);
            Some(model.bits_per_second(bytes, time, depth.into(), connections))
        }
        Quantity::RequestTime => {
            let time = model.request_time(bytes, nanoseconds(time_s), depth.into(), connections);
            Some(time.as_secs_f64())
        }
        Quantity::TransferTime if depth == 1 => Some(time_s - host_time_s - setup.rtt.0.as_secs_f64()),
        _ => None,
    }
}

/// The known properties of single requests.
struct RequestModel<'a> {
    setup: &'a Setup,
    run: &'a ScsiRun,
    host_time_s: f64,
    is_ideal: bool,
}

impl RequestModel<'_> {
    /// The mean T of requests of `bytes`, of which `read_percent` read.
    fn time_s(&self, bytes: u64, read_percent: u8) -> f64 {
        let writes = self.time_model(bytes, WRITES);
        let write = match self.is_ideal {
            true => writes.unsolicited_write_time(bytes),
            false => writes.write_time(bytes, &self.run.session.write_terms()),
        };
        let read = self.time_model(bytes, READS).read_time(bytes);
        write.as_secs_f64() * (1.0 - share(read_percent)) + read.as_secs_f64() * share(read_percent)
    }

    /// The time model of requests of `bytes`, of which `read_percent` read. Each direction of the path carries its
    /// share, and so do the send buffers at its beginning.
    fn time_model(&self, bytes: u64, read_percent: u8) -> TimeModel {
        let payload = self.setup.payload_bits_per_second(share(read_percent));
        let pdus = bytes.div_ceil(self.run.session.receive_segment.0.max(1)) as f64;
        let send_buffer = self.run.sockets.send_buffer.filter(|_| !self.is_ideal);
        TimeModel {
            payload_bits_per_second: payload * bytes as f64 / (bytes as f64 + pdus * HEADER_BYTES),
            round_trip: nanoseconds(self.setup.rtt.0.as_secs_f64()),
            target_time: nanoseconds(self.host_time_s),
            initiator_time: nanoseconds(0.0),
            r2t_time: nanoseconds(0.0),
            send_buffer_bytes: send_buffer.map(|bytes| {
                let fuller_percent = read_percent.max(100 - read_percent);
                sent_at_once(bytes.0).saturating_mul(100) / u64::from(fuller_percent)
            }),
        }
    }
}

fn share(percent: u8) -> f64 {
    f64::from(percent) / 100.0
}

/// The approximate time of a workload.
pub(super) fn load_time(setup: &Setup, run: &ScsiRun) -> Duration {
    match &run.workload {
        Workload::Pattern(pattern) => match pattern.end {
            End::Time(time) => time.0,
            End::Requests(requests) => {
                let throughput = predict(setup, run, Quantity::Throughput, 0.0, false).unwrap_or(0.0);
                let bits = requests as f64 * pattern.request_size.0 as f64 * 8.0;
                Duration::try_from_secs_f64(bits / throughput).unwrap_or(Duration::MAX)
            }
        },
        Workload::Replay(replay) => replay_time(setup, run, replay),
    }
}

/// The time of a list: that of its timestamps, unless the path or the depth is slower.
fn replay_time(setup: &Setup, run: &ScsiRun, replay: &Replay) -> Duration {
    let model = RequestModel { setup, run, host_time_s: 0.0, is_ideal: false };
    let time_s = |request: &Request| {
        let is_read = request.direction == Direction::Read;
        model.time_s(request.bytes.into(), if is_read { READS } else { WRITES })
    };
    let requests = replay.list();
    let as_listed_s = requests.last().map_or(0.0, |last| last.not_before.as_secs_f64() + time_s(last));
    let by_depth_s = requests.iter().map(time_s).sum::<f64>() / f64::from(replay.depth.max(1));
    let bits = requests.iter().map(|request| f64::from(request.bytes) * 8.0).sum::<f64>();
    let by_path_s = bits / setup.payload_bits_per_second(replay.read_share());
    let time_s = as_listed_s.max(by_depth_s).max(by_path_s);
    Duration::try_from_secs_f64(time_s).unwrap_or(Duration::MAX)
}

fn nanoseconds(seconds: f64) -> Nanoseconds {
    Nanoseconds::try_from_secs_f64(seconds).unwrap_or(Nanoseconds::MAX)
}
