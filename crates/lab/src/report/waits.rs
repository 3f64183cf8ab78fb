//! The waits of writers, from the kernel's events.

use super::run_over_time::{RunOverTime, RunsOverTime};
use super::tables::{add_row, labels, varied};
use crate::experiment::Plan;
use crate::kernel_trace::{KernelTrace, is_writer};
use crate::results::FolderError;
use observe::report::{Cell, Section, Table, Unit};
use observe::{OffCpuReport, OffCpuStack, TcpEvent, TcpTrace};
use std::collections::BTreeMap;

/// The smallest share of a writer's time that is shown.
const SHARE_MIN: f64 = 0.001;
/// The number of functions named, from the waiting one towards the system call.
const NAMED: usize = 3;

/// The section on every combination that was, or should have been, traced; `None` without any.
pub(super) fn section(plan: &Plan, runs: &mut RunsOverTime<'_>) -> Result<Option<Section>, FolderError> {
    let mut waits = Waits::new(plan);
    for cell in (0..plan.cells.len()).filter(|cell| plan.cells[*cell].setup.kernel_trace) {
        if let Some(run) = runs.of_cell(cell)? {
            waits.add(plan, cell, run);
        }
    }
    Ok(waits.section())
}

/// The tables of waits.
struct Waits {
    functions: Table,
    rooms: Table,
    remarks: Vec<String>,
}

