//! The report of a series of copies.

use crate::copies::{Copies, Copy};
use lab::{Form, SeriesSummary, Spread};
use std::fmt::Write;

/// The numbers of plain streams that were measured, and their names.
const PLAIN: [(usize, &str); 3] = [(1, "1 plain stream"), (4, "4 plain streams"), (16, "16 plain streams")];

/// The whole report, in Markdown.
pub fn text(copies: &Copies) -> String {
    let mut text = format!("# Copies over long paths\n\n{}\n{}\n", head(&copies.series), ABOUT.trim());
    for path in copies.values(Copy::path) {
        text += "\n";
        text += &table(copies, path);
    }
    text += &missing(copies);
    text
}

fn head(series: &SeriesSummary) -> String {
    let SeriesSummary { form, ropewalk, revisions, others, machine, begun, .. } = series;
    let flag = if *form == Form::Quick { " --quick" } else { "" };
    let day = begun.split('T').next().unwrap_or_default();
    let revisions = match revisions.as_slice() {
        [] => String::new(),
        some => format!(", commit {}", some.join(" and ")),
    };
    let mut head = format!(
        "Written by `benches/wan{flag}` on {day}: ropewalk {ropewalk}{revisions}; {}, {} cores, {}. Others: {}. {} of {} \
         runs are VALID, and {} attempts were INVALID. The medians and spreads are in [wan.json](wan.json), the \
         experiment in [copies.toml](../experiments/wan/copies.toml).\n",
        machine.processor,
        machine.processors,
        machine.kernel,
        others.join(", "),
        series.valid,
        series.planned,
        series.invalid_attempts,
    );
    if *form == Form::Quick {
        head += "\n**The quick form: one run of each combination.** Random losses make single runs differ by a half.\n";
    }
    head
}

const ABOUT: &str = "
![Rates of copy programs to the server under CUBIC, as shares of the link's rate](wan.svg)

`make bench-wan` copies a disk image to a server and back over emulated paths, with the kernel's own TCP. Rates are Mbit/s
of the image's data, from a program's start to its end: the median of the valid runs, in brackets the smallest and the
largest, and their number if it is smaller than that of the planned ones. The percentage is the share of as many plain TCP
streams (1, 4 or 16, the next larger number) with the same seed, again the median; plain streams draw the data from one
pool in pieces of 64 KiB. Where they carried another amount, there is no share. \"To\" copies to the server, \"from\"
copies back. Every copy was compared byte by byte after the clock had stopped; a copy that failed was not tried again.

* ropewalk and QEMU have their defaults, and BBR means that it is the default of the system. ropewalk chooses
  for itself: it begins with 16 connections of CUBIC, and tries two of BBR where losses limit these. It also flushes and
  reads back a sample of what it wrote, which counts. rsync sends whole files to an rsync daemon (`--whole-file --inplace --ignore-times`), without compression or encryption.
* Tuned: QEMU with 16 requests out of order (`-W -m 16`), and tgt with bursts of up to 4 MiB and 8 R2Ts, of which QEMU's
  libiscsi accepts 256 KiB and 1.
* nbdcopy gives its connections a disk in pieces of 128 MiB, and by default has 4 connections, and no more threads than
  the machine has processors. Here it has a thread for each connection, and a disk with equal data in as many pieces,
  with holes between them, which it skips; on a smaller disk it would use fewer connections. It connects one after the
  other. With a fixed share for each connection, the slowest one decides; on a disk with many pieces for each, it
  decides less.
* Slower programs copy less data, so that each run takes 3 to 60 s; start-up counts.
";

/// The columns: congestion control, direction, and their heading.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("cubic", "to the server", "CUBIC, to"),
    ("cubic", "from the server", "CUBIC, from"),
    ("bbr", "to the server", "BBR, to"),
    ("bbr", "from the server", "BBR, from"),
];

fn table(copies: &Copies, path: &str) -> String {
    let of_path: Vec<&Copy> = copies.cells.iter().filter(|copy| copy.path() == path).collect();
    let is_measured = |(control, direction): (&str, &str)| {
        of_path.iter().any(|copy| copy.congestion_control() == control && copy.direction() == direction)
    };
    let columns: Vec<_> =
        COLUMNS.iter().filter(|(control, direction, _)| is_measured((control, direction))).collect();
    let link = of_path.first().map_or(0.0, |copy| megabits(copy.cell.link));
    let mut table = format!("## {path}\n\nThe link carries {link} Mbit/s of payload.\n\n| | connections |");
    for (_, _, heading) in &columns {
        let _ = write!(table, " {heading} | MiB |");
    }
    table += &format!("\n|---|---:|{}\n", "---:|---:|".repeat(columns.len()));
    for name in copies.values(Copy::name) {
        let of_name = of_path.iter().filter(|copy| copy.name() == name);
        let connections = of_name.map(|copy| copy.cell.connections).max().unwrap_or(0);
        let _ = write!(table, "| {name} | {connections} |");
        for (control, direction, _) in &columns {
            let text = copies.at(path, control, direction, name).map_or_else(
                || "– | –".to_owned(),
                |copy| format!("{} | {}", rate(copy, copies), copy.cell.bytes.unwrap_or(0) >> 20),
            );
            let _ = write!(table, " {text} |");
        }
        table += "\n";
    }
    table
}

