//! A virtual machine with Debian's kernel, for what this host's kernel may lack: iSCSI, both ends, and NBD. `scripts/vm
//! prepare` makes what it boots, and `scripts/vm network` the network between it and this host; `make test-vm` does both,
//! and runs the tests of this crate.

#![forbid(unsafe_code)]

use requirement::{Need, skip};
use ropewalk_interop::{Line, Program};
use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// How long a job may take: ten times what the slowest takes, on processors that are emulated.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// This host, as the machine sees it.
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// For a target that everybody in the machines' network may use.
pub const OPEN: &[&str] = &["--allow-insecure"];

/// A part of a job: it waits in the background for [`Machine::let_go`].
pub const LISTEN: &str = "echo go | nc -l -p 7777 >/dev/null &";

/// The port of [`LISTEN`].
const LISTEN_PORT: u16 = 7777;

/// How long to leave a job alone that does not listen yet.
const PAUSE: Duration = Duration::from_millis(100);

/// The byte of a disk that boots at which its free partition begins.
pub const FREE_FROM: u64 = 66 << 20;

/// The last part of the next machine's address.
static NEXT_MACHINE: AtomicU8 = AtomicU8::new(16);

/// A running machine. Dropping it ends it.
#[derive(Debug)]
pub struct Machine {
    /// Of the network with this host; it has none of its own when it boots from a disk.
    address: Option<Ipv4Addr>,
    program: Program,
    _job: Option<NamedTempFile>,
}

impl Machine {
    /// Whether there is one to boot, and a network for it. If not, the reason is printed, and the test should return.
    #[must_use]
    pub fn is_prepared() -> bool {
        let kernel = repository().join("target/vm/kernel");
        let kernel = std::env::var_os("CARGO_TARGET_DIR")
            .map_or(kernel, |target| Path::new(&target).join("vm/kernel"));
        if !kernel.exists() {
            skip(Need::Machine, "scripts/vm prepare has not made a virtual machine");
            return false;
        }
        let network = TcpListener::bind((HOST, 0)).is_ok();
        if !network {
            skip(Need::Machine, "this is not the machines' network, which scripts/vm network makes");
        }
        network
    }

    /// Boots one that runs this shell script, with these files in `/files`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn boot(job: &str, files: &[&Path]) -> io::Result<Self> {
        let [a, b, c, _] = HOST.octets();
        let address = Ipv4Addr::new(a, b, c, NEXT_MACHINE.fetch_add(1, Ordering::Relaxed));
        let script = script(job)?;
        let mut command = Command::new(repository().join("scripts/vm"));
        command.env("VM_ADDRESS", address.to_string()).arg("run").arg(script.path()).args(files);
        Ok(Self { address: Some(address), program: Program::start(&mut command)?, _job: Some(script) })
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
        Ok(Self { address: None, program: Program::start(command.args(["boot", disk]))?, _job: None })
    }

    /// A port of it.
    ///
    /// # Errors
    /// If it has no network.
    pub fn port(&self, port: u16) -> io::Result<SocketAddr> {
        let address = self.address.ok_or_else(|| io::Error::other("this machine has no network"))?;
        Ok((address, port).into())
    }

    /// Lets its job go on that has come to [`LISTEN`].
    ///
    /// # Errors
    /// If the job does not listen.
    pub fn let_go(&self) -> io::Result<()> {
        let address = self.port(LISTEN_PORT)?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let answer = TcpStream::connect(address).and_then(|mut connection| {
                connection.set_read_timeout(Some(PATIENCE))?;
                connection.read(&mut [0; 1])
            });
            if answer.is_ok_and(|count| count > 0) {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("the job behind {address} does not listen")))
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
