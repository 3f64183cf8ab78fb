//! `ropewalk lab`: experiments, and what was observed in them or elsewhere.

mod analyse;
mod analysis;

use crate::exit::Failed;
use clap::Subcommand;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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

pub(crate) fn run(arguments: Arguments) -> Result<(), Failed> {
    match arguments.command {
        Command::Analyse(arguments) => analyse::run(&arguments),
    }
}
