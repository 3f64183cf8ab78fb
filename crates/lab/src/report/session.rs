//! The sessions: their waits, the times of their commands, and their sockets.

use super::measured::run_to_tell;
use super::tables::{add_row, labels, sorted, varied};
use crate::experiment::{Plan, RunLoad, each_once};
use crate::results::{Folder, RunRecord};
use crate::scsi_run::{SessionTerms, Verified};
use crate::session_monitor::{ConnectionSample, End, Intervals};
use crate::session_record::SessionRecord;
use netem::Bytes;
use observe::report::{Cell, Section, Table, Unit};

/// One run of each combination; `None` without sessions.
pub(super) fn section(plan: &Plan, folder: &Folder) -> Option<Section> {
    let mut tables = [holdups(plan), times(plan), sockets(plan)];
    for cell in 0..plan.cells.len() {
        let Some(record) = run_to_tell(cell, plan, folder) else { continue };
        let Some(session) = &record.session else { continue };
        let told = Told { labels: labels(plan, cell), record, session };
        let [of_holdups, of_times, of_sockets] = &mut tables;
        told.add_holdups(of_holdups);
        told.add_times(of_times);
        told.add_sockets(of_sockets);
    }
    if tables[0].rows.is_empty() {
        return None;
    }
    let negotiated = Some(negotiated(plan)).filter(|table| !table.rows.is_empty());
    Some(Section {
        heading: "Sessions".to_owned(),
        paragraphs: vec![
            "Of one run for each combination. Shares are of all the time of the workload. The command window is closed \
             while MaxCmdSN has been reached, whether a command waits or not; a hole is there while commands have arrived \
             at the target that wait for one before them; a writer is blocked while it has more to send and its socket \
             takes nothing."
                .to_owned(),
        ],
        tables: tables.into_iter().filter(|table| !table.rows.is_empty()).chain(negotiated).collect(),
        ..Section::default()
    })
}

/// A run that stands for its combination of values.
struct Told<'a> {
    labels: Vec<Cell>,
    record: &'a RunRecord,
    session: &'a SessionRecord,
}

fn holdups(plan: &Plan) -> Table {
    let columns = [
        ("window closed", Unit::Share),
        ("its longest", Unit::Seconds),
        ("CmdSN holes", Unit::None),
        ("with a hole", Unit::Share),
        ("longest hole", Unit::Seconds),
        ("writers blocked at the initiator", Unit::Share),
        ("longest there", Unit::Seconds),
        ("at the target", Unit::Share),
        ("longest there", Unit::Seconds),
        ("commands without end", Unit::None),
        ("data compared", Unit::Bytes),
        ("limited by", Unit::None),
        ("for the time", Unit::Share),
    ];
    Table {
        title: "Causes of their waits".to_owned(),
        note: "Of several sessions or connections the mean share, and the longest of all.".to_owned(),
        ..Table::new(varied(plan).chain(columns))
    }
}

fn times(plan: &Plan) -> Table {
    let names = plan.variables.iter().map(String::as_str).chain(["time"]);
    Table {
        title: "Times of requests and commands".to_owned(),
        note: "Of what began after the warm-up. The block latency is the medium's time; a long read waits for the network \
               meanwhile. The wait for order is that at the target for commands with a smaller CmdSN."
            .to_owned(),
        ..Table::of_times(names)
    }
}

fn sockets(plan: &Plan) -> Table {
    let columns = [
        ("end", Unit::None),
        ("connections", Unit::None),
        ("congestion control", Unit::None),
        ("SO_SNDBUF", Unit::Bytes),
        ("SO_RCVBUF", Unit::Bytes),
        ("sent", Unit::Bytes),
        ("PDUs sent", Unit::None),
        ("PDUs received", Unit::None),
    ];
    Table {
        title: "Their sockets".to_owned(),
        note: "Options as read back after the login: twice what was asked for, or what the kernel's tuning had come to."
            .to_owned(),
        ..Table::new(varied(plan).chain(columns))
    }
}

