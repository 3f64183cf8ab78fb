//! An analysis for people.

use super::{Analysis, CommandSummary, ConnectionReport, DirectionReport};
use super::{latency, over_time};
use crate::command::Kind;
use crate::report::{Cell, Fact, Report, Section, Standing, Table, Unit, Verdict, rfc3339};
use crate::statistics::{Statistic, shares};
use std::net::SocketAddr;
use std::time::Duration;

/// The most connections shown individually; a session rarely has more, and nobody reads a longer page.
const SHOWN_MAX: usize = 16;

impl Analysis {
    /// The analysis in figures and tables: bytes, flight and round trips over time, and the times of commands. `name`
    /// is that of the capture.
    #[must_use]
    pub fn report(&self, name: &str) -> Report {
        let mut sections = vec![self.overview()];
        sections
            .extend(self.connections.iter().take(SHOWN_MAX).map(|connection| self.connection(connection)));
        Report {
            title: format!("iSCSI in {name}"),
            verdicts: self.verdicts(),
            summary: self.summary(),
            sections,
            description: self.description(),
        }
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let bad = |is_so: bool, text: &str| {
            is_so.then(|| Verdict { standing: Standing::Bad, text: text.to_owned() })
        };
        let directions = || self.connections.iter().flat_map(ConnectionReport::directions);
        let verdicts = [
            bad(self.connections.is_empty(), "no iSCSI found"),
            bad(directions().any(|one| one.counters.missed_bytes > 0), "the capture missed segments"),
            bad(directions().any(|one| one.unknown_bytes > 0), "not all bytes could be followed"),
            bad(directions().any(|one| one.invalid_pdus > 0), "PDUs break the standard"),
        ];
        let verdicts: Vec<_> = verdicts.into_iter().flatten().collect();
        if verdicts.is_empty() {
            vec![Verdict { standing: Standing::Good, text: "captured whole".to_owned() }]
        } else {
            verdicts
        }
    }

    fn summary(&self) -> Vec<String> {
        let mut summary = vec![format!(
            "{} With one command at a time, a cycle is Ta + RTT + Tb + Tc.",
            CommandSummary::TIMES_EXPLAINED
        )];
        if self.connections.len() > SHOWN_MAX {
            let count = self.connections.len();
            summary.push(format!("The first {SHOWN_MAX} of {count} connections are shown one by one."));
        }
        summary
    }

    fn overview(&self) -> Section {
        let mut figures = Vec::new();
        if self.connections.len() > 1 {
            figures.push(over_time::all_connections(self));
        }
        Section {
            heading: "Connections".to_owned(),
            tables: vec![self.connections_table()],
            figures,
            ..Section::default()
        }
    }

    fn connections_table(&self) -> Table {
        let mut table = Table::new([
            ("connection", Unit::None),
            ("initiator", Unit::None),
            ("target", Unit::None),
            ("RTT", Unit::Seconds),
            ("to target", Unit::Bytes),
            ("to initiator", Unit::Bytes),
            ("sent again", Unit::Bytes),
            ("missed", Unit::Bytes),
            ("commands", Unit::None),
            ("without status", Unit::None),
        ]);
        for connection in &self.connections {
            let sum = |count: fn(&DirectionReport) -> u64| {
                connection.directions().iter().map(|one| count(one)).sum()
            };
            table.row([
                Cell::Text(connection.number.to_string()),
                Cell::Text(connection.initiator.to_string()),
                Cell::Text(connection.target.to_string()),
                connection.rtt_ns_min.map(seconds).into(),
                count(connection.to_target.counters.bytes),
                count(connection.to_initiator.counters.bytes),
                count(sum(|one| one.counters.retransmitted_bytes)),
                count(sum(|one| one.counters.missed_bytes)),
                count(connection.commands.len() as u64),
                count(connection.commands_without_status),
            ]);
        }
        table
    }

