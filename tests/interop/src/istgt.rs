//! `istgt`, the one common userspace target that joins several connections into one session.

use crate::PATIENCE;
use crate::port::free_port;
use crate::program::Program;
use ::requirement::find;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A running `istgt` with one LUN.
#[derive(Debug)]
pub struct Istgt {
    address: SocketAddr,
    /// The running `istgt`.
    pub program: Program,
    /// Its configuration, which it may read again.
    _folder: TempDir,
}

/// The name of its target.
const IQN: &str = "iqn.2026-11.org.example:istgt";

/// How it negotiates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// As its documentation's example.
    Defaults,
    /// For bulk transfers.
    Bulk,
}

impl Istgt {
    /// Serves this file as LUN 0, to sessions of up to 8 connections.
    ///
    /// # Errors
    /// If it cannot.
    pub fn serve(file: &Path, tuning: Tuning) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = free_port()?;
        let config = folder.path().join("istgt.conf");
        fs::write(&config, configuration(folder.path(), port, free_port()?, file, tuning)?)?;
        secrets(&folder.path().join("auth.conf"))?;
        let mut command = Command::new(find("istgt").unwrap_or_else(|| "istgt".into()));
        let program = Program::start(command.arg("-D").arg("-c").arg(&config))?;
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let istgt = Self { address, program, _folder: folder };
        istgt.program.wait_until_listening(address, PATIENCE)?;
        Ok(istgt)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of its LUN.
    #[must_use]
    pub fn url(&self) -> String {
        format!("iscsi://{}/{IQN}/0", self.address)
    }
}

/// It insists on a file of secrets that nobody else can read, even without any secret.
fn secrets(file: &Path) -> io::Result<()> {
    fs::write(file, "")?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))
}

fn configuration(folder: &Path, port: u16, control: u16, file: &Path, tuning: Tuning) -> io::Result<String> {
    let folder = folder.display();
    let mib = fs::metadata(file)?.len() >> 20;
    let file = file.display();
    let (first_burst, max_burst, segment, r2t) = match tuning {
        Tuning::Defaults => (262_144, 1_048_576, 262_144, 16),
        Tuning::Bulk => (1_048_576, 4_194_304, 1_048_576, 64),
    };
    // InitialR2T: Debian's build refuses No.
    Ok(format!(
        "[Global]
  NodeBase \"iqn.2026-11.org.example\"
  PidFile {folder}/istgt.pid
  AuthFile {folder}/auth.conf
  LogFacility \"local7\"
  Timeout 30
  NopInInterval 20
  DiscoveryAuthMethod Auto
  MaxSessions 64
  MaxConnections 8
  MaxR2T 64
  MaxOutstandingR2T {r2t}
  DefaultTime2Wait 2
  DefaultTime2Retain 60
  FirstBurstLength {first_burst}
  MaxBurstLength {max_burst}
  MaxRecvDataSegmentLength {segment}
  InitialR2T Yes
  ImmediateData Yes
  DataPDUInOrder Yes
  DataSequenceInOrder Yes
  ErrorRecoveryLevel 0
[UnitControl]
  AuthMethod Auto
  Portal UC1 127.0.0.1:{control}
  Netmask 127.0.0.1
[PortalGroup1]
  Portal DA1 127.0.0.1:{port}
[InitiatorGroup1]
  InitiatorName \"ALL\"
  Netmask 127.0.0.0/8
[LogicalUnit1]
  TargetName \"istgt\"
  Mapping PortalGroup1 InitiatorGroup1
  AuthMethod Auto
  UseDigest Auto
  UnitType Disk
  QueueDepth 128
  LUN0 Storage {file} {mib}MB
"
    ))
}
