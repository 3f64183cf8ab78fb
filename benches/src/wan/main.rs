//! Summarises the copies of `experiments/wan/copies.toml`: a JSON file of medians and spreads, and from it a report and a
//! plot.
//!
//! Started by `benches/wan`, which runs the experiment.

#![forbid(unsafe_code)]

mod copies;
#[path = "../packages.rs"]
mod packages;
mod plot;
mod report;

use anyhow::Context;
use clap::Parser;
use copies::Copies;
use lab::{Folder, Summary};
use std::fs;
use std::path::PathBuf;

/// Summarise a series of copies; write a report and a plot.
#[derive(Debug, Parser)]
struct Options {
    /// The folder of the results; without one, the summary is read, and report and plot are written again.
    #[arg(value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// The summary's file.
    #[arg(long, default_value = "benches/wan.json")]
    summary: PathBuf,
    /// The report's file.
    #[arg(long, default_value = "benches/WAN.md")]
    report: PathBuf,
    /// The plot's file, in SVG.
    #[arg(long, default_value = "benches/wan.svg")]
    plot: PathBuf,
    /// Another file for the plot, in PNG.
    #[arg(long)]
    png: Option<PathBuf>,
}

/// The packages of the programs that are measured beside ropewalk.
const OTHERS: [&str; 6] = ["qemu-utils", "libiscsi7", "tgt", "libnbd-bin", "nbdkit", "rsync"];

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(results) = &options.results {
        let mut summary = Summary::of(&Folder::open(results)?)?;
        summary.series.others = packages::installed(&OTHERS);
        write(&options.summary, summary.json()?)?;
    }
    let text = fs::read_to_string(&options.summary)
        .with_context(|| format!("{}: name the folder of the results", options.summary.display()))?;
    let summary = Copies::of(serde_json::from_str(&text)?)?;
    let figure = plot::figure(&summary);
    write(&options.plot, figure.svg())?;
    if let Some(png) = &options.png {
        write(png, figure.png()?)?;
    }
    let text = report::text(&summary);
    print!("{text}");
    write(&options.report, text)
}

fn write(path: &PathBuf, contents: impl AsRef<[u8]>) -> anyhow::Result<()> {
    fs::write(path, contents).with_context(|| format!("writing {}", path.display()))
}
