//! One disk, one filesystem, one kill.

use crate::Filesystem;
use crate::disk::{Disk, mount, unmount};
use crate::history::Checked;
use crate::kill::Kill;
use crate::writer::Writer;
use anyhow::{Context, Result, ensure};
use ropewalk_interop::dice::Dice;
use ropewalk_interop::{Image, Relay, Ropewalk};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The least that XFS takes, and some room.
const DISK_MIB: u64 = 400;

const WRITERS: u64 = 4;

/// The kill comes within this time.
const KILL_WITHIN: Duration = Duration::from_millis(2500);

/// How long writers that nothing has stopped go on afterwards.
const AFTERWARDS: Duration = Duration::from_millis(700);

/// What is to happen.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub seed: u64,
    pub kill: Kill,
    pub filesystem: Filesystem,
}

/// What has come of it.
#[derive(Debug, Default)]
pub struct Outcome {
    pub stopped_writers: u64,
    pub checked_files: u64,
    pub checked_pages: u64,
    /// What must not be: lost files, inconsistencies, errors where none belong.
    pub complaints: Vec<String>,
}

impl fmt::Display for Round {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seed {}, {:?}, {} killed", self.seed, self.filesystem, self.kill)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} of {WRITERS} writers stopped by errors, {} files checked, {} complaints",
            self.stopped_writers,
            self.checked_files,
            self.complaints.len()
        )
    }
}

impl Round {
    pub fn run(self) -> Result<Outcome> {
        let image = Image::empty(DISK_MIB)?;
        let folder = tempfile::tempdir()?;
        let mut target = Ropewalk::serve(&[&format!("0=file:{},thin,volatile", image.name())])?;
        let relay = Relay::to(target.address(), &[])?;
        let name = format!("crash-{}", std::process::id());
        let disk = Disk::attach(&name, &target.url_by(relay.address(), 0))?;
        self.filesystem.make(&disk.device)?;
        mount(&disk.device, folder.path())?;
        let writers = self.let_write(folder.path(), &disk, &mut target, &relay)?;
        // After an error, an unmounting filesystem may tell one, too; what counts is what it finds when it is back.
        let _ = unmount(folder.path());
        disk.detach()?;

        let disk = Disk::attach(&name, &target.url_by(relay.address(), 0))?;
        let checked = self.look(folder.path(), &disk, &writers);
        disk.detach()?;
        checked
    }

    /// Lets writers work while something is killed, and returns what they have done.
    fn let_write(
        self,
        folder: &Path,
        disk: &Disk,
        target: &mut Ropewalk,
        relay: &Relay,
    ) -> Result<Vec<Writer>> {
        let mut dice = Dice::new(self.seed);
        let folders: Vec<_> = (0..WRITERS).map(|number| folder.join(number.to_string())).collect();
        folders.iter().try_for_each(fs::create_dir)?;
        fs::File::open(folder)?.sync_all()?;
        let pid = disk.pid()?;
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let working: Vec<_> = folders
                .iter()
                .map(|folder| {
                    let writer = Writer::new(folder, dice.number());
                    let stop = &stop;
                    scope.spawn(move || writer.work(stop))
                })
                .collect();
            let killed = self.break_things(&mut dice, pid, target, relay);
            thread::sleep(AFTERWARDS);
            stop.store(true, Ordering::Relaxed);
            killed?;
            working.into_iter().map(|writer| writer.join().ok().context("a writer panicked")).collect()
        })
    }

    fn break_things(self, dice: &mut Dice, pid: u32, target: &mut Ropewalk, relay: &Relay) -> Result<()> {
        let mut pause = |limit: Duration| {
            thread::sleep(limit.mul_f64(dice.fraction()));
        };
        if self.kill == Kill::Connections {
            for _ in 0..4 {
                pause(KILL_WITHIN / 4);
                relay.cut_all();
            }
            return Ok(());
        }
        pause(KILL_WITHIN);
        if self.kill.connections() {
            relay.cut_all();
        }
        if self.kill.attach() {
            let status = Command::new("kill").args(["-KILL", &pid.to_string()]).status()?;
            ensure!(status.success(), "cannot kill the disk's server");
        }
        if self.kill.target() {
            target.kill_and_restart()?;
        }
        Ok(())
    }

    /// Mounts the filesystem again, and compares it with what the writers have made durable.
    fn look(self, folder: &Path, disk: &Disk, writers: &[Writer]) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        mount(&disk.device, folder)?;
        let mut checked = Checked::default();
        for (number, writer) in writers.iter().enumerate() {
            writer.history.check(&folder.join(number.to_string()), &mut checked, &mut outcome.complaints);
            if let Some(error) = &writer.error {
                outcome.stopped_writers += 1;
                if self.kill == Kill::Connections {
                    outcome.complaints.push(format!("writer {number} saw an error: {error}"));
                }
            }
        }
        (outcome.checked_files, outcome.checked_pages) = (checked.files, checked.pages);
        unmount(folder)?;
        if let Err(error) = self.filesystem.check(&disk.device) {
            outcome.complaints.push(error.to_string());
        }
        Ok(outcome)
    }
}
