//! `ropewalk lab analyse`: shows where each command in a capture spent its time.

use super::analysis;
use crate::exit::Failed;
use crate::{output, sizes};
use anyhow::Context;
use clap::ValueEnum;
use observe::{Analyser, Analysis, Digests, Options, ReadSummary, read_capture};
use serde_json::json;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "Examples: ropewalk lab analyse slow-backup.pcapng --html slow-backup.html
          ropewalk lab analyse slow-backup.pcapng --from 61.5s --to 62s --commands")]
pub(crate) struct Arguments {
    /// A pcap or pcapng file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Digests of connections whose login is not in the capture [default: found by trial]
    #[arg(long, value_name = "WHICH")]
    digests: Option<WhichDigests>,

    /// Report pauses in the data of at least this many milliseconds [default: half a round trip, and at least 1]
    #[arg(long, value_name = "MS")]
    gap: Option<u64>,

    /// Leave out frames before this time, counted from the first frame; a login before it is not seen
    #[arg(long, value_name = "TIME", value_parser = sizes::moment)]
    from: Option<Duration>,

    /// Leave out frames from this time on, counted in the same way
    #[arg(long, value_name = "TIME", value_parser = sizes::moment)]
    to: Option<Duration>,

    /// Print every command besides the summary
    #[arg(long)]
    commands: bool,

    /// With --json: print a line for each PDU (`message_type` is pdu) before the report (summary)
    #[arg(long, requires = "json")]
    pdus: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Also write figures and tables to this file, as one page that opens offline
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
}

/// Points over time in a page: enough for single bursts to show when zoomed in.
const PAGE_POINTS_MAX: usize = 4096;

/// The digests of a PDU, by part.
#[derive(Clone, Copy, ValueEnum)]
enum WhichDigests {
    None,
    Header,
    Data,
    Both,
}

impl WhichDigests {
    fn known(self) -> Digests {
        Digests {
            header: Some(matches!(self, Self::Header | Self::Both)),
            data: Some(matches!(self, Self::Data | Self::Both)),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failed> {
    let from = arguments.from.unwrap_or_default();
    if arguments.to.is_some_and(|to| to <= from) {
        return Err(Failed::usage("--to must be after --from"));
    }
    let (analysis, read) =
        analyse(arguments).with_context(|| format!("cannot analyse {:?}", arguments.file))?;
    if read.cut_short {
        tracing::warn!("the capture ends within a frame; what is before it has been analysed");
    }
    if let Some(out) = &arguments.html {
        let name = arguments.file.file_name().unwrap_or(arguments.file.as_os_str()).to_string_lossy();
        let page = analysis.report(&name).html();
        std::fs::write(out, page).with_context(|| format!("cannot write {out:?}"))?;
    }
    if arguments.json {
        let mut object = json!(analysis);
        if arguments.pdus {
            object["message_type"] = json!("summary");
        }
        object["read"] = json!(read);
        output::json(&object);
    } else {
        analysis::print(&analysis, arguments.commands);
    }
    Ok(())
}

fn analyse(arguments: &Arguments) -> anyhow::Result<(Analysis, ReadSummary)> {
    let file = File::open(&arguments.file)?;
    let defaults = Options::default();
    let mut analyser = Analyser::new(Options {
        digests: arguments.digests.map(WhichDigests::known).unwrap_or_default(),
        gap: arguments.gap.map(Duration::from_millis),
        timeline_points_max: arguments
            .html
            .as_ref()
            .map_or(defaults.timeline_points_max, |_| PAGE_POINTS_MAX),
        from: arguments.from.unwrap_or_default(),
        to: arguments.to,
    });
    let read = read_capture(file, |frame| {
        analyser.frame(frame, |pdu| {
            if arguments.pdus {
                let mut object = json!(pdu);
                object["message_type"] = json!("pdu");
                output::json(&object);
            }
        });
    })?;
    Ok((analyser.report(), read))
}
