//! Prints an analysis for a person.

use crate::output::{self, outln};
use crate::sizes;
use observe::statistics::Statistic;
use observe::{Analysis, CommandReport, CommandSummary, ConnectionReport, DirectionReport, Kind};
use std::time::Duration;

pub(crate) fn print(report: &Analysis, every_command: bool) {
    let capture = &report.capture;
    let left_out = match capture.frames_left_out {
        0 => String::new(),
        frames => format!("{frames} of them left out, "),
    };
    outln!(
        "{} frames in {}, {left_out}{} of them TCP; {} of {} with iSCSI",
        capture.frames,
        time(capture.last_ns.saturating_sub(capture.first_ns)),
        capture.segments,
        report.connections.len(),
        sizes::count(usize::try_from(capture.connections).unwrap_or(usize::MAX), "connection"),
    );
    for connection in &report.connections {
        outln!();
        output::print(&output::pairs(facts(connection)));
        outln!();
        output::print(&directions(connection));
        if !connection.summaries.is_empty() {
            outln!();
            output::print(&summaries(&connection.summaries));
        }
        if every_command {
            outln!();
            output::print(&commands(connection, capture.first_ns));
        }
    }
}

fn facts(connection: &ConnectionReport) -> Vec<(&'static str, String)> {
    let end = |address: String, name: &Option<String>| match name {
        Some(name) => format!("{address} ({})", name.escape_debug()),
        None => address,
    };
    let mut rows = vec![
        ("Initiator", end(connection.initiator.to_string(), &connection.initiator_name)),
        ("Target", end(connection.target.to_string(), &connection.target_name)),
        ("RTT", connection.rtt_ns_min.map_or("not known".to_owned(), time)),
        ("Digests", digests(connection).to_owned()),
    ];
    if connection.commands_without_status > 0 {
        rows.push(("Without status", connection.commands_without_status.to_string()));
    }
    if connection.commands_not_kept > 0 {
        rows.push(("Not followed", connection.commands_not_kept.to_string()));
    }
    let partial = connection.commands.iter().filter(|command| !command.whole).count();
    if partial > 0 {
        rows.push(("Not captured whole", sizes::count(partial, "command")));
    }
    rows
}

fn digests(connection: &ConnectionReport) -> &'static str {
    match (connection.header_digest, connection.data_digest) {
        (Some(true), Some(true)) => "header+data",
        (Some(true), _) => "header",
        (_, Some(true)) => "data",
        (Some(false), Some(false)) => "none",
        _ => "none found",
    }
}

fn directions(connection: &ConnectionReport) -> comfy_table::Table {
    let columns = [
        "TO",
        "BYTES",
        "SEGMENTS",
        "SENT AGAIN",
        "EARLY",
        "MISSED",
        "CUT OFF",
        "PDUS",
        "UNKNOWN",
        "RTT",
        "IN FLIGHT",
        "WINDOW",
    ];
    let mut table = output::table(&columns);
    let mut row = |name: &str, direction: &DirectionReport| {
        let counters = &direction.counters;
        table.add_row([
            name.to_owned(),
            sizes::bytes(counters.bytes),
            counters.segments.to_string(),
            counters.retransmitted_segments.to_string(),
            counters.out_of_order_segments.to_string(),
            sizes::bytes(counters.missed_bytes),
            sizes::bytes(counters.cut_bytes),
            direction.pdus.to_string(),
            sizes::bytes(direction.unknown_bytes),
            direction.rtt.map_or(String::new(), |rtt| time(rtt.min_ns)),
            sizes::bytes(direction.in_flight_bytes_max),
            direction.window_bytes_max.map_or(String::new(), sizes::bytes),
        ]);
    };
    row("target", &connection.to_target);
    row("initiator", &connection.to_initiator);
    output::align_right(&mut table, 1..columns.len());
    table
}

/// The mean times, and the 99th percentile of the whole.
fn summaries(summaries: &[CommandSummary]) -> comfy_table::Table {
    let columns = [
        "COMMANDS",
        "NUMBER",
        "DATA",
        "TA",
        "TB",
        "TC",
        "TURNAROUND",
        "P99",
        "R2T WAIT",
        "WITH GAPS",
        "GAPS",
    ];
    let mut table = output::table(&columns);
    for summary in summaries {
        let mean =
            |statistic: Option<Statistic>| statistic.map_or(String::new(), |known| time(known.mean_ns));
        table.add_row([
            kind(summary.kind).to_owned(),
            summary.commands.to_string(),
            sizes::bytes(summary.data_bytes),
            mean(summary.ta),
            mean(summary.tb),
            mean(summary.tc),
            mean(summary.turnaround),
            summary.turnaround.map_or(String::new(), |known| time(known.p99_ns)),
            mean(summary.r2t_wait),
            summary.gaps.map_or(0, |known| known.samples).to_string(),
            mean(summary.gaps),
        ]);
    }
    output::align_right(&mut table, 1..columns.len());
    table
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Write => "writes",
        Kind::Read => "reads",
        Kind::NoData => "others",
    }
}

/// The start of each, counted from the first frame.
fn commands(connection: &ConnectionReport, zero_ns: u64) -> comfy_table::Table {
    let columns = [
        "AT",
        "TAG",
        "CDB",
        "DATA",
        "STATUS",
        "DEPTH",
        "TA",
        "TB",
        "TC",
        "TURNAROUND",
        "R2TS",
        "R2T WAIT",
        "GAPS",
        "WHOLE",
    ];
    let mut table = output::table(&columns);
    for command in &connection.commands {
        table.add_row(row(command, zero_ns));
    }
    output::align_right(&mut table, 0..columns.len());
    table
}

fn row(command: &CommandReport, zero_ns: u64) -> [String; 14] {
    [
        time(command.begun_ns.saturating_sub(zero_ns)),
        format!("{:#x}", command.task_tag),
        format!("{:#04x}", command.operation_code),
        sizes::bytes(command.data_bytes),
        format!("{:#04x}", command.status),
        command.depth.to_string(),
        time(command.ta_ns),
        time(command.tb_ns),
        command.tc_ns.map_or(String::new(), time),
        time(command.turnaround_ns),
        command.r2ts.to_string(),
        time(command.r2t_wait_ns),
        command.gap_count.to_string(),
        if command.whole { "yes" } else { "no" }.to_owned(),
    ]
}

fn time(nanoseconds: u64) -> String {
    format!("{:.1?}", Duration::from_nanos(nanoseconds))
}
