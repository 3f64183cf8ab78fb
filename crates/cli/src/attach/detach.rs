//! `ropewalk detach`.

use super::DetachArguments;
use super::place::{Place, Record, Way};
use crate::exit::Failed;
use anyhow::{Context, bail};
use attach::LoopDevice;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io;
use std::time::Duration;

pub(crate) fn run(arguments: &DetachArguments) -> Result<(), Failed> {
    let (place, record) = Place::find(&arguments.called)?;
    if !arguments.force {
        refuse_if_used(&record)?;
    }
    if place.is_served() {
        stop(&place, &record, arguments.force)?;
    } else {
        sweep(&place, &record)?;
    }
    // A server that could do all that it had to has removed its place.
    let Some(Record { failure: Some(failure), .. }) = place.record() else {
        return clear(&place).map_err(Failed::from);
    };
    clear(&place)?;
    Err(anyhow::anyhow!("{} is detached, but {failure}", record.name).into())
}

/// A disk that is in use would be taken from its users.
fn refuse_if_used(record: &Record) -> anyhow::Result<()> {
    match &record.way {
        Way::Loop { device, file, .. } => {
            let device = LoopDevice::at(device.clone());
            if device.is_over(file) && device.is_claimed() {
                bail!("{} is in use: unmount it first, or give --force", device.path().display());
            }
        }
        Way::Nbd { socket, clients } if *clients > 0 => {
            bail!("{} has {clients} clients: end them first, or give --force", socket.display());
        }
        Way::Nbd { .. } => {}
    }
    Ok(())
}

/// How often a server is asked that must not wait for users.
const INSIST: Duration = Duration::from_millis(200);

/// Asks the server to end, and waits for it. If it is asked again, it does not wait for users any more.
fn stop(place: &Place, record: &Record, force: bool) -> anyhow::Result<()> {
    let pid =
        i32::try_from(record.pid).ok().and_then(Pid::from_raw).context("the record names no process")?;
    kill_process(pid, Signal::TERM).with_context(|| format!("cannot stop process {}", record.pid))?;
    while force && place.is_served() {
        std::thread::sleep(INSIST);
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::TERM);
    }
    place.wait_for_end().context("cannot wait for the server")
}

/// Takes away what a server has left that was killed.
fn sweep(place: &Place, record: &Record) -> anyhow::Result<()> {
    match &record.way {
        Way::Loop { device, file, link } => {
            let device = LoopDevice::at(device.clone());
            if device.is_over(file) {
                device.detach().with_context(|| format!("cannot detach {}", device.path().display()))?;
            }
            if let Some(link) = link {
                ignore_missing(fs::remove_file(link))?;
            }
            // Not mounted any more is as good.
            let _ = attach::unmount_at_once(&place.file());
        }
        Way::Nbd { socket, .. } => ignore_missing(fs::remove_file(socket))?,
    }
    Ok(())
}

fn clear(place: &Place) -> anyhow::Result<()> {
    ignore_missing(place.remove()).context("cannot remove the disk's record")
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
