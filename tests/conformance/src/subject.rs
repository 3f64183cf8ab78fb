//! Targets and the disks they are asked to serve: the matrix that lets every test run somewhere.

use crate::test_name::TestName;
use anyhow::{Context, Result};
use clap::ValueEnum;
use ropewalk_interop::{Image, Istgt, Ropewalk, Tgt, Tuning};
use std::any::Any;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// The target that is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Subject {
    /// The target of this repository.
    Ropewalk,
    /// The target of the Linux SCSI target framework.
    Tgt,
    /// The target that the program `istgt` serves.
    Istgt,
}

impl Subject {
    /// The name in results and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ropewalk => "ropewalk",
            Self::Tgt => "tgt",
            Self::Istgt => "istgt",
        }
    }

    /// What it is asked to serve.
    #[must_use]
    pub fn configurations(self) -> &'static [Configuration] {
        match self {
            Self::Ropewalk => ROPEWALK,
            Self::Tgt => TGT,
            Self::Istgt => ISTGT,
        }
    }

    /// The programs it needs.
    #[must_use]
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Ropewalk => &[],
            Self::Tgt => &["tgtd", "tgtadm"],
            Self::Istgt => &["istgt"],
        }
    }
}

/// One disk, or several, and the way there.
#[derive(Debug)]
pub struct Configuration {
    /// The column's title.
    pub name: &'static str,
    /// What is special about it.
    pub about: &'static str,
    /// The suites that can say something about it; every one if there are none.
    suites: &'static [&'static str],
    served: Served,
}

#[derive(Debug)]
enum Served {
    Ropewalk(&'static [&'static str], Access),
    Tgt { parameters: &'static str, access: Access },
    Istgt(Access),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// The first LUN, through the only portal.
    Plain,
    /// Through two paths. Only the tests of multipath use the second.
    TwoPaths,
    /// The first LUN, for an initiator that has proven its CHAP secret.
    Chap,
    /// The second LUN.
    SecondLun,
}

/// Stands in the description of a LUN for the path of a fresh file of [`DISK_MIB`].
const FILE: &str = "{file}";

/// Large enough for the largest transfer of any test.
const DISK_MIB: u64 = 128;

const ROPEWALK: &[Configuration] = &[
    disk(
        "full",
        "a file, every block allocated, 512-byte blocks; a WRITE SAME of no blocks goes to its end",
        Served::Ropewalk(&["0=file:{file},write-same-to-end"], Access::Plain),
    ),
    disk("thin", "memory, blocks can be deallocated", Served::Ropewalk(&["0=ram:128M"], Access::Plain)),
    disk(
        "thin file",
        "a sparse file, blocks can be deallocated",
        Served::Ropewalk(&["0=file:{file},thin"], Access::Plain),
    ),
    disk(
        "volatile",
        "a sparse file behind a write-back cache that a crash empties",
        Served::Ropewalk(&["0=file:{file},thin,volatile"], Access::Plain),
    ),
    disk("4K", "4096-byte blocks", Served::Ropewalk(&["0=ram:128M,bs=4096"], Access::Plain)),
    disk(
        "512e",
        "512-byte blocks on physical blocks of 4096",
        Served::Ropewalk(&["0=ram:128M,pbs=4K"], Access::Plain),
    ),
    disk(
        "removable",
        "the medium can be locked and ejected",
        Served::Ropewalk(&["0=ram:128M,removable"], Access::Plain),
    ),
    read_only(
        "read-only",
        "thin, and nothing may be written",
        Served::Ropewalk(&["0=ram:128M,ro"], Access::Plain),
    ),
    disk(
        "two paths",
        "thin, a session through each of two portals",
        Served::Ropewalk(&["0=ram:128M"], Access::TwoPaths),
    ),
    disk("CHAP", "thin, the initiator must prove who it is", Served::Ropewalk(&["0=ram:128M"], Access::Chap)),
    disk(
        "LUN 1",
        "thin, the middle one of three LUNs, which differ in everything",
        Served::Ropewalk(&["0=ram:64M,bs=4096", "1=ram:128M", "5=ram:32M,ro"], Access::SecondLun),
    ),
];