    fn connection(&self, connection: &ConnectionReport) -> Section {
        let zero_ns = self.capture.first_ns;
        let mut figures = over_time::figures(connection, zero_ns);
        figures.extend(latency::figures(connection, zero_ns));
        Section {
            heading: format!("Connection {}, from {}", connection.number, connection.initiator),
            paragraphs: vec![ends(connection)],
            tables: vec![times(connection), shares_of_cycle(connection)],
            figures,
        }
    }

    fn description(&self) -> Vec<Fact> {
        let capture = &self.capture;
        let length = seconds(capture.last_ns.saturating_sub(capture.first_ns));
        let point_ns = self.connections.iter().map(|one| one.timeline.width_ns).max().unwrap_or_default();
        vec![
            Fact::new("frames", capture.frames.to_string()),
            Fact::new("of these left out", capture.frames_left_out.to_string()),
            Fact::new("TCP segments", capture.segments.to_string()),
            Fact::new("length", Unit::Seconds.format(length)),
            Fact::new("first frame", rfc3339(Duration::from_nanos(capture.first_ns))),
            Fact::new("TCP connections", capture.connections.to_string()),
            Fact::new("of these not followed", capture.connections_ignored.to_string()),
            Fact::new("one point over time", Unit::Seconds.format(seconds(point_ns))),
            Fact::new("made with", concat!("ropewalk ", env!("CARGO_PKG_VERSION"))),
        ]
    }
}

/// Both ends of a connection.
fn ends(connection: &ConnectionReport) -> String {
    let end = |name: &Option<String>, address: SocketAddr| match name {
        Some(name) => format!("{name} ({address})"),
        None => address.to_string(),
    };
    let initiator = end(&connection.initiator_name, connection.initiator);
    let ends = format!("From {initiator} to {}.", end(&connection.target_name, connection.target));
    match (&connection.carries, connection.companion_of) {
        (Some(carries), Some(requests)) => {
            format!(
                "{ends} It carries the {carries} of the split session whose requests and commands connection {requests} has."
            )
        }
        _ => ends,
    }
}

fn mean(statistic: Option<Statistic>) -> Option<f64> {
    statistic.map(|known| seconds(known.mean_ns))
}

/// The distributions of the times of each kind of command.
fn times(connection: &ConnectionReport) -> Table {
    let mut table = Table::of_times(["commands", "time"]);
    table.title = "Where the time of commands went".to_owned();
    for summary in &connection.summaries {
        for (time, statistic) in summary.times() {
            table.row([kind(summary.kind).into(), time.into()].into_iter().chain(statistic.cells(true)));
        }
    }
    table
}

/// The shares of a command's cycle, as if there were one command at a time.
fn shares_of_cycle(connection: &ConnectionReport) -> Table {
    let columns = ["Ta", "RTT", "Tb", "Tc"].map(|part| (part, Unit::Share));
    let mut table = Table::new([("commands", Unit::None)].into_iter().chain(columns));
    table.title = "Shares of Ta + RTT + Tb + Tc".to_owned();
    for summary in &connection.summaries {
        let rtt = connection.rtt_ns_min.map(seconds);
        let parts =
            [mean(summary.ta), rtt, mean(summary.tb), mean(summary.tc)].map(Option::unwrap_or_default);
        let shares = shares(&parts).into_iter().map(Cell::from);
        table.row([Cell::from(kind(summary.kind))].into_iter().chain(shares));
    }
    table
}

impl ConnectionReport {
    fn directions(&self) -> [&DirectionReport; 2] {
        [&self.to_target, &self.to_initiator]
    }
}

pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Write => "writes",
        Kind::Read => "reads",
        Kind::NoData => "others",
    }
}

#[allow(clippy::cast_precision_loss, reason = "reports show four digits")]
fn count(count: u64) -> Cell {
    Cell::Number(count as f64)
}

/// Nanoseconds as seconds.
pub(super) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
