//! `ropewalk lab`: experiments, and what was observed in them or elsewhere.

mod analyse;
mod analysis;
mod clean;
mod list;
mod report;
mod run;
mod run_progress;
mod user_namespace;

use crate::exit::Failed;
use clap::Subcommand;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List experiments, and how long they take
    List(list::Arguments),
    /// Run an experiment, or go on with it
    ///
    /// Each run takes place in a lab of its own: two hosts in network namespaces of this machine, with the kernel's own
    /// TCP, and between them a path as the experiment describes it. It needs root, or a kernel that lets users make user
    /// namespaces. Runs in which the emulation itself had a part in what was measured are INVALID: they are tried
    /// again, kept, and shown as such.
    Run(run::Arguments),
    /// Make figures and tables of what was run
    ///
    /// They are printed, and put into the folder of the results: report.html, one page that opens offline, and a PNG of
    /// each figure.
    Report(report::Arguments),
    /// Remove what an interrupted run has left behind
    Clean(clean::Arguments),
    /// Say where the time of every command in a capture went
    ///
    /// Reads pcap and pcapng, taken anywhere on the path, and follows TCP and iSCSI on any port. Captures that keep only
    /// the headers of frames (tcpdump -s 256) are followed as long as no iSCSI header is cut off; what was passed over
    /// is told.
    ///
    /// Ta is the transfer of a command's data; Tb the target's time, from the last data of a write, or the command of a
    /// read, to the status or the first data, less the round trip; Tc the initiator's time from a status to the next
    /// command, if nothing was outstanding between.
    Analyse(analyse::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failed> {
    match arguments.command {
        Command::List(arguments) => list::run(&arguments),
        Command::Run(arguments) => run::run(arguments).await,
        Command::Report(arguments) => report::run(&arguments),
        Command::Clean(arguments) => clean::run(&arguments),
        Command::Analyse(arguments) => analyse::run(&arguments),
    }
}
