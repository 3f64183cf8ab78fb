//! Whether a congestion control of ours follows its law: a record of what it does in the kernel, compared with the model.

use crate::experiment::Quantity;
use crate::namespace::Namespace;
use congestion::{Control, GroupState, Hook, Record, Recorder, Recording};
use framing::Congestion;
use observe::statistics::jain_index;
use pdu::{Duration, Instant};
use policy::law::ensemble::{Aggregate, Member};
use policy::law::replay::{self, Comparison, Event, Replay};
use policy::law::{Bic, Fast, Flow, GroupTerms, Hstcp, Htcp, Law, PARTS, Reno, Scalable, State, Westwood};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The differences that are allowed, in segments or as a part of the window if that is more: of half of all windows, and of
/// ninety-nine of a hundred.
const ALLOWED_MEDIAN: (f64, f64) = (1.0, 0.02);
const ALLOWED_P99: (f64, f64) = (2.0, 0.05);

/// What FAST keeps in the queue unless it is told otherwise (`bpf/rw_fast.bpf.c`).
const ALPHA: u32 = 50;

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
        let fairness = window_fairness(&records);
        let mut quantities = quantities(&compare(self.control, &self.congestion, records)?);
        quantities.extend(fairness.map(|index| (Quantity::WindowFairness, index)));
        Ok(quantities)
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
        Control::Fast => of_fast(records, congestion.terms.alpha.unwrap_or(ALPHA)),
        Control::Fair => of_groups(records, congestion.terms)?,
    })
}

/// Sorts by connection and number, none of which may be missing.
fn check_complete(records: &mut [Record], lost: u64) -> Result<(), String> {
    records.sort_by_key(|record| (record.ports, record.number));
    let gaps = records.windows(2).filter(|pair| {
        let [first, second] = pair else { return false };
        first.ports == second.ports && second.number != first.number + 1
    });
    match (lost, gaps.count()) {
        (0, 0) => Ok(()),
        (lost, gaps) => {
            Err(format!("{lost} records of the congestion control are missing, and there are {gaps} gaps"))
        }
    }
}

fn of_each<L: Law>(records: &[Record], begin: impl Fn(&Flow) -> L) -> Comparison {
    let connections = records.chunk_by(|first, second| first.ports == second.ports);
    let compared = connections.map(|records| {
        let mut replay = Replay::of(begin(&flow(&records[0])));
        records.iter().for_each(|record| replay.follow(&event(record)));
        replay.end()
    });
    compared.fold(Comparison::default(), Comparison::and)
}

/// Jain's index of the congestion windows of all connections, the mean over the time in which all of them lived.
fn window_fairness(records: &[Record]) -> Option<f64> {
    let mut records: Vec<_> = records.iter().collect();
    records.sort_by_key(|record| record.at_ns);
    let connections: BTreeSet<_> = records.iter().map(|record| record.ports).collect();
    let mut windows = BTreeMap::new();
    let (mut sum, mut time_ns) = (0.0, 0.0);
    for (record, next) in records.iter().zip(records.iter().skip(1)) {
        if record.hook == Hook::Release {
            break;
        }
        windows.insert(record.ports, f64::from(record.window.1));
        if windows.len() == connections.len() {
            let lasts_ns = (next.at_ns - record.at_ns) as f64;
            let windows: Vec<_> = windows.values().copied().collect();
            sum += jain_index(&windows)? * lasts_ns;
            time_ns += lasts_ns;
        }
    }
    (time_ns > 0.0).then(|| sum / time_ns)
}

/// Connections of a group tell each other the shortest round trip.
fn of_fast(mut records: Vec<Record>, alpha: u32) -> Comparison {
    records.sort_by_key(|record| record.at_ns);
    let mut connections = BTreeMap::new();
    let mut shortest: BTreeMap<u32, u32> = BTreeMap::new();
    for record in &records {
        let replay = connections.entry(record.ports).or_insert_with(|| Replay::of(Fast::new(alpha)));
        if let (Some(group), Hook::PktsAcked(_, Some(rtt_us))) = (record.group, record.hook) {
            let shortest = shortest.entry(group.place).or_insert(rtt_us);
            *shortest = rtt_us.min(*shortest);
            replay.law().share_rtt(Duration::from_micros((*shortest).into()));
        }
        replay.follow(&event(record));
    }
    connections.into_values().map(Replay::end).fold(Comparison::default(), Comparison::and)
}

