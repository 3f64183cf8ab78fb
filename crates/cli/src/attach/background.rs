//! A server in the background: another process of this program, which outlives its terminal.

use crate::exit::Failed;
use crate::output::outln;
use anyhow::Context;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, configure_io_flusher_behavior, getrlimit, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts the server, and waits until the disk is attached or is known not to be.
pub(super) fn start() -> Result<(), Failed> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let mut server = Command::new(program)
        .args(std::env::args_os().skip(1))
        .args(["--foreground", "--behind"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a process in the background")?;
    let mut line = String::new();
    if let Some(stdout) = server.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).context("cannot hear from the server")?;
    }
    if let Some(path) = line.strip_suffix('\n') {
        outln!("{path}");
        return Ok(());
    }
    // It has said why.
    let status = server.wait().context("the server is lost")?;
    std::process::exit(status.code().unwrap_or(1));
}

/// Keeps this process from waiting for the disk that it serves: neither its memory nor what it asks of the kernel may
/// depend on writing other data to a disk first. All this takes privileges; without them, it works as long as there is
/// memory.
pub(super) fn keep_in_memory() {
    if !may_lock_all() {
        tracing::info!(
            "this process is not locked into memory, of which it may lock only a part (RLIMIT_MEMLOCK)"
        );
    } else if let Err(error) =
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)
    {
        tracing::info!(%error, "cannot lock this process into memory");
    }
    if let Err(error) = configure_io_flusher_behavior(true) {
        tracing::debug!(%error, "cannot become an I/O flusher");
    }
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", "-900") {
        tracing::debug!(%error, "cannot ask to be spared when memory runs out");
    }
}

/// Under a limit, memory that is needed later could be refused.
fn may_lock_all() -> bool {
    let is_unlimited = getrlimit(Resource::Memlock).current.is_none();
    is_unlimited || capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK))
}

/// Tells systemd, if it has started this process, that the disk is there (`sd_notify(3)`).
pub(super) fn ready() {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match address.as_encoded_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&address),
    };
    let told = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address));
    if let Err(error) = told {
        tracing::warn!(%error, "cannot tell the service manager that the disk is attached");
    }
}

/// From now on, this process belongs to no terminal and holds no folder, and logs to a file.
pub(super) fn leave_terminal(log: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", log.display());
    let log = File::options().create(true).append(true).open(log).with_context(context)?;
    dup2_stdout(&log).with_context(context)?;
    dup2_stderr(&log).with_context(context)?;
    setsid().context("cannot leave the terminal")?;
    std::env::set_current_dir("/").context("cannot leave this folder")
}