const TGT: &[Configuration] = &[
    disk("full", "", tgt("", Access::Plain)),
    disk("thin", "", tgt("thin_provisioning=1", Access::Plain)),
    read_only("read-only", "", tgt("readonly=1", Access::Plain)),
    disk("removable", "", tgt("removable=1,online=1", Access::Plain)),
    disk("two paths", "", tgt("", Access::TwoPaths)),
];

const ISTGT: &[Configuration] =
    &[disk("full", "", Served::Istgt(Access::Plain)), disk("two paths", "", Served::Istgt(Access::TwoPaths))];

/// The suites that write nothing, and the one about disks that cannot be written. Others take it for granted that
/// they can be, and fail.
const READING: &[&str] = &[
    "Inquiry",
    "Mandatory",
    "ModeSense6",
    "Prefetch10",
    "Prefetch16",
    "Read6",
    "Read10",
    "Read12",
    "Read16",
    "ReadCapacity10",
    "ReadCapacity16",
    "ReadOnly",
    "ReportSupportedOpcodes",
    "TestUnitReady",
];

const fn disk(name: &'static str, about: &'static str, served: Served) -> Configuration {
    Configuration { name, about, suites: &[], served }
}

const fn read_only(name: &'static str, about: &'static str, served: Served) -> Configuration {
    Configuration { name, about, suites: READING, served }
}

const fn tgt(parameters: &'static str, access: Access) -> Served {
    Served::Tgt { parameters, access }
}

/// A target that runs. It ends with this value.
pub struct Running {
    /// The URL of its LUN, by one path or by each of two.
    pub urls: Vec<String>,
    _holds: Box<dyn Any>,
}

/// Who the initiator says it is, and what it proves it with.
const CHAP_USER: &str = "tester";
const CHAP_SECRET: &str = "conformance-4711";

impl Configuration {
    /// Whether this test can say something about it.
    #[must_use]
    pub fn can_run(&self, test: &TestName) -> bool {
        self.suites.is_empty() || self.suites.contains(&test.suite.as_str())
    }

    /// Starts its target on a fresh disk.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(&self) -> Result<Running> {
        let image = Image::empty(DISK_MIB)?;
        match &self.served {
            Served::Ropewalk(luns, access) => ropewalk(luns, *access, image),
            Served::Tgt { parameters, access } => {
                let tgt = Tgt::serve(1, &[image.path()])?;
                if !parameters.is_empty() {
                    tgt.change(1, parameters)?;
                }
                Ok(Running { urls: access.paths(tgt.url(1)), _holds: Box::new((tgt, image)) })
            }
            Served::Istgt(access) => {
                let istgt = Istgt::serve(image.path(), Tuning::Defaults)?;
                Ok(Running { urls: access.paths(istgt.url()), _holds: Box::new((istgt, image)) })
            }
        }
        .with_context(|| format!("the configuration \"{}\"", self.name))
    }
}

impl Access {
    /// Peers have one portal: two sessions through it are two paths as well.
    fn paths(self, url: String) -> Vec<String> {
        match self {
            Self::TwoPaths => vec![url.clone(), url],
            Self::Plain | Self::Chap | Self::SecondLun => vec![url],
        }
    }
}

fn ropewalk(luns: &[&str], access: Access, image: Image) -> Result<Running> {
    let luns: Vec<String> = luns.iter().map(|lun| lun.replace(FILE, image.name())).collect();
    let luns: Vec<&str> = luns.iter().map(String::as_str).collect();
    let secret = image.beside("secret");
    let target = match access {
        Access::Plain | Access::SecondLun => Ropewalk::serve(&luns)?,
        Access::TwoPaths => Ropewalk::serve_with(&luns, 2, &[])?,
        Access::Chap => {
            File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&secret)?
                .write_all(CHAP_SECRET.as_bytes())?;
            Ropewalk::serve_with(&luns, 1, &["--chap-user", CHAP_USER, "--chap-secret-file", &secret])?
        }
    };
    let lun = u16::from(access == Access::SecondLun);
    let urls = target.addresses().iter().map(|address| target.url_by(*address, lun));
    let urls = match access {
        Access::Chap => {
            let proved = format!("iscsi://{CHAP_USER}%{CHAP_SECRET}@");
            urls.map(|url| url.replacen("iscsi://", &proved, 1)).collect()
        }
        _ => urls.collect(),
    };
    Ok(Running { urls, _holds: Box::new((target, image)) })
}
