//! The `ropewalk` command.

#![forbid(unsafe_code)]

mod bench;
mod clock;
mod copy;
mod exit;
mod info;
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
    Serve(serve::Arguments),
    /// List the targets of a portal
    Ls(ls::Arguments),
    /// Show what a remote disk is, what it can do, and what was negotiated
    Info(info::Arguments),
    /// Copy a disk between files, block devices, streams and remote disks
    Copy(copy::Arguments),
    /// Measure the throughput and latency of a remote disk
    Bench(bench::Arguments),
}

const STATUS_HELP: &str = "\
Exit status: 0 done; 1 failed; 2 wrong usage; 4 source and copy differ; 5 refused, nothing written.

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

/// One thread for the protocol, the copy and the files' completions; files are read and written on others.
fn run(command: Command) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        match command {
            Command::Serve(arguments) => serve::run(arguments).await,
            Command::Ls(arguments) => ls::run(arguments).await,
            Command::Info(arguments) => info::run(arguments).await,
            Command::Copy(arguments) => copy::run(arguments).await,
            Command::Bench(arguments) => bench::run(arguments).await,
        }
    });
    // A thread that waits for standard input must not keep a copy that was interrupted from ending.
    runtime.shutdown_background();
    outcome
}
