//! A lab without root: the command restarts itself in a user namespace.

use crate::exit::Failed;
use ::lab::{Rights, in_user_namespace};
use anyhow::{Context, anyhow};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// The environment variable that marks the second process.
const STARTED_AGAIN: &str = "ROPEWALK_IN_USER_NAMESPACE";

/// Returns the rights by which this process may build a lab. Without any, restarts the command in a user namespace and
/// exits with its status.
pub(super) async fn rights() -> Result<Rights, Failed> {
    match Rights::of_this_process() {
        Ok(rights) => Ok(rights),
        Err(reason) if std::env::var_os(STARTED_AGAIN).is_some() => Err(reason.into()),
        Err(reason) => start_again().await.with_context(|| reason.to_string()).map_err(Failed::from),
    }
}

async fn start_again() -> anyhow::Result<Rights> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(STARTED_AGAIN, "1");
    in_user_namespace(&mut command);
    // A terminal sends an interrupt to both processes, and this one must outlive the other.
    let _interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let mut process = command.spawn()?;
    let id = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    let mut ended = tokio::task::spawn_blocking(move || process.wait());
    let status = loop {
        tokio::select! {
            status = &mut ended => break status??,
            _ = terminations.recv() => {
                if let Some(id) = id {
                    // The other process may just have ended.
                    let _ = kill_process(id, Signal::TERM);
                }
            }
        }
    };
    match status.code() {
        Some(code) => std::process::exit(code),
        None => Err(anyhow!("it was killed in its user namespace: {status}")),
    }
}