impl Told<'_> {
    fn add_holdups(&self, table: &mut Table) {
        let sessions = &self.session.sessions;
        let share = |all: &[&Intervals]| Cell::from(self.session.share(all.iter().copied()));
        let longest = |all: &[&Intervals]| {
            let longest_ns = all.iter().map(|intervals| intervals.longest_ns).max();
            Cell::from(longest_ns.map(|longest_ns| longest_ns as f64 / 1e9))
        };
        let windows: Vec<_> = sessions.window_closed.iter().collect();
        let holes: Vec<_> = sessions.cmd_sn_holes.iter().collect();
        let blocked = |end| self.connections(end).map(|connection| &connection.blocked).collect::<Vec<_>>();
        let (here, there) = (blocked(End::Initiator), blocked(End::Target));
        let diagnosis = self.session.diagnosis.as_ref();
        let compared = self.session.verified.map(Verified::bytes);
        let cells = [
            share(&windows),
            longest(&windows),
            Cell::from(holes.iter().map(|holes| holes.count).sum::<u64>() as f64),
            share(&holes),
            longest(&holes),
            share(&here),
            longest(&here),
            share(&there),
            longest(&there),
            Cell::from((sessions.commands_open + sessions.commands_lost) as f64),
            Cell::from(compared.map(|bytes| bytes as f64)),
            Cell::from(diagnosis.map(|diagnosis| diagnosis.limit.replace('_', " ")).unwrap_or_default()),
            Cell::from(diagnosis.map(|diagnosis| diagnosis.share)),
        ];
        add_row(table, &self.labels, self.record, cells);
    }

    fn add_times(&self, table: &mut Table) {
        let SessionRecord { requests, medium_of_writes, medium_of_reads, order_wait, .. } = self.session;
        let times = [
            ("request", requests),
            ("block latency of writes", medium_of_writes),
            ("block latency of reads", medium_of_reads),
            ("wait for order", order_wait),
        ];
        for (name, statistic) in times {
            let Some(statistic) = statistic else { continue };
            let name = [Cell::from(name)];
            table.row(self.labels.iter().cloned().chain(name).chain(statistic.cells(self.record.valid)));
        }
    }

    fn add_sockets(&self, table: &mut Table) {
        for (end, name) in [(End::Initiator, "initiator"), (End::Target, "target")] {
            let connections: Vec<_> = self.connections(end).collect();
            if connections.is_empty() {
                continue;
            }
            let range = |bytes: fn(&ConnectionSample) -> Option<u64>| {
                let known = connections.iter().filter_map(|connection| bytes(connection));
                let (least, most) = (known.clone().min(), known.max());
                match least.zip(most) {
                    Some((least, most)) if least < most => Cell::Range([least as f64, most as f64]),
                    known => Cell::from(known.map(|(least, _)| least as f64)),
                }
            };
            let sum = |count: fn(&ConnectionSample) -> u64| {
                Cell::from(connections.iter().map(|connection| count(connection)).sum::<u64>() as f64)
            };
            let controls =
                connections.iter().filter_map(|connection| connection.congestion_control.as_deref());
            let cells = [
                Cell::from(name),
                Cell::from(connections.len() as f64),
                Cell::from(sorted(controls).join(", ")),
                range(|connection| connection.send_buffer_bytes),
                range(|connection| connection.receive_buffer_bytes),
                sum(|connection| connection.sent_bytes),
                sum(|connection| connection.sent_pdus),
                sum(|connection| connection.received_pdus),
            ];
            table.row(self.labels.iter().cloned().chain(cells));
        }
    }

    fn connections(&self, end: End) -> impl Iterator<Item = &ConnectionSample> {
        self.session.sessions.connections.iter().filter(move |connection| connection.end == end)
    }
}

/// A run with other terms fails, so these are the experiment's.
fn negotiated(plan: &Plan) -> Table {
    let terms = plan.cells.iter().filter_map(|cell| match cell.setup.load() {
        RunLoad::Scsi(run) => Some(pairs(&run.session)),
        _ => None,
    });
    let terms: Vec<_> = terms.collect();
    let mut table = Table::new([("key", Unit::None), ("value", Unit::None)]);
    table.title = "Negotiated terms".to_owned();
    for (index, (key, _)) in terms.iter().take(1).flatten().enumerate() {
        let values = each_once(terms.iter().map(|terms| terms[index].1.clone()));
        table.row([Cell::from(*key), Cell::from(values.join(" or "))]);
    }
    table
}

fn pairs(terms: &SessionTerms) -> [(&'static str, String); 13] {
    let yes = |holds: bool| if holds { "Yes" } else { "No" }.to_owned();
    let bytes = |bytes: Bytes| Unit::Bytes.format(bytes.0 as f64);
    let digest = |wanted: bool| if wanted { "CRC32C" } else { "None" }.to_owned();
    [
        ("sessions", terms.sessions().to_string()),
        (
            "connections",
            terms.tuner.map_or(terms.connections.to_string(), |tuner| format!("by the tuner {}", tuner.0)),
        ),
        ("SplitLanes", terms.lanes.0.to_string()),
        ("InitialR2T", yes(terms.initial_r2t)),
        ("ImmediateData", yes(terms.immediate_data)),
        ("FirstBurstLength", bytes(terms.first_burst)),
        ("MaxBurstLength", bytes(terms.max_burst)),
        ("MaxRecvDataSegmentLength", bytes(terms.receive_segment)),
        ("MaxOutstandingR2T", terms.max_outstanding_r2t.to_string()),
        ("ErrorRecoveryLevel", terms.error_recovery_level.to_string()),
        ("HeaderDigest", digest(terms.header_digest)),
        ("DataDigest", digest(terms.data_digest)),
        ("commands in the window", terms.window_commands.to_string()),
    ]
}
