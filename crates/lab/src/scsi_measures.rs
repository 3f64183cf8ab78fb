//! What is measured of a SCSI workload.

use crate::experiment::{Quantity, Setup};
use crate::scsi_run::ScsiReport;
use crate::session_monitor::CommandSample;
use crate::workload::{Direction, RequestSample};
use observe::statistics::Sample;
use std::collections::BTreeMap;

/// What is measured of the requests that began after the warm-up. What has no value is left out.
pub(crate) fn quantities(report: &ScsiReport, setup: &Setup) -> BTreeMap<Quantity, f64> {
    let warm_up_ns = u64::try_from(setup.warm_up.0.as_nanos()).unwrap_or(u64::MAX);
    let from_ns = report.begun_ns.saturating_add(warm_up_ns);
    let requests: Vec<&RequestSample> =
        report.requests.iter().filter(|request| request.begun_ns >= from_ns).collect();
    // READs and WRITEs; logins ask other things.
    let commands = || report.session.commands.iter().filter(|command| command.lba.is_some());
    let counted = commands().filter(|command| command.pulled_ns >= from_ns);
    let transfers = Sample::of(counted.filter_map(transfer_s));
    let times = Sample::of(requests.iter().map(|request| seconds(request.begun_ns, request.ended_ns)));
    // A request that is more than one command has no single transfer.
    let is_whole = commands().count() == report.requests.len();
    let transfer = transfers.filter(|_| is_whole).map(|transfers| transfers.mean());
    let quantities = [
        (Quantity::Throughput, bits_per_second(&requests)),
        (Quantity::RequestTime, times.as_ref().map(Sample::mean)),
        (Quantity::RequestTimeP99, times.as_ref().map(|times| times.percentile(99.0))),
        (Quantity::TransferTime, transfer),
        (Quantity::HostTime, host_time_s(report, setup, &requests, transfer)),
    ];
    quantities.into_iter().filter_map(|(quantity, value)| Some((quantity, value?))).collect()
}

/// From the beginning of the first to the end of the last.
fn elapsed_s(requests: &[&RequestSample]) -> Option<f64> {
    let begun_ns = requests.iter().map(|request| request.begun_ns).min()?;
    let ended_ns = requests.iter().map(|request| request.ended_ns).max()?;
    Some(seconds(begun_ns, ended_ns)).filter(|elapsed| *elapsed > 0.0)
}

fn bits_per_second(requests: &[&RequestSample]) -> Option<f64> {
    let bytes: f64 = requests.iter().map(|request| f64::from(request.bytes)).sum();
    Some(bytes * 8.0 / elapsed_s(requests)?)
}

/// Ta: of a write at the target, of a read at the initiator, each where its data arrives.
fn transfer_s(command: &CommandSample) -> Option<f64> {
    match command.direction? {
        Direction::Write => {
            let target = command.target?;
            Some(seconds(target.arrived_ns, target.started_ns?))
        }
        Direction::Read => Some(seconds(command.first_data_ns?, command.data_received_ns?)),
    }
}

/// Tb + Tc, of one request at a time.
fn host_time_s(
    report: &ScsiReport,
    setup: &Setup,
    requests: &[&RequestSample],
    transfer_s: Option<f64>,
) -> Option<f64> {
    let period_s = elapsed_s(requests)? / requests.len() as f64;
    let is_single = report.run.workload.depth() == 1;
    is_single.then_some((period_s - transfer_s? - setup.rtt.0.as_secs_f64()).max(0.0))
}

fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}