impl Waits {
    fn new(plan: &Plan) -> Self {
        let table =
            |columns: &[(&'static str, Unit)]| Table::new(varied(plan).chain(columns.iter().cloned()));
        let functions = table(&[
            ("thread", Unit::None),
            ("waits in", Unit::None),
            ("share of its time", Unit::Share),
            ("times", Unit::None),
            ("each, on average", Unit::Seconds),
        ]);
        let segments = || Unit::named("segments");
        let rooms = table(&[
            ("connection", Unit::None),
            ("share of its time", Unit::Share),
            ("send queue then", Unit::Bytes),
            ("send buffer then", Unit::Bytes),
            ("in flight then", segments()),
            ("congestion window then", segments()),
        ]);
        Self {
            functions: Table {
                title: "In the kernel".to_owned(),
                note: format!(
                    "From a thread's first wait to the end of its last. What takes less than {} % of that is left out.",
                    SHARE_MIN * 100.0
                ),
                ..functions
            },
            rooms: Table {
                title: "For room in the send buffer".to_owned(),
                note: "While a writer waits for room, or has been told to come again when there is some; means over \
                       that time. A program that waits for several things at once, as our initiator does, is not \
                       seen to wait for this one in the kernel, but here."
                    .to_owned(),
                ..rooms
            },
            remarks: Vec::new(),
        }
    }

    /// Adds a run that was, or should have been, traced.
    fn add(&mut self, plan: &Plan, cell: usize, run: &RunOverTime<'_>) {
        match &run.record.kernel_trace {
            None => {}
            Some(KernelTrace::Missing(reason)) => self.remark(reason.clone()),
            Some(KernelTrace::Taken { connections: trace, waits }) => {
                let varied = labels(plan, cell);
                self.add_functions(&varied, run);
                self.add_rooms(&varied, run);
                self.remark_on_losses(plan, cell, trace, waits);
            }
        }
    }

    fn add_functions(&mut self, varied: &[Cell], run: &RunOverTime<'_>) {
        let stacks = run.waits().filter(|stack| is_writer(&stack.name));
        for function in functions(&stacks.collect::<Vec<_>>()) {
            let told = [
                Cell::Text(function.thread.to_owned()),
                Cell::Text(function.path()),
                Cell::Number(function.share),
                Cell::Number(function.waits as f64),
                Cell::Number(function.waited_ns as f64 / 1e9 / function.waits.max(1) as f64),
            ];
            add_row(&mut self.functions, varied, run.record, told);
        }
    }

    fn add_rooms(&mut self, varied: &[Cell], run: &RunOverTime<'_>) {
        for connection in 0..run.connections() {
            let Some(room) = Room::of(&run.tcp_events(connection)) else { continue };
            let told = [
                Cell::Text((connection + 1).to_string()),
                Cell::Number(room.share),
                room.send_queue_bytes.into(),
                room.send_buffer_bytes.into(),
                room.in_flight.into(),
                room.congestion_window.into(),
            ];
            add_row(&mut self.rooms, varied, run.record, told);
        }
    }

    fn remark_on_losses(&mut self, plan: &Plan, cell: usize, trace: &TcpTrace, waits: &OffCpuReport) {
        let lost = [(trace.events_lost, "events"), (waits.waits_lost, "waits")];
        for (count, what) in lost.into_iter().filter(|(count, _)| *count > 0) {
            let of = plan.describe(cell);
            self.remark(format!(
                "There was no room for {count} {what} ({of}): what is told of them is incomplete."
            ));
        }
    }

    fn remark(&mut self, text: String) {
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    /// The section, if it has contents.
    fn section(self) -> Option<Section> {
        let tables = [self.functions, self.rooms].into_iter().filter(|table| !table.rows.is_empty());
        let section = Section {
            heading: "Where the writer waits".to_owned(),
            paragraphs: self.remarks,
            tables: tables.collect(),
            ..Section::default()
        };
        (!section.tables.is_empty() || !section.paragraphs.is_empty()).then_some(section)
    }
}

/// A function in which threads of one name wait.
struct Function<'a> {
    thread: &'a str,
    /// The stack of the longest wait.
    waiting: &'a [String],
    /// The share of the time of all these threads.
    share: f64,
    waits: u64,
    waited_ns: u64,
}

impl Function<'_> {
    fn path(&self) -> String {
        let named = self.waiting.iter().take(NAMED);
        named.map(String::as_str).collect::<Vec<_>>().join(" ← ")
    }
}

/// The functions of these stacks, the longest wait first, without negligible ones.
fn functions<'a>(stacks: &[&'a OffCpuStack]) -> Vec<Function<'a>> {
    let mut functions: Vec<Function<'a>> = Vec::new();
    // They are in the order of their times.
    for stack in stacks {
        let waiting = stack.waiting();
        let same = |function: &&mut Function<'_>| {
            function.thread == stack.name && function.waiting.first() == waiting.first()
        };
        match functions.iter_mut().find(same) {
            Some(function) => {
                function.waits += stack.waits;
                function.waited_ns += stack.waited_ns;
            }
            None => functions.push(Function {
                thread: &stack.name,
                waiting,
                share: 0.0,
                waits: stack.waits,
                waited_ns: stack.waited_ns,
            }),
        }
    }
    for function in &mut functions {
        let of_name = stacks.iter().filter(|stack| stack.name == function.thread);
        function.share = function.waited_ns as f64 / lives_ns(of_name).max(1) as f64;
    }
    functions.retain(|function| function.share >= SHARE_MIN);
    functions.sort_by(|one, other| one.thread.cmp(other.thread).then(other.share.total_cmp(&one.share)));
    functions
}

/// The total life of the threads, each from its first wait to the end of its last.
fn lives_ns<'a>(stacks: impl Iterator<Item = &'a &'a OffCpuStack>) -> u64 {
    let mut lives = BTreeMap::<u32, (u64, u64)>::new();
    for stack in stacks {
        let (begun_ns, ended_ns) = lives.entry(stack.thread).or_insert((u64::MAX, 0));
        *begun_ns = stack.begun_ns.min(*begun_ns);
        *ended_ns = stack.ended_ns.max(*ended_ns);
    }
    lives.values().map(|(begun_ns, ended_ns)| ended_ns.saturating_sub(*begun_ns)).sum()
}

/// The state of a connection while its writer waits for room: means over that time.
#[derive(Debug, PartialEq)]
struct Room {
    share: f64,
    send_queue_bytes: Option<f64>,
    send_buffer_bytes: Option<f64>,
    in_flight: Option<f64>,
    congestion_window: Option<f64>,
}

