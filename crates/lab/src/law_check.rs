//! Whether a congestion control of ours follows its law: a record of what it does in the kernel, compared with the model.

use crate::experiment::Quantity;
use crate::namespace::Namespace;
use congestion::{Control, GroupState, Record, Recorder, Recording};
use framing::Congestion;
use observe::statistics::Sample;
use policy::law::ensemble::{Aggregate, Member};
use policy::law::replay::{self, Comparison, Hook, Replay};
use policy::law::{Bic, Fast, Flow, GroupTerms, Hstcp, Htcp, Law, PARTS, Reno, Scalable, Westwood};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The differences that are allowed, in segments or as a part of the window if that is more: of half of all windows, and of
/// ninety-nine of a hundred.
const ALLOWED_MEDIAN: (f64, f64) = (1.0, 0.02);
const ALLOWED_P99: (f64, f64) = (2.0, 0.05);

/// A running record.
pub(crate) struct LawCheck {
    recorder: Recorder,
    control: Control,
    congestion: Congestion,
}

impl LawCheck {
    /// Begins to record the connections of the host that sends.
    ///
    /// # Errors
    /// If the congestion control is none of ours, or this user may not.
    pub fn begin(host: &Namespace, congestion: Congestion) -> Result<Self, String> {
        let control = Control::named(&congestion.name);
        let control = control.ok_or_else(|| format!("{} has no model here", congestion.name))?;
        let recorder = host.run(|| Recorder::start(None)).map_err(|error| error.to_string())?;
        Ok(Self { recorder: recorder.map_err(|error| error.to_string())?, control, congestion })
    }

    /// Ends the record, and compares it.
    ///
    /// # Errors
    /// If something of it is missing.
    pub fn end(self) -> Result<BTreeMap<Quantity, f64>, String> {
        let Recording { mut records, lost } = self.recorder.stop().map_err(|error| error.to_string())?;
        check_complete(&mut records, lost)?;
        Ok(quantities(&compare(self.control, &self.congestion, records)?))
    }
}

fn compare(control: Control, congestion: &Congestion, records: Vec<Record>) -> Result<Comparison, String> {
    Ok(match control {
        Control::Reno => of_each(&records, |_| Reno),
        Control::Scalable => of_each(&records, |_| Scalable),
        Control::Hstcp => of_each(&records, |_| Hstcp),
        Control::Bic => of_each(&records, |_| Bic::default()),
        Control::Htcp => of_each(&records, Htcp::new),
        Control::Westwood => of_each(&records, Westwood::new),
        Control::Fast => of_fast(records, congestion.terms.alpha.unwrap_or(Fast::ALPHA)),
        Control::Fair => of_groups(records, congestion.terms)?,
    })
}

/// Sorts by connection and number, none of which may be missing.
fn check_complete(records: &mut [Record], lost: u64) -> Result<(), String> {
    records.sort_by_key(|record| (record.ports, record.number));
    if lost > 0 {
        return Err(format!("{lost} records of the congestion control are missing"));
    }
    let is_gap =
        |first: &Record, second: &Record| first.ports == second.ports && second.number != first.number + 1;
    let gap = records.windows(2).find(|pair| is_gap(&pair[0], &pair[1]));
    gap.map_or(Ok(()), |pair| {
        Err(format!(
            "of the connection from port {}, record {} ({:?}) is followed by {} ({:?})",
            pair[0].ports.0, pair[0].number, pair[0].event.hook, pair[1].number, pair[1].event.hook
        ))
    })
}

fn of_each<L: Law>(records: &[Record], begin: impl Fn(&Flow) -> L) -> Comparison {
    let connections = records.chunk_by(|first, second| first.ports == second.ports);
    let compared = connections.map(|records| {
        let mut replay = Replay::of(begin(&records[0].event.flow));
        records.iter().for_each(|record| replay.follow(&record.event));
        replay.end()
    });
    compared.fold(Comparison::default(), Comparison::and)
}

/// The changes of a group follow one another as the lock let them.
fn order(record: &Record) -> Option<(u32, u64)> {
    record.group.map(|group| (group.place, group.change))
}

/// Connections of a group tell each other the shortest round trip.
fn of_fast(mut records: Vec<Record>, alpha: u32) -> Comparison {
    records.sort_by_key(order);
    let mut connections = BTreeMap::new();
    let mut shortest = BTreeMap::new();
    for record in &records {
        let replay = connections.entry(record.ports).or_insert_with(|| Replay::of(Fast::new(alpha)));
        if let (Some(group), Hook::PktsAcked(Some(rtt))) = (record.group, record.event.hook) {
            let shortest = shortest.entry(group.place).or_insert(rtt);
            *shortest = rtt.min(*shortest);
            replay.law().share_rtt(*shortest);
        }
        replay.follow(&record.event);
    }
    connections.into_values().map(Replay::end).fold(Comparison::default(), Comparison::and)
}

