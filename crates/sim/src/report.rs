//! What a person is told.

use crate::campaign::Summary;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use ropewalk_sim::fault::FaultKind;
use ropewalk_sim::reached::Way;
use ropewalk_sim::{Outcome, Reduction};
use std::fmt::Write;

/// Failures that are shrunk; with more there is something that the first will show.
pub const SHRUNK_MAX: usize = 3;

/// The table of a campaign.
pub fn print(summary: &Summary) {
    let mut table = Table::new();
    table.load_style(NOTHING);
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    row("seeds", summary.seeds.to_string());
    row("operations", summary.operations.to_string());
    row("SCSI commands", summary.commands.to_string());
    row("PDUs", summary.pdus.to_string());
    row("blocks compared", summary.blocks_read.to_string());
    row("commands sent again", summary.retries.to_string());
    row("task management functions", summary.functions.to_string());
    row("faults", summary.faults.total().to_string());
    for kind in FaultKind::ALL {
        row(&format!("  {}", kind.name()), summary.faults.of(kind).to_string());
    }
    row("ways taken", String::new());
    for way in Way::ALL {
        row(&format!("  {}", way.name()), summary.reached.of(way).to_string());
    }
    row("violations", summary.failures.len().to_string());
    row("hours of virtual time", format!("{:.2}", summary.virtual_time.as_secs_f64() / 3600.0));
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    let (seconds, processor_seconds) = (summary.elapsed.as_secs_f64(), summary.processor_time.as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let per_second = |count: u64| format!("{:.0}", count as f64 / processor_seconds);
    let (commands, pdus, operations) =
        (per_second(summary.commands), per_second(summary.pdus), per_second(summary.operations));
    println!("{seconds:.1} s on {} threads, {processor_seconds:.1} s of processor time.", summary.threads);
    println!("A second of a processor: {commands} SCSI commands, {pdus} PDUs, {operations} operations.");
    let never: Vec<&str> = summary.reached.never().map(Way::name).collect();
    if !never.is_empty() {
        println!("NEVER REACHED, so nothing is proved about: {}", never.join(", "));
    }
    if !summary.weak.is_empty() {
        println!("seeds with too few commands, connections or faults: {:?}", summary.weak);
    }
}

/// Why a seed failed, and how to see it again.
pub fn print_failure(outcome: &Outcome, reduction: &Reduction) {
    let reason = outcome.violation.as_ref().map_or("", |violation| violation.0.as_str());
    println!("seed {}: {reason}", outcome.seed);
    println!("  again: {}", command(outcome.seed, reduction));
}

/// How little of it is enough.
pub fn print_shrunk(outcome: &Outcome, reduction: &Reduction) {
    let reason = outcome.violation.as_ref().map_or("", |violation| violation.0.as_str());
    println!(
        "  reduced ({} operations, {} faults): {reason}",
        outcome.tally.operations,
        outcome.faults.total()
    );
    println!("  again: {}", command(outcome.seed, reduction));
}

fn command(seed: u64, reduction: &Reduction) -> String {
    let whole = Reduction::default();
    let mut command = format!("cargo run --release -p ropewalk-sim -- --seed {seed} --trace");
    let mut option = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = write!(command, " --{name} {value}");
    };
    if reduction.operations != whole.operations {
        option("operations", reduction.operations.to_string());
    }
    if !reduction.faults_left_out.is_empty() {
        let places: Vec<String> = reduction.faults_left_out.iter().map(ToString::to_string).collect();
        option("without-faults", places.join(","));
    }
    if reduction.connections_max != whole.connections_max {
        option("connections", reduction.connections_max.to_string());
    }
    if reduction.hosts_max != whole.hosts_max {
        option("hosts", reduction.hosts_max.to_string());
    }
    if reduction.recovery_level_max != whole.recovery_level_max {
        option("recovery-level", reduction.recovery_level_max.to_string());
    }
    if let Some(policy) = reduction.placement {
        option("placement", format!("\"{policy}\""));
    }
    command
}
