//! The `ropewalk` command.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, reason = "outln! knows what to do if nobody reads")]
#![deny(clippy::print_stderr, reason = "output::tell does not panic on a terminal that has hung up")]

mod attach;
mod bench;
mod cc;
mod clock;
mod copy;
mod exit;
mod folders;
mod info;
mod kept;
mod lab;
mod local;
mod ls;
mod output;
mod progress_bar;
mod remote;
mod reservation;
mod serve;
mod signals;
mod sizes;

use clap::{Parser, Subcommand};
use exit::Failed;
use std::process::ExitCode;

/// An iSCSI target, initiator and copy tool for long distances.
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 100, after_help = STATUS_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve RAM, files and block devices as iSCSI targets
    ///
    /// Serves until SIGINT, SIGTERM or, unless started by nohup, SIGHUP. --target and --lun describe one target. A TOML
    /// file (--config) describes several, and holds the settings that have no option here.
    Serve(serve::Arguments),
    /// List the targets of a portal
    Ls(ls::Arguments),
    /// Show a remote disk, its capabilities, and the negotiated parameters
    Info(info::Arguments),
    /// Copy a disk between files, block devices, streams and remote disks
    ///
    /// SRC and DST are each a remote disk (iscsi://…), a file, a block device, a pipe, or - for standard input or
    /// output. The copy is refused if the destination holds a filesystem, a partition table, LVM or the like, is a file
    /// that is not empty, or is in use or reserved. Without exit status 0, the destination is incomplete.
    Copy(copy::Arguments),
    /// Measure the throughput and latency of a remote disk
    ///
    /// Writing destroys the contents of the disk, and needs --destroy-data.
    Bench(bench::Arguments),
    /// Make a remote disk a block device of this machine, or serve it to NBD clients
    ///
    /// Prints the device's path once it is there, and goes on in the background. A block device is a loop device over a
    /// file in a FUSE mount, and takes root; --nbd does not.
    Attach(attach::Arguments),
    /// Flush an attached disk, and take it away
    Detach(attach::DetachArguments),
    /// Add congestion controls to the kernel, and show connections that share one congestion state
    Cc(cc::Arguments),
    /// Run experiments on an emulated WAN, and analyse captures of iSCSI
    Lab(lab::Arguments),
}

const STATUS_HELP: &str = "\
Exit status: 0 done; 1 failed; 2 wrong usage; 3 interrupted, continues if started again (lab run); 4 source and copy \
differ; 5 refused, nothing written; 128 + N interrupted by signal N (130: Ctrl-C; serve exits with 0 if it could \
flush its disks); 141 nobody reads the output any more.

Remote disks are named iscsi://[user@]host[:port]/TARGET-IQN/LUN; ?congestion=NAME[:TERM,...] may \
follow. CHAP names and secrets come from --chap-file, or \
from LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD. For mutual CHAP, the target's come from the same file, or from \
LIBISCSI_CHAP_TARGET_USERNAME and LIBISCSI_CHAP_TARGET_PASSWORD.";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let may_be_server = matches!(arguments.command, Command::Serve(_) | Command::Attach(_));
    if !may_be_server {
        output::log_warnings();
    }
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.report(),
    }
}

/// One thread runs the protocol, the copy and the files' completions; other threads read and write the files.
fn run(command: Command) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        match command {
            Command::Serve(arguments) => serve::run(arguments).await,
            Command::Ls(arguments) => ls::run(arguments).await,
            Command::Info(arguments) => info::run(arguments).await,
            Command::Copy(arguments) => copy::run(arguments).await,
            Command::Bench(arguments) => bench::run(arguments).await,
            Command::Attach(arguments) => attach::run(arguments).await,
            Command::Detach(arguments) => attach::detach(&arguments),
            Command::Cc(arguments) => cc::run(&arguments),
            Command::Lab(arguments) => lab::run(arguments).await,
        }
    });
    // A thread that waits for standard input must not keep an interrupted copy from ending.
    runtime.shutdown_background();
    outcome
}