fn of_groups(mut records: Vec<Record>, terms: GroupTerms) -> Result<Comparison, String> {
    check_members(&records)?;
    check_changes(&records)?;
    records.sort_by_key(order);
    let mut groups: BTreeMap<u32, Rc<RefCell<Aggregate>>> = BTreeMap::new();
    let mut connections: BTreeMap<(u16, u16), Replay<Member>> = BTreeMap::new();
    let mut comparison = Comparison::default();
    let mut held = BTreeMap::new();
    for record in &records {
        let Some(group) = record.group else { continue };
        let flow = record.event.flow;
        let aggregate = groups.entry(group.place).or_insert_with(|| Aggregate::new(terms, flow.now));
        let replay = connections.entry(record.ports);
        let replay = replay.or_insert_with(|| Replay::of(Member::join(aggregate, &flow)));
        replay.follow(&record.event);
        held.insert((group.place, record.ports), group.own_frozen_parts);
        check_held(&group, &held)?;
        if matches!(record.event.hook, Hook::CongAvoid(_)) && flow.is_window_used {
            let window = parts(group.window_parts);
            let difference = (window - aggregate.borrow().window()).abs();
            comparison.aggregates.push(replay::Error { window, difference });
        }
    }
    Ok(connections.into_values().map(Replay::end).fold(comparison, Comparison::and))
}

/// All connections have the same path, so that none leaves its group while it lives.
fn check_members(records: &[Record]) -> Result<(), String> {
    // The kernel tells of the handshake before it begins with the control.
    let connections = records.chunk_by(|first, second| first.ports == second.ports);
    let mut living =
        connections.flat_map(|records| records.iter().skip_while(|record| record.event.hook != Hook::Init));
    match living.find(|record| record.group.is_none()) {
        Some(stray) => {
            Err(format!("the connection from port {} has no group at {:?}", stray.ports.0, stray.event.hook))
        }
        None => Ok(()),
    }
}

/// Changes that may be missing at the end: calls that had not ended when the record did.
const CHANGES_OPEN_MAX: u64 = 16;

/// Each change of a group was made by a call that is recorded.
fn check_changes(records: &[Record]) -> Result<(), String> {
    let mut changes = BTreeMap::<u32, BTreeSet<u64>>::new();
    for group in records.iter().filter_map(|record| record.group) {
        changes.entry(group.place).or_default().insert(group.change);
    }
    for changes in changes.values() {
        let last = changes.last().copied().unwrap_or_default();
        let missing = (1..last.saturating_sub(CHANGES_OPEN_MAX)).find(|change| !changes.contains(change));
        if let Some(missing) = missing {
            return Err(format!("change {missing} of a group is not recorded"));
        }
    }
    Ok(())
}

/// What a group holds for repairs is the sum of what its members hold, after each change.
fn check_held(group: &GroupState, held: &BTreeMap<(u32, (u16, u16)), u64>) -> Result<(), String> {
    let of_group = held.range((group.place, (0, 0))..=(group.place, (u16::MAX, u16::MAX)));
    let sum: u64 = of_group.map(|(_, parts)| parts).sum();
    match sum == group.frozen_parts {
        true => Ok(()),
        false => Err(format!(
            "after change {} a group holds {} parts of segments for repairs, and its members {sum}",
            group.change, group.frozen_parts
        )),
    }
}

fn parts(parts: u64) -> f64 {
    parts as f64 / f64::from(PARTS)
}

fn quantities(comparison: &Comparison) -> BTreeMap<Quantity, f64> {
    let Comparison { windows, reductions, aggregates, resynchronisations } = comparison;
    let errors = [
        (Quantity::LawError, median(windows)),
        (Quantity::LawErrorP99, p99(windows)),
        (Quantity::LawReductionError, median(reductions)),
        (Quantity::LawReductionErrorP99, p99(reductions)),
        (Quantity::LawGroupError, median(aggregates)),
        (Quantity::LawGroupErrorP99, p99(aggregates)),
    ];
    let errors = errors.into_iter().filter_map(|(quantity, error)| Some((quantity, error?)));
    let counts = [
        (Quantity::Acknowledgements, windows.len() as f64),
        (Quantity::Resynchronisations, f64::from(*resynchronisations)),
    ];
    errors.chain(counts).collect()
}

/// As a part of what is allowed; `None` of none.
fn median(errors: &[replay::Error]) -> Option<f64> {
    percentile(errors, ALLOWED_MEDIAN, 50.0)
}

fn p99(errors: &[replay::Error]) -> Option<f64> {
    percentile(errors, ALLOWED_P99, 99.0)
}

fn percentile(errors: &[replay::Error], (segments, part): (f64, f64), percent: f64) -> Option<f64> {
    Some(Sample::of(errors.iter().map(|error| error.of(segments, part)))?.percentile(percent))
}