impl Room {
    /// Computes the means. Each event describes the time since the previous one, less the part that was as the previous
    /// one said. `None` for fewer than two.
    fn of(events: &[&TcpEvent]) -> Option<Self> {
        let stretches = || {
            let pairs = events.iter().zip(events.iter().skip(1));
            pairs.flat_map(|(before, event)| {
                let unchanged_until_ns =
                    event.unchanged_until_ns.map_or(before.at_ns, |at| at.max(before.at_ns));
                let time_ns = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) as f64;
                [
                    (time_ns(before.at_ns, unchanged_until_ns), *before),
                    (time_ns(unchanged_until_ns, event.at_ns), *event),
                ]
            })
        };
        let all_ns: f64 = stretches().map(|(time_ns, _)| time_ns).sum();
        let waiting = || stretches().filter(|(_, event)| event.writer_waits);
        let waiting_ns: f64 = waiting().map(|(time_ns, _)| time_ns).sum();
        let mean = |value: fn(&TcpEvent) -> u32| {
            let sum: f64 = waiting().map(|(time_ns, event)| time_ns * f64::from(value(event))).sum();
            (waiting_ns > 0.0).then(|| sum / waiting_ns)
        };
        (all_ns > 0.0).then(|| Self {
            share: waiting_ns / all_ns,
            send_queue_bytes: mean(|event| event.wmem_queued_bytes),
            send_buffer_bytes: mean(|event| event.sndbuf_bytes),
            in_flight: mean(|event| event.unacked),
            congestion_window: mean(|event| event.snd_cwnd),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::{CongestionState, TcpEventKind};

    fn stack(thread: u32, frames: &[&str], from_ns: u64, waited_ns: u64) -> OffCpuStack {
        OffCpuStack {
            thread,
            name: "sender".to_owned(),
            frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
            waits: 2,
            waited_ns,
            begun_ns: from_ns,
            ended_ns: from_ns + 1000,
        }
    }

    #[test]
    fn times_of_several_threads_and_ways_to_one_function_are_added_up() {
        let long = stack(1, &["schedule", "sk_stream_wait_memory", "tcp_sendmsg_locked"], 0, 600);
        let other = stack(2, &["schedule", "sk_stream_wait_memory", "tcp_sendmsg_locked"], 0, 300);
        let way = stack(1, &["sk_stream_wait_memory", "do_tcp_sendpages"], 0, 100);
        let hardly = stack(2, &["schedule", "futex_do_wait"], 0, 1);
        let functions = functions(&[&long, &other, &way, &hardly]);
        let told: Vec<_> = functions.iter().map(|one| (one.path(), one.share, one.waits)).collect();
        assert_eq!(told, [("sk_stream_wait_memory ← tcp_sendmsg_locked".to_owned(), 0.5, 6)]);
    }

    fn event(at_ns: u64, writer_waits: bool, unacked: u32) -> TcpEvent {
        TcpEvent {
            at_ns,
            unchanged_until_ns: None,
            writer_waits,
            unacked,
            wmem_queued_bytes: 1000,
            cookie: 1,
            local_port: 1,
            peer_port: 2,
            kind: TcpEventKind::Arrived,
            congestion_state: CongestionState::Open,
            snd_cwnd: 10,
            snd_ssthresh: None,
            rtt_us: 0,
            snd_wnd_bytes: 0,
            rcv_wnd_bytes: 0,
            notsent_bytes: 0,
            sndbuf_bytes: 0,
        }
    }

    #[test]
    fn an_event_speaks_for_the_time_since_the_one_before_it() {
        let events = [event(0, true, 9), event(30, true, 4), event(40, true, 8), event(100, false, 0)];
        let room = Room::of(&events.iter().collect::<Vec<_>>()).expect("there are several");
        assert_eq!((room.share, room.in_flight), (0.4, Some(5.0)));
        assert_eq!(room.send_queue_bytes, Some(1000.0));
        assert_eq!(Room::of(&[&events[0]]), None);
    }

    #[test]
    fn while_nothing_changes_the_event_before_speaks() {
        let last = TcpEvent { unchanged_until_ns: Some(60), ..event(100, false, 0) };
        let room = Room::of(&[&event(0, true, 9), &last]).expect("there are two");
        assert_eq!((room.share, room.in_flight), (0.6, Some(9.0)));
    }
}
