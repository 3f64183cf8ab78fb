//! A virtual machine with Debian's kernel, for what this host's kernel may lack: iSCSI, both ends, and NBD. `scripts/vm
//! prepare` makes what it boots; `make test-vm` does so, and runs the tests of this crate.

#![forbid(unsafe_code)]

use requirement::{Need, skip};
use ropewalk_interop::{Line, Program};
use std::fs;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// How long a job may take: ten times what the slowest takes, on processors that are emulated.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// This host, as the machine sees it. What listens on the host's loopback is there.
pub const HOST: &str = "10.0.2.2";

/// A part of a job: it waits in the background for [`let_go`].
pub const LISTEN: &str = "echo go | nc -l -p 7777 >/dev/null &";

/// The port of [`LISTEN`].
pub const LISTEN_PORT: u16 = 7777;

/// How long to leave a job alone that does not listen yet.
const PAUSE: Duration = Duration::from_millis(100);

/// The byte of a disk that boots at which its free partition begins.
pub const FREE_FROM: u64 = 66 << 20;

/// A running machine. Dropping it ends it.
#[derive(Debug)]
pub struct Machine {
    program: Program,
    _job: Option<NamedTempFile>,
}

impl Machine {
    /// Whether there is one to boot. If not, the reason is printed, and the test should return.
    #[must_use]
    pub fn is_prepared() -> bool {
        let kernel = repository().join("target/vm/kernel");
        let kernel = std::env::var_os("CARGO_TARGET_DIR")
            .map_or(kernel, |target| Path::new(&target).join("vm/kernel"));
        if !kernel.exists() {
            skip(Need::Machine, "scripts/vm prepare has not made a virtual machine");
        }
        kernel.exists()
    }

    /// Boots one that runs this shell script, with these files in `/files`. `forwards` leads from addresses of this host to
    /// ports of the machine.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn boot(job: &str, files: &[&Path], forwards: &[(SocketAddr, u16)]) -> io::Result<Self> {
        let script = script(job)?;
        let forwards: Vec<_> = forwards.iter().map(|(here, port)| format!("tcp:{here}-:{port}")).collect();
        let mut command = Command::new(repository().join("scripts/vm"));
        command.env("VM_NETWORK", forwards.join(",")).arg("run").arg(script.path()).args(files);
        Ok(Self { program: Program::start(&mut command)?, _job: Some(script) })
    }

    /// Makes a disk image that boots by itself and then runs this shell script, without a network. Its second partition,
    /// from [`FREE_FROM`] on, is free.
    ///
    /// # Errors
    /// If a program is missing or fails.
    pub fn make_disk(job: &str, image: &Path) -> io::Result<()> {
        let script = script(job)?;
        let mut command = Command::new(repository().join("scripts/vm"));
        let output = command.arg("disk").arg(image).arg(script.path()).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }

    /// Boots one from such a disk, named as QEMU names it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn boot_from(disk: &str) -> io::Result<Self> {
        let mut command = Command::new(repository().join("scripts/vm"));
        Ok(Self { program: Program::start(command.args(["boot", disk]))?, _job: None })
    }

    /// Waits until it says this.
    ///
    /// # Errors
    /// If it does not, or ends before.
    pub fn wait_for(&self, words: &str) -> io::Result<()> {
        self.program.wait_for(PATIENCE, |line| line.text.contains(words).then_some(()))
    }

    /// What it has said so far.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        self.program.lines().into_iter().map(|Line { text, .. }| text).collect()
    }

    /// Waits until its job has succeeded, and returns what it said.
    ///
    /// # Errors
    /// If the job failed or hung, or the kernel did: with all that it said.
    pub fn finish(mut self) -> io::Result<Vec<String>> {
        let status = self.program.finish(PATIENCE)?;
        let said = self.said();
        if status.success() {
            return Ok(said);
        }
        Err(io::Error::other(format!("the machine's job failed, {status}:\n{}", said.join("\n"))))
    }
}

/// Lets a job go on that waits behind this address of this host. QEMU accepts a connection and closes it again if the job
/// does not listen yet, so only the job's answer counts.
///
/// # Errors
/// If nobody listens at the address, or the job does not answer.
pub fn let_go(address: SocketAddr) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let mut connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        if connection.read(&mut [0; 1]).is_ok_and(|count| count > 0) {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("the job behind {address} does not listen")))
}

/// Checks an ext4 filesystem, named as e2fsprogs name it.
///
/// # Errors
/// With what `e2fsck` says, if it is not clean.
pub fn check_ext4(filesystem: &str) -> io::Result<()> {
    let check = Command::new("/sbin/e2fsck").args(["-fn", filesystem]).output()?;
    match check.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&check.stdout).into_owned())),
    }
}

/// A job's file: it ends at the first command that fails.
fn script(job: &str) -> io::Result<NamedTempFile> {
    let script = NamedTempFile::new()?;
    fs::write(&script, format!("set -e\n{job}"))?;
    Ok(script)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
