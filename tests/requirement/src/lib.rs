//! The needs of tests that not every machine meets. A test without them is skipped, and says so on standard error; the
//! environment variable `REQUIRE` turns the skip into a failure. It lists the needs that must be met, as in
//! `REQUIRE=root,peers`, or `all`.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

/// One kind of need, by the name that `REQUIRE` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// `root`: the rights of root, and the programs that come with them (`losetup`).
    Root,
    /// `peers`: programs of other projects.
    Peers,
    /// `bpf`: the right to load BPF programs.
    Bpf,
    /// `netns`: network namespaces, by root's rights or in a user namespace.
    Netns,
    /// `ipv6`: the kernel's IPv6.
    Ipv6,
    /// `processors`: two of them.
    Processors,
    /// `io_uring`: an io_uring that the system grants.
    IoUring,
    /// `direct`: a temporary folder on a filesystem with direct I/O.
    Direct,
    /// `machine`: a virtual machine that `scripts/vm prepare` has made.
    Machine,
    /// `tmpfs`: one that can be written at `/dev/shm`.
    Tmpfs,
}

/// Demands every need.
const ALL: &str = "all";

impl Need {
    const EACH: [Self; 10] = [
        Self::Root,
        Self::Peers,
        Self::Bpf,
        Self::Netns,
        Self::Ipv6,
        Self::Processors,
        Self::IoUring,
        Self::Direct,
        Self::Machine,
        Self::Tmpfs,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Peers => "peers",
            Self::Bpf => "bpf",
            Self::Netns => "netns",
            Self::Ipv6 => "ipv6",
            Self::Processors => "processors",
            Self::IoUring => "io_uring",
            Self::Direct => "direct",
            Self::Machine => "machine",
            Self::Tmpfs => "tmpfs",
        }
    }
}

/// A need that can be checked before the test begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The rights of root ([`Need::Root`]).
    Root,
    /// [`Need::Peers`]: each of these programs.
    Peers(&'static [&'static str]),
}

/// Whether the test can run here. If not, the reason is printed, and the test should return.
///
/// # Panics
/// As [`skip`].
#[must_use]
pub fn require(requirements: &[Requirement]) -> bool {
    let missing = requirements.iter().find_map(|requirement| requirement.missing());
    let Some((need, reason)) = missing else { return true };
    skip(need, &reason);
    false
}

/// Says that the test is skipped because the machine does not meet `need`, for that reason.
///
/// # Panics
/// If `REQUIRE` lists the need or `all`, or a name that stands for no need.
pub fn skip(need: Need, reason: &str) {
    let demanded = std::env::var("REQUIRE").unwrap_or_default();
    assert!(!is_demanded(need, &demanded), "{reason}, and REQUIRE={demanded} forbids to skip");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Past the harness, which keeps what a passing test prints. If nobody reads it, nothing is lost.
    let _ = writeln!(io::stderr(), "skipped: {test}: {reason}");
}

/// Whether the value of `REQUIRE` lists this need.
///
/// # Panics
/// If it lists a name that stands for none: a misspelt name would demand nothing.
fn is_demanded(need: Need, demanded: &str) -> bool {
    let names: BTreeSet<&str> = demanded.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    for name in &names {
        let is_known = *name == ALL || Need::EACH.iter().any(|need| need.name() == *name);
        assert!(
            is_known,
            "REQUIRE names {name:?}; it knows {ALL}, {}",
            Need::EACH.map(Need::name).join(", ")
        );
    }
    names.contains(ALL) || names.contains(need.name())
}

impl Requirement {
    fn missing(self) -> Option<(Need, String)> {
        match self {
            Self::Root if rustix::process::geteuid().is_root() => None,
            Self::Root => Some((Need::Root, "it needs the rights of root".to_owned())),
            Self::Peers(programs) => {
                let program = programs.iter().find(|program| find(program).is_none())?;
                Some((Need::Peers, format!("{program} is not installed")))
            }
        }
    }
}

/// Where daemons live, which ordinary users do not have in their path.
const DAEMON_PATHS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The path of an installed program, a daemon's too.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(DAEMON_PATHS.map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_need_can_be_demanded_by_its_name_and_by_all() {
        for need in Need::EACH {
            assert!(!is_demanded(need, ""));
            assert!(is_demanded(need, need.name()) && is_demanded(need, "all"));
            let others = Need::EACH.into_iter().filter(|other| *other != need).map(Need::name);
            assert!(!is_demanded(need, &others.collect::<Vec<_>>().join(",")), "{need:?}");
        }
    }

    #[test]
    #[should_panic(expected = "io-uring")]
    fn a_misspelt_need_is_no_demand_for_nothing() {
        is_demanded(Need::Root, "root,io-uring");
    }
}
