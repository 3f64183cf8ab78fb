//! The report of a series of copies.

use crate::summary::{Cell, Series, Summary};
use lab::Form;
use std::fmt::Write;

/// The numbers of plain streams that were measured, and their names.
const PLAIN: [(usize, &str); 3] = [(1, "1 plain stream"), (4, "4 plain streams"), (16, "16 plain streams")];

/// The whole report, in Markdown.
pub fn text(summary: &Summary) -> String {
    let mut text = format!("# Copies over long paths\n\n{}\n{}\n", head(&summary.series), ABOUT.trim());
    for path in summary.values(|cell| &cell.path) {
        text += "\n";
        text += &table(summary, path);
    }
    text += &missing(summary);
    text
}

fn head(series: &Series) -> String {
    let Series { form, ropewalk, revisions, machine, begun, runs, .. } = series;
    let flag = if *form == Form::Quick { " --quick" } else { "" };
    let day = begun.split('T').next().unwrap_or_default();
    let revisions = match revisions.as_slice() {
        [] => String::new(),
        some => format!(", commit {}", some.join(" and ")),
    };
    let mut head = format!(
        "Written by `benches/wan{flag}` on {day}: ropewalk {ropewalk}{revisions}; {}, {} cores, {}. {} of {} runs are \
         VALID, and {} attempts were INVALID. The medians and spreads are in [wan.json](wan.json), the \
         experiment in [copies.toml](../experiments/wan/copies.toml).\n",
        machine.processor,
        machine.processors,
        machine.kernel,
        runs.valid,
        runs.planned,
        runs.invalid_attempts,
    );
    if *form == Form::Quick {
        head += "\n**The quick form: one run of each combination.** Random losses make single runs differ by a half.\n";
    }
    head
}

const ABOUT: &str = "
![What programs reach with CUBIC when they copy to the server, as shares of the link's rate](wan.svg)

`make bench-wan` copies a disk image to a server and back over emulated paths, with the kernel's own TCP. Rates are Mbit/s
of the image's data, from a program's start to its end: the median of the valid runs, and in brackets the smallest and the
largest. The percentage is the share of as many plain TCP streams (1, 4 or 16, the next larger number), which draw the same
amount of data from one pool in pieces of 64 KiB. \"To\" copies to the server, \"from\" copies back. Every copy was
compared byte by byte after the clock had stopped.

* ropewalk and QEMU have their defaults; ropewalk also flushes and reads back a sample of what it wrote, which counts.
* Tuned: QEMU with 16 requests out of order (`-W -m 16`); tgt with MaxRecvDataSegmentLength 1 MiB, MaxBurstLength 4 MiB,
  FirstBurstLength 1 MiB, InitialR2T=No, MaxOutstandingR2T 8.
* nbdcopy gives its connections a disk in pieces of 128 MiB, and by default has no more threads than the machine has
  processors. Here it has a thread for each connection, and a disk with equal data in as many pieces, with holes between
  them, which it skips; on a smaller disk it would use fewer connections. It connects one after the other. With a fixed
  share for each connection, the slowest one decides; on a disk with many pieces for each, it decides less.
* rsync sends whole files to an rsync daemon (`--whole-file --inplace`), without compression or encryption.
* What is slower copies less data, so that each run takes 3 to 60 s; start-up counts.
";

/// The columns: congestion control, direction, and their heading.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("cubic", "to the server", "CUBIC, to"),
    ("cubic", "from the server", "CUBIC, from"),
    ("bbr", "to the server", "BBR, to"),
    ("bbr", "from the server", "BBR, from"),
];

