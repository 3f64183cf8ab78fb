//! `ropewalk lab`: experiments on an emulated WAN, and the analysis of captures.

mod analyse;
mod analysis;
mod clean;
mod list;
mod report;
mod run;
mod run_progress;
mod turn;
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
    /// List experiments and the time that they take
    List(list::Arguments),
    /// Run or resume an experiment
    ///
    /// Each run has a lab of its own: two hosts in network namespaces of this machine, with the kernel's own TCP, and
    /// between them a path as the experiment describes it. The lab needs root, or a kernel that lets users make user
    /// namespaces. If the emulation may have disturbed a run's measurements, or the workload failed, the run is
    /// INVALID: the lab keeps it, marks it, and repeats it.
    Run(run::Arguments),
    /// Make figures and tables of the results
    ///
    /// Prints the tables. Writes report.html, one page that opens offline, and a PNG of each figure into the folder of
    /// the results.
    Report(report::Arguments),
    /// Remove files that an interrupted run left half written
    ///
    /// Removes only files that lab wrote, from folders that carry its manifest. Lists the other files and leaves them
    /// alone.
    Clean(clean::Arguments),
    /// Show where each command in a capture spent its time
    ///
    /// Reads pcap and pcapng files, taken anywhere on the path, and follows TCP and iSCSI on any port. A capture may
    /// hold only the headers of frames (tcpdump -s 256), as long as it cuts off no iSCSI header; the report counts the
    /// skipped bytes.
    ///
    /// Ta is the time in which a command's data moves. Tb is the target's time, less the round trip: from the last data
    /// of a write to its status, or from the command of a read to its first data. Tc is the initiator's time from a
    /// status to the next command, if nothing was outstanding in between.
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
