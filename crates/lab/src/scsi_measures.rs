//! The measurements of a SCSI workload.

use crate::experiment::{Quantity, Setup};
use crate::scsi_run::ScsiReport;
use crate::session_monitor::{AtTarget, CommandSample, SessionSamples};
use crate::session_record::SessionRecord;
use crate::workload::{Direction, RequestSample};
use observe::statistics::{Sample, Statistic, jain_index};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The requests and commands after the warm-up.
struct Counted<'a> {
    requests: Vec<&'a RequestSample>,
    /// READs and WRITEs; logins send other commands.
    commands: Vec<&'a CommandSample>,
    /// Whether each request was one command.
    is_whole: bool,
}

impl<'a> Counted<'a> {
    fn new(report: &'a ScsiReport, setup: &Setup) -> Self {
        let from_ns = *counted_ns(report, setup).start();
        let commands = || report.session.commands.iter().filter(|command| command.lba.is_some());
        Self {
            requests: report.requests.iter().filter(|request| request.begun_ns >= from_ns).collect(),
            commands: commands().filter(|command| command.pulled_ns >= from_ns).collect(),
            is_whole: commands().count() == report.requests.len(),
        }
    }

    fn request_times_ns(&self) -> impl Iterator<Item = u64> {
        self.requests.iter().map(|request| request.ended_ns.saturating_sub(request.begun_ns))
    }

    fn at_target(&self, direction: Option<Direction>) -> impl Iterator<Item = &AtTarget> {
        let wanted = move |command: &&&CommandSample| direction.is_none() || command.direction == direction;
        self.commands.iter().filter(wanted).filter_map(|command| command.target.as_ref())
    }

    /// The mean time from one moment of a command to another.
    fn mean_s(&self, moments_ns: impl Fn(&CommandSample, &AtTarget) -> (u64, u64)) -> Option<f64> {
        let times_s = self.commands.iter().filter_map(|command| {
            let (from_ns, to_ns) = moments_ns(command, command.target.as_ref()?);
            Some(seconds(from_ns, to_ns))
        });
        Sample::of(times_s).map(|times| times.mean())
    }

    /// The evenness of the data over this many connections; `None` for one alone.
    fn fairness(&self, connections: u16) -> Option<f64> {
        let mut bytes = BTreeMap::<(u16, u16), f64>::new();
        for command in &self.commands {
            *bytes.entry((command.session, command.connection)).or_default() += f64::from(command.bytes);
        }
        let mut bytes: Vec<f64> = bytes.into_values().collect();
        // An unused connection counts too.
        bytes.resize(bytes.len().max(connections.into()), 0.0);
        jain_index(&bytes).filter(|_| connections > 1)
    }
}

/// The time after the warm-up.
pub(crate) fn counted_ns(report: &ScsiReport, setup: &Setup) -> RangeInclusive<u64> {
    let warm_up_ns = pdu::nanoseconds(setup.warm_up.0);
    report.begun_ns.saturating_add(warm_up_ns)..=report.ended_ns
}

/// The measurements of the requests after the warm-up. Omits quantities without a value.
pub(crate) fn quantities(report: &ScsiReport, setup: &Setup) -> BTreeMap<Quantity, f64> {
    let counted = Counted::new(report, setup);
    let requests = &counted.requests;
    let transfers = Sample::of(counted.commands.iter().filter_map(|command| transfer_s(command)));
    let times = Sample::of(counted.request_times_ns().map(|time_ns| time_ns as f64 / 1e9));
    // A request of several commands has no single transfer.
    let transfer = transfers.filter(|_| counted.is_whole).map(|transfers| transfers.mean());
    let order_waits = Sample::of(counted.at_target(None).map(|command| command.order_wait_ns as f64 / 1e9));
    let quantities = [
        (Quantity::Throughput, bits_per_second(report, *counted_ns(report, setup).start())),
        (Quantity::Fairness, counted.fairness(report.run.session.connections)),
        (Quantity::RequestTime, times.as_ref().map(Sample::mean)),
        (Quantity::RequestTimeP99, times.as_ref().map(|times| times.percentile(99.0))),
        (Quantity::RequestTimeDeviation, times.as_ref().and_then(Sample::standard_deviation)),
        (Quantity::TransferTime, transfer),
        (Quantity::HostTime, host_time_s(report, setup, requests, transfer)),
        (Quantity::CommandDelay, counted.mean_s(|command, target| (command.pulled_ns, target.arrived_ns))),
        (Quantity::StatusDelay, counted.mean_s(|command, target| (target.carried_out_ns, command.ended_ns))),
        (Quantity::OrderWaitP99, order_waits.as_ref().map(|waits| waits.percentile(99.0))),
        (Quantity::OrderWaitMax, order_waits.as_ref().map(Sample::max)),
    ];
    quantities.into_iter().filter_map(|(quantity, value)| Some((quantity, value?))).collect()
}

/// The part of its sessions that is kept. Takes them out of the report.
pub(crate) fn session_record(report: &mut ScsiReport, setup: &Setup) -> SessionRecord {
    let counted = Counted::new(report, setup);
    let medium =
        |direction| Statistic::of(counted.at_target(Some(direction)).filter_map(AtTarget::medium_ns));
    let record = SessionRecord {
        elapsed_ns: report.ended_ns.saturating_sub(report.begun_ns),
        verified: Some(report.verified),
        requests: Statistic::of(counted.request_times_ns()),
        medium_of_writes: medium(Direction::Write),
        medium_of_reads: medium(Direction::Read),
        order_wait: Statistic::of(counted.at_target(None).map(|command| command.order_wait_ns)),
        diagnosis: report.diagnosis.clone(),
        decisions: report.decisions.clone(),
        slices: Vec::new(),
        sessions: SessionSamples::default(),
    };
    let slices = std::mem::take(&mut report.slices);
    SessionRecord { sessions: std::mem::take(&mut report.session), slices, ..record }
}

/// From the start of the first to the end of the last.
fn elapsed_s(requests: &[&RequestSample]) -> Option<f64> {
    let begun_ns = requests.iter().map(|request| request.begun_ns).min()?;
    let ended_ns = requests.iter().map(|request| request.ended_ns).max()?;
    Some(seconds(begun_ns, ended_ns)).filter(|elapsed| *elapsed > 0.0)
}

/// Until the end of the last request that was kept.
fn bits_per_second(report: &ScsiReport, from_ns: u64) -> Option<f64> {
    let to_ns = report.requests.last()?.ended_ns;
    let elapsed_s = seconds(from_ns, to_ns);
    (elapsed_s > 0.0).then(|| ended_bytes(report, &(from_ns..=to_ns)) * 8.0 / elapsed_s)
}

/// The bytes of requests that ended in these times.
pub(crate) fn ended_bytes(report: &ScsiReport, times_ns: &RangeInclusive<u64>) -> f64 {
    let ended = report.requests.iter().filter(|request| times_ns.contains(&request.ended_ns));
    ended.map(|request| f64::from(request.bytes)).sum()
}

/// Ta: of a write at the target, of a read at the initiator, where the data arrives.
fn transfer_s(command: &CommandSample) -> Option<f64> {
    match command.direction? {
        Direction::Write => {
            let target = command.target?;
            Some(seconds(target.arrived_ns, target.started_ns?))
        }
        Direction::Read => Some(seconds(command.first_data_ns?, command.data_received_ns?)),
    }
}

/// Tb + Tc, at depth 1.
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