fn table(summary: &Summary, path: &str) -> String {
    let cells: Vec<&Cell> = summary.cells.iter().filter(|cell| cell.path == path).collect();
    let is_measured = |(control, direction): (&str, &str)| {
        cells.iter().any(|cell| cell.congestion_control == control && cell.direction == direction)
    };
    let columns: Vec<_> =
        COLUMNS.iter().filter(|(control, direction, _)| is_measured((control, direction))).collect();
    let link = cells.first().map_or(0.0, |cell| cell.link);
    let mut table = format!("## {path}\n\nThe link carries {link} Mbit/s of payload.\n\n| | connections |");
    for (_, _, heading) in &columns {
        let _ = write!(table, " {heading} |");
    }
    table += &format!("\n|---|---:|{}\n", "---:|".repeat(columns.len()));
    for copy in summary.values(|cell| &cell.copy) {
        let of_copy: Vec<&&Cell> = cells.iter().filter(|cell| cell.copy == copy).collect();
        let connections = of_copy.iter().map(|cell| cell.connections).max().unwrap_or(0);
        let _ = write!(table, "| {copy} | {connections} |");
        for (control, direction, _) in &columns {
            let cell = of_copy
                .iter()
                .find(|cell| cell.congestion_control == *control && cell.direction == *direction);
            let _ = write!(table, " {} |", cell.map_or_else(|| "–".to_owned(), |cell| rate(cell, summary)));
        }
        table += "\n";
    }
    table
}

/// A rate with its spread and its share.
fn rate(cell: &Cell, summary: &Summary) -> String {
    let Some(rate) = &cell.rate else { return "INVALID".to_owned() };
    let mut text = format!("{}", rate.median);
    if cell.valid_runs > 1 {
        let _ = write!(text, " ({}–{})", rate.min, rate.max);
    }
    if let Some(share) = share(cell, summary) {
        let _ = write!(text, ", {:.0} %", share * 100.0);
    }
    text
}

/// The share of as many plain streams; none of the plain streams themselves.
fn share(cell: &Cell, summary: &Summary) -> Option<f64> {
    if PLAIN.iter().any(|(_, name)| cell.copy == *name) {
        return None;
    }
    let (_, plain) = PLAIN.iter().find(|(count, _)| *count >= cell.connections).or(PLAIN.last())?;
    let plain = summary.beside(cell, plain)?.rate?;
    Some(cell.rate?.median / plain.median)
}

/// The combinations without a VALID run, and the reasons.
fn missing(summary: &Summary) -> String {
    let mut text = String::new();
    for cell in summary.cells.iter().filter(|cell| cell.rate.is_none()) {
        if text.is_empty() {
            text += "\n## Without a valid run\n\n";
        }
        let Cell { path, congestion_control, direction, copy, .. } = cell;
        let reason = cell.reason.as_deref().unwrap_or("not run");
        let _ = writeln!(text, "* {copy}, {direction}, {path}, {congestion_control}: {reason}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Spread;

    fn cell(copy: &str, connections: usize, median: f64) -> Cell {
        Cell {
            path: "a path".to_owned(),
            congestion_control: "cubic".to_owned(),
            direction: "to the server".to_owned(),
            copy: copy.to_owned(),
            link: 137.4,
            connections,
            valid_runs: 1,
            invalid_attempts: 0,
            rate: Some(Spread { median, min: median, max: median }),
            reason: None,
        }
    }

    fn summary(cells: Vec<Cell>) -> Summary {
        let series = serde_json::json!({
            "title": "t", "form": "quick", "ropewalk": "1", "revisions": ["abc"], "begun": "2026-11-24T00:00:00Z",
            "machine": { "kernel": "", "kernel_version": "", "processor": "", "processors": 2, "memory_bytes": 0 },
            "runs": { "planned": 2, "valid": 2, "invalid_attempts": 0 },
        });
        Summary { series: serde_json::from_value(series).expect("it is one"), cells }
    }

    #[test]
    fn a_copy_is_compared_with_as_many_plain_streams_or_more() {
        let copy = cell("ropewalk", 5, 60.0);
        let plain = [cell("4 plain streams", 4, 40.0), cell("16 plain streams", 16, 120.0)];
        let summary = summary(vec![copy.clone(), plain[0].clone(), plain[1].clone()]);
        assert_eq!(share(&copy, &summary), Some(0.5));
        assert_eq!(share(&plain[0], &summary), None, "it is a limit itself");
    }

    #[test]
    fn a_combination_without_a_valid_run_is_listed_with_its_reason() {
        let reason = Some("rsync could not be started".to_owned());
        let text = text(&summary(vec![Cell { rate: None, reason, ..cell("rsync", 0, 0.0) }]));
        assert!(text.contains("| rsync | 0 | INVALID |"), "{text}");
        assert!(text.contains("* rsync, to the server, a path, cubic: rsync could not be started"), "{text}");
    }
}
