//! The Linux SCSI target framework's `tgtd`, whose sessions have one connection each, whatever MaxConnections it was
//! told to negotiate.

use crate::PATIENCE;
use crate::port::free_port;
use crate::program::Program;
use ::requirement::find;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A running `tgtd` with one target.
#[derive(Debug)]
pub struct Tgt {
    address: SocketAddr,
    target_number: String,
    /// Names its control socket; made of the port, which nobody else has.
    control: String,
    /// The running `tgtd`.
    pub program: Program,
}

/// The name of its target.
const IQN: &str = "iqn.2026-11.org.example:tgt";

/// Negotiation for bulk transfers; its defaults are those of the standard.
const TUNED: [(&str, &str); 8] = [
    ("MaxRecvDataSegmentLength", "1048576"),
    ("MaxXmitDataSegmentLength", "1048576"),
    ("MaxBurstLength", "4194304"),
    ("FirstBurstLength", "1048576"),
    ("InitialR2T", "No"),
    ("ImmediateData", "Yes"),
    ("MaxOutstandingR2T", "8"),
    ("MaxConnections", "8"),
];

/// The largest number of a control socket.
const CONTROL_MAX: u16 = 0x7fff;

/// Its tools answer at once or never.
const TOOL_PATIENCE: Duration = Duration::from_secs(10);

impl Tgt {
    /// Serves these files as LUN 1, 2… (LUN 0 is a controller), with its own defaults. It makes the identity of its
    /// LUNs from nothing but the number of the target and theirs.
    ///
    /// # Errors
    /// If it cannot.
    pub fn serve(target_number: u8, files: &[&Path]) -> io::Result<Self> {
        let port = free_port()?;
        let control = (port & CONTROL_MAX).to_string();
        let mut command = Command::new(find("tgtd").unwrap_or_else(|| "tgtd".into()));
        command.args(["-f", "-C", &control, "--iscsi", &format!("portal=127.0.0.1:{port}")]);
        let program = Program::start(&mut command)?;
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let tid = &target_number.to_string();
        let tgt = Self { address, target_number: tid.clone(), control, program };
        tgt.program.wait_until_listening(address, PATIENCE)?;
        tgt.admin(&["--op", "new", "--mode", "target", "--tid", tid, "-T", IQN])?;
        for (lun, file) in (1..).zip(files) {
            let (lun, file) = (lun.to_string(), file.to_string_lossy());
            tgt.admin(&["--op", "new", "--mode", "logicalunit", "--tid", tid, "--lun", &lun, "-b", &file])?;
        }
        tgt.admin(&["--op", "bind", "--mode", "target", "--tid", tid, "-I", "ALL"])?;
        Ok(tgt)
    }

    /// Negotiates what suits bulk transfers from the next session on.
    ///
    /// # Errors
    /// If it refuses.
    pub fn tune(&self) -> io::Result<()> {
        let tid = &self.target_number;
        for (key, value) in TUNED {
            self.admin(&[
                "--op", "update", "--mode", "target", "--tid", tid, "--name", key, "--value", value,
            ])?;
        }
        Ok(())
    }

    /// Changes a LUN, as `removable=1`.
    ///
    /// # Errors
    /// If it refuses.
    pub fn change(&self, lun: u16, parameters: &str) -> io::Result<()> {
        let (tid, lun) = (&self.target_number, lun.to_string());
        self.admin(&[
            "--op",
            "update",
            "--mode",
            "logicalunit",
            "--tid",
            tid,
            "--lun",
            &lun,
            "--params",
            parameters,
        ])
    }

    /// Asks initiators for a user and secret from now on, and proves itself by another when it is asked.
    ///
    /// # Errors
    /// If it refuses.
    pub fn authenticate(&self, initiator: (&str, &str), own: (&str, &str)) -> io::Result<()> {
        let tid = &self.target_number;
        let new = ["--op", "new", "--mode", "account"];
        let bind = ["--op", "bind", "--mode", "account", "--tid", tid];
        self.admin(&[&new[..], &["--user", initiator.0, "--password", initiator.1]].concat())?;
        self.admin(&[&bind[..], &["--user", initiator.0]].concat())?;
        self.admin(&[&new[..], &["--user", own.0, "--password", own.1]].concat())?;
        self.admin(&[&bind[..], &["--user", own.0, "--outgoing"]].concat())
    }

    fn admin(&self, arguments: &[&str]) -> io::Result<()> {
        let mut command = Command::new(find("tgtadm").unwrap_or_else(|| "tgtadm".into()));
        command.args(["-C", &self.control, "--lld", "iscsi"]).args(arguments);
        match Program::run(&mut command, TOOL_PATIENCE)? {
            (status, _) if status.success() => Ok(()),
            (_, lines) => Err(io::Error::other(format!("tgtadm {arguments:?}: {lines:?}"))),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of one of its LUNs, from 1.
    #[must_use]
    pub fn url(&self, lun: u16) -> String {
        format!("iscsi://{}/{IQN}/{lun}", self.address)
    }
}

impl Drop for Tgt {
    fn drop(&mut self) {
        // It leaves its control socket behind when it is killed, and it ignores SIGTERM while it has targets.
        let _ = self.program.kill();
        for suffix in ["", ".lock"] {
            let _ = std::fs::remove_file(format!("/var/run/tgtd/socket.{}{suffix}", self.control));
        }
    }
}
