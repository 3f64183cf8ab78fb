//! An attached disk with a filesystem.

use crate::Filesystem;
use anyhow::{Context, Result, bail};
use ropewalk_interop::{Line, PATIENCE, Program, Stream, binary, ropewalk};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A disk of this machine, under a name of its own.
pub struct Disk {
    name: String,
    pub device: PathBuf,
}

impl Disk {
    /// Attaches a remote disk. If its target is lost, it waits for it no longer than the patience of a test.
    pub fn attach(name: &str, url: &str) -> Result<Self> {
        let mut command = Command::new(binary()?);
        command.args(["attach", "--name", name, "--patience", "20s", url]);
        let said = expect(Program::run(&mut command, PATIENCE)?, "attach")?;
        let device = said.iter().find(|line| line.stream == Stream::Out).context("attach named no device")?;
        Ok(Self { name: name.to_owned(), device: device.text.clone().into() })
    }

    /// The process that serves it.
    pub fn pid(&self) -> Result<u32> {
        let (_, said) = ropewalk(["attach", "--list", "--json"])?;
        let entry = ropewalk_interop::objects(&said).find_map(|object| {
            let disks = object["attached"].as_array()?.clone();
            disks.into_iter().find(|disk| disk["name"] == self.name.as_str())
        });
        let pid = entry.and_then(|entry| entry["pid"].as_u64()).context("the disk is not listed")?;
        Ok(u32::try_from(pid)?)
    }

    /// Takes it away, whatever it was: it may have errors to tell.
    pub fn detach(self) -> Result<()> {
        ropewalk(["detach", "--force", &self.name])?;
        Ok(())
    }
}

impl Filesystem {
    pub fn make(self, device: &Path) -> Result<()> {
        match self {
            Self::Ext4 => run("mkfs.ext4", &["-q", "-F"], &[device]),
            Self::Xfs => run("mkfs.xfs", &["-q", "-f"], &[device]),
        }
    }

    /// Whether it is consistent; nothing is repaired.
    pub fn check(self, device: &Path) -> Result<()> {
        match self {
            Self::Ext4 => run("e2fsck", &["-f", "-n"], &[device]),
            Self::Xfs => run("xfs_repair", &["-n"], &[device]),
        }
    }
}

/// Mounts a filesystem, which replays its log.
pub fn mount(device: &Path, folder: &Path) -> Result<()> {
    run("mount", &[], &[device, folder])
}

pub fn unmount(folder: &Path) -> Result<()> {
    run("umount", &[], &[folder])
}

fn run(program: &str, options: &[&str], paths: &[&Path]) -> Result<()> {
    let mut command = Command::new(program);
    command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").args(options).args(paths);
    expect(Program::run(&mut command, PATIENCE)?, program).map(drop)
}

fn expect((status, said): (std::process::ExitStatus, Vec<Line>), program: &str) -> Result<Vec<Line>> {
    if !status.success() {
        let said: Vec<_> = said.into_iter().map(|line| line.text).collect();
        bail!("{program} failed, {status}: {}", said.join(" / "));
    }
    Ok(said)
}