/// A rate with its spread and its share.
fn rate(copy: &Copy, copies: &Copies) -> String {
    let Some(rate) = copy.throughput() else { return "INVALID".to_owned() };
    let mut text = format!("{}", megabits(rate.median));
    if copy.cell.valid > 1 {
        let _ = write!(text, " ({}–{})", megabits(rate.min), megabits(rate.max));
    }
    if copy.cell.valid < copy.cell.planned {
        let _ = write!(text, ", {} of {} runs", copy.cell.valid, copy.cell.planned);
    }
    if let Some(share) = share(copy, copies) {
        let _ = write!(text, ", {:.0} %", share.median * 100.0);
    }
    text
}

/// The share of as many plain streams that carried as much; none of the plain streams themselves.
fn share(copy: &Copy, copies: &Copies) -> Option<Spread> {
    if PLAIN.iter().any(|(_, name)| copy.name() == *name) {
        return None;
    }
    let (_, plain) = PLAIN.iter().find(|(count, _)| *count >= copy.cell.connections).or(PLAIN.last())?;
    let plain = copies.beside(copy, plain).filter(|plain| plain.cell.bytes == copy.cell.bytes)?;
    copy.throughput()?.share_of(plain.throughput()?)
}

/// The copies without a valid run, and the reasons.
fn missing(copies: &Copies) -> String {
    let mut text = String::new();
    for copy in copies.cells.iter().filter(|copy| copy.cell.valid == 0) {
        let (path, congestion_control) = (copy.path(), copy.congestion_control());
        let (direction, name) = (copy.direction(), copy.name());
        for reason in &copy.cell.reasons {
            if text.is_empty() {
                text += "\n## Without a valid run\n\n";
            }
            let _ = writeln!(text, "* {name}, {direction}, {path}, {congestion_control}: {reason}");
        }
    }
    text
}

/// Mbit/s, to a tenth.
fn megabits(bits_per_second: f64) -> f64 {
    (bits_per_second / 1e5).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn copy(name: &str, connections: usize, megabits: Option<f64>, bytes: u64) -> Copy {
        let rate = Spread::of(vec![megabits.map(|rate| rate * 1e6)]);
        let measured: BTreeMap<_, _> = rate.iter().map(|rate| ("throughput", rate)).collect();
        let cell = serde_json::json!({
            "values": {
                "path": "a path", "congestion control": "cubic", "direction": "to the server", "copy": name,
            },
            "bytes": bytes, "link": 137.4e6, "connections": connections, "planned": 1,
            "valid": usize::from(rate.is_some()), "invalid_attempts": 0, "measured": measured,
            "reasons": if rate.is_none() { vec![format!("{name} could not be started")] } else { Vec::new() },
        });
        Copy::of(serde_json::from_value(cell).expect("it is one")).expect("it has all values")
    }

    fn copies(cells: &[&Copy]) -> Copies {
        let series = serde_json::json!({
            "title": "t", "form": "quick", "ropewalk": "1", "revisions": ["abc"], "begun": "2026-11-24T00:00:00Z",
            "machine": { "kernel": "", "kernel_version": "", "processor": "", "processors": 2, "memory_bytes": 0 },
            "planned": 2, "valid": 2, "invalid_attempts": 0,
        });
        let series = serde_json::from_value(series).expect("it is one");
        Copies { series, cells: cells.iter().map(|copy| (*copy).clone()).collect() }
    }

    #[test]
    fn a_copy_is_compared_with_as_many_plain_streams_or_more_that_carried_as_much() {
        let four = copy("4 plain streams", 4, Some(40.0), 64);
        let sixteen = copy("16 plain streams", 16, Some(120.0), 64);
        let share_of = |copy: &Copy| share(copy, &copies(&[copy, &four, &sixteen])).map(|share| share.median);
        assert_eq!(share_of(&copy("ropewalk", 5, Some(60.0), 64)), Some(0.5));
        assert_eq!(share_of(&copy("ropewalk", 5, Some(60.0), 32)), None, "it carried less");
        assert_eq!(share_of(&four), None, "it is a limit itself");
    }

    #[test]
    fn a_run_without_a_valid_attempt_is_listed_with_its_reason() {
        let text = text(&copies(&[&copy("rsync", 0, None, 64)]));
        assert!(text.contains("| rsync | 0 | INVALID |"), "{text}");
        assert!(text.contains("* rsync, to the server, a path, cubic: rsync could not be started"), "{text}");
    }
}
