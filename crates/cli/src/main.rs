//! The `ropewalk` command.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, reason = "outln! knows what to do if nobody reads")]

mod bench;
mod clock;
mod copy;
mod exit;
mod info;
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
    /// Serves until SIGINT, SIGTERM or, unless started by nohup, SIGHUP. One target is described by --target and --lun;
    /// several, and everything without an option here, by a TOML file.
    Serve(serve::Arguments),
    /// List the targets of a portal
    Ls(ls::Arguments),
    /// Show a remote disk, its capabilities, and the negotiated parameters
    Info(info::Arguments),
    /// Copy a disk between files, block devices, streams and remote disks
    ///
    /// SRC and DST are each a remote disk (iscsi://…), a file, a block device, a pipe, or - for standard input or
    /// output. A destination that holds a filesystem, a partition table, LVM or the like, a file that is not empty, and
    /// what is in use are refused. Until the command ends with exit status 0, the destination is garbage.
    Copy(copy::Arguments),
    /// Measure the throughput and latency of a remote disk
    ///
    /// Writing destroys the contents of the disk and needs --destroy-data.
    Bench(bench::Arguments),
    /// Run experiments on an emulated WAN, and analyse captures of iSCSI
    Lab(lab::Arguments),
}

const STATUS_HELP: &str = "\
Exit status: 0 done; 1 failed; 2 wrong usage; 3 interrupted, goes on if started again; 4 source and copy differ; 5 refused, nothing written; 128 + N ended by signal N (130: Ctrl-C); 141 nobody reads its output any more.

Remote disks are named iscsi://[user@]host[:port]/TARGET-IQN/LUN. CHAP names and secrets come from --chap-file, or \
from LIBISCSI_CHAP_USERNAME, LIBISCSI_CHAP_PASSWORD and, to ask who the target is, LIBISCSI_CHAP_TARGET_USERNAME and \
LIBISCSI_CHAP_TARGET_PASSWORD.";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_server = matches!(arguments.command, Command::Serve(_));
    if !is_server {
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
            Command::Lab(arguments) => lab::run(arguments).await,
        }
    });
    // A thread that waits for standard input must not keep an interrupted copy from ending.
    runtime.shutdown_background();
    outcome
}