/// The changes of a group follow one another as the lock let them.
fn of_groups(mut records: Vec<Record>, terms: GroupTerms) -> Result<Comparison, String> {
    let order = |record: &Record| record.group.map(|group| (group.place, group.change));
    check_members(&records)?;
    records.sort_by_key(|record| (order(record), record.at_ns));
    let mut groups: BTreeMap<u32, Rc<RefCell<Aggregate>>> = BTreeMap::new();
    let mut connections: BTreeMap<(u16, u16), Replay<Member>> = BTreeMap::new();
    let mut comparison = Comparison::default();
    let mut held = BTreeMap::new();
    for record in &records {
        let Some(group) = record.group else { continue };
        let flow = flow(record);
        let aggregate = groups.entry(group.place).or_insert_with(|| Aggregate::new(terms, flow.now));
        let replay = connections.entry(record.ports);
        let replay = replay.or_insert_with(|| Replay::of(Member::join(aggregate, &flow)));
        replay.follow(&event(record));
        held.insert((group.place, record.ports), group.own_frozen_parts);
        check_held(&group, &held)?;
        if matches!(record.hook, Hook::CongAvoid(_)) && record.is_window_used {
            let window = parts(group.window_parts);
            let difference = (window - aggregate.borrow().window()).abs();
            comparison.windows.push(replay::Error { window, difference });
        }
    }
    Ok(connections.into_values().map(Replay::end).fold(comparison, Comparison::and))
}

/// All connections have the same path, so that none leaves its group while it lives.
fn check_members(records: &[Record]) -> Result<(), String> {
    // The kernel tells of the handshake's acknowledgement before it begins with the control.
    let mut living = records.iter().filter(|record| record.hook != Hook::Release && record.number > 0);
    match living.find(|record| record.group.is_none()) {
        Some(stray) => {
            Err(format!("the connection from port {} has no group at {:?}", stray.ports.0, stray.hook))
        }
        None => Ok(()),
    }
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

fn flow(record: &Record) -> Flow {
    Flow {
        now: Instant::ZERO + Duration::from_nanos(record.at_ns),
        window: record.window.0.into(),
        ssthresh: record.ssthresh.0.into(),
        prior_window: record.prior_window.into(),
        delivered: record.delivered,
        srtt: Duration::from_micros(record.srtt_us.into()),
        is_window_used: record.is_window_used,
        state: state(record.ca_state),
    }
}

fn state(ca_state: u8) -> State {
    match ca_state {
        0 => State::Open,
        1 => State::Disorder,
        2 => State::Cwr,
        3 => State::Recovery,
        _ => State::Loss,
    }
}

fn event(record: &Record) -> Event {
    let hook = match record.hook {
        Hook::Init => replay::Hook::Init,
        Hook::Release => replay::Hook::Release,
        Hook::Ssthresh(window) => replay::Hook::Ssthresh(window),
        Hook::CongAvoid(acked) => replay::Hook::CongAvoid(acked),
        Hook::PktsAcked(_, rtt_us) => {
            replay::Hook::PktsAcked(rtt_us.map(|us| Duration::from_micros(us.into())))
        }
        Hook::SetState(new) => replay::Hook::SetState(state(new)),
        // CA_EVENT_TX_START
        Hook::CwndEvent(0) => replay::Hook::TxStart,
        Hook::CwndEvent(_) => replay::Hook::Other,
        Hook::UndoCwnd(window) => replay::Hook::UndoCwnd(window),
    };
    Event { flow: flow(record), hook, window: record.window.1, ssthresh: record.ssthresh.1 }
}

fn quantities(comparison: &Comparison) -> BTreeMap<Quantity, f64> {
    let errors = || comparison.windows.iter().chain(&comparison.reductions);
    let of_allowed = |(segments, part): (f64, f64), share: f64| {
        let mut errors: Vec<_> = errors().map(|error| error.of(segments, part)).collect();
        errors.sort_by(f64::total_cmp);
        let last = errors.len().checked_sub(1)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let index = (last as f64 * share).round() as usize;
        Some(errors[index])
    };
    let mut quantities = BTreeMap::new();
    quantities.insert(Quantity::Acknowledgements, comparison.windows.len() as f64);
    quantities.extend(of_allowed(ALLOWED_MEDIAN, 0.5).map(|error| (Quantity::LawError, error)));
    quantities.extend(of_allowed(ALLOWED_P99, 0.99).map(|error| (Quantity::LawErrorP99, error)));
    quantities
}
