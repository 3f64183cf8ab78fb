//! The disks that are measured.

use crate::DISK_MIB;
use crate::fio;
use anyhow::{Context, ensure};
use lab::netem::{LinkModel, PathModel, Rate};
use lab::{Lab, Topology};
use ropewalk_interop::{IQN, PATIENCE, Program, Ropewalk, Stream, binary};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A way to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nbdkit's memory plugin.
    Nbdkit,
    /// Our NBD server, over memory.
    Nbd,
    /// A block device over memory.
    Loop,
    /// Our NBD server, over iSCSI.
    NbdOverIscsi,
    /// A block device over iSCSI.
    LoopOverIscsi,
}

/// A disk that fio can use. It goes when this is dropped.
pub struct Disk {
    /// What fio opens.
    path: PathBuf,
    is_device: bool,
    /// By `ropewalk attach`.
    is_attached: bool,
    /// nbdkit, and the target behind an attached disk, if they are only for this one.
    _servers: (Option<Program>, Option<Ropewalk>),
    /// The folder of the socket.
    _folder: TempDir,
}

/// The name of what is attached.
const NAME: &str = "bench";

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nbdkit => "nbdkit",
            Self::Nbd => "NBD",
            Self::Loop => "block device",
            Self::NbdOverIscsi => "NBD over iSCSI",
            Self::LoopOverIscsi => "block device over iSCSI",
        }
    }

    fn is_device(self) -> bool {
        matches!(self, Self::Loop | Self::LoopOverIscsi)
    }
}

impl Disk {
    /// A disk on this machine, fully written.
    pub fn attach(kind: Kind) -> anyhow::Result<Self> {
        let memory = format!("ram:{DISK_MIB}MiB");
        let ropewalk = Command::new(binary()?);
        let disk = match kind {
            Kind::Nbdkit => Self::nbdkit()?,
            Kind::Nbd | Kind::Loop => Self::attach_by(ropewalk, kind, &memory, None)?,
            Kind::NbdOverIscsi | Kind::LoopOverIscsi => {
                let target = Ropewalk::serve(&[&format!("0={memory}")])?;
                let url = target.url(0);
                Self::attach_by(ropewalk, kind, &url, Some(target))?
            }
        };
        disk.fill()?;
        Ok(disk)
    }

    fn nbdkit() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("socket");
        let mut nbdkit = Command::new("nbdkit");
        nbdkit.args(["--foreground", "--unix"]).arg(&path).args(["memory", &format!("{DISK_MIB}M")]);
        let nbdkit = Program::start(&mut nbdkit)?;
        let begun = Instant::now();
        while !path.exists() {
            ensure!(begun.elapsed() < PATIENCE, "nbdkit made no socket: {:?}", nbdkit.lines());
            std::thread::sleep(Duration::from_millis(10));
        }
        let servers = (Some(nbdkit), None);
        Ok(Self { path, is_device: false, is_attached: false, _servers: servers, _folder: folder })
    }

    fn attach_by(
        mut ropewalk: Command,
        kind: Kind,
        source: &str,
        target: Option<Ropewalk>,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        ropewalk.args(["attach", "--name", NAME, source]);
        if !kind.is_device() {
            ropewalk.arg("--nbd").arg(folder.path().join("socket"));
        }
        let (status, said) = Program::run(&mut ropewalk, PATIENCE)?;
        ensure!(status.success(), "cannot attach {source}: {said:?}");
        let path = said.iter().find(|line| line.stream == Stream::Out).context("attach named no device")?;
        let path = path.text.clone().into();
        let servers = (None, target);
        Ok(Self { path, is_device: kind.is_device(), is_attached: true, _servers: servers, _folder: folder })
    }

    fn fill(&self) -> anyhow::Result<()> {
        let fill = fio::Job { rw: "write", block_bytes: 1 << 20, depth: 8 };
        fio::run(fill, &self.target(), Duration::from_secs(1)).map(drop)
    }

    /// fio's options for it.
    pub fn target(&self) -> Vec<String> {
        let path = self.path.display();
        let size = format!("--size={DISK_MIB}M");
        if self.is_device {
            vec!["--ioengine=libaio".into(), "--direct=1".into(), format!("--filename={path}"), size]
        } else {
            vec!["--ioengine=nbd".into(), format!("--uri=nbd+unix:///?socket={path}"), size]
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_attached {
            // What fails here shows at the next attach.
            let _ = binary().and_then(|binary| Command::new(binary).args(["detach", NAME]).status());
        }
    }
}

/// A disk at the other end of an emulated path.
pub struct Far {
    lab: Lab,
    _server: Program,
}

impl Far {
    pub fn build(round_trip: Duration) -> anyhow::Result<Self> {
        let link = LinkModel::new(Rate::megabits_per_second(1000), round_trip / 2);
        let lab = Lab::build(&Topology::new(PathModel::symmetric(link)), None)?;
        let mut serve = Command::new(binary()?);
        serve.args(["serve", "--allow-insecure", "--state-directory", "", "--target", IQN, "--lun"]);
        serve.arg(format!("0=ram:{DISK_MIB}MiB")).args(["--listen", &format!("{}:3260", lab.server.address)]);
        lab.server.namespace.put(&mut serve);
        let server = Program::start(&mut serve)?;
        server.wait_for(PATIENCE, |line| line.text.starts_with("Ready at").then_some(()))?;
        Ok(Self { lab, _server: server })
    }

    pub fn attach(&self, kind: Kind) -> anyhow::Result<Disk> {
        let mut ropewalk = Command::new(binary()?);
        self.lab.client.namespace.put(&mut ropewalk);
        let url = format!("iscsi://{}/{IQN}/0", self.lab.server.address);
        Disk::attach_by(ropewalk, kind, &url, None)
    }
}
