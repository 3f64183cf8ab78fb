//! The backend of a LUN as one line of text: `ram:1GiB`, `file:/srv/a.img,size=1GiB,thin`.

use crate::size::ByteSize;
use serde::Deserialize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The backend of a LUN and its options. Parsed from `KIND:SPEC[,option]...`; see [`LUN_OPTIONS`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct LunSpec {
    /// The location of the blocks.
    pub medium: Medium,
    /// Bytes of a logical block: 512 or 4096.
    pub block_bytes: u32,
    /// Bytes of a physical block as reported to initiators, which align their writes to it.
    pub physical_bytes: Option<u32>,
    /// Initiators can eject and load the medium.
    pub removable: bool,
    /// Refuse every write.
    pub read_only: bool,
    /// Blocks can be deallocated. Always so in memory.
    pub thin: bool,
    /// Tell initiators when this percentage of the capacity is allocated, or when the rest cannot be, because the
    /// filesystem is full.
    pub threshold_percent: Option<u8>,
    /// A WRITE SAME of zero blocks runs to the end of the disk; otherwise it is refused.
    pub write_same_to_end: bool,
    /// Add a write-back cache in this process's memory: unflushed writes are lost when it is killed.
    pub volatile: bool,
    /// Slow the device down.
    pub pace: Option<Pace>,
    /// The name from which the unit's identity is derived, instead of target, LUN and path.
    pub id: Option<String>,
}

/// The location of a LUN's blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Medium {
    /// In memory, initially zero.
    Ram {
        /// The capacity; memory is used only for parts that were written.
        bytes: u64,
    },
    /// In a regular file or block device.
    File {
        /// The file or device; a relative path starts at the working directory.
        path: PathBuf,
        /// Create the file or extend it to this length.
        size_bytes: Option<u64>,
        /// Bypass the page cache.
        direct: bool,
    },
}

/// The pace of a slowed-down device, for experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The highest rate.
    pub bytes_per_second: Option<u64>,
    /// The least duration of every operation.
    pub latency: Duration,
}

/// A LUN and its number: `N=KIND:SPEC[,option]...`, as on a command line.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberedLunSpec {
    /// The logical unit number.
    pub number: u16,
    /// The medium of its blocks, and the options of its disk.
    pub spec: LunSpec,
}

/// The options of a LUN, for help texts.
pub const LUN_OPTIONS: &str = "size=SIZE (create or extend the file), bs=512|4096, pbs=SIZE (physical block), ro, \
     removable, thin, threshold=PERCENT (tell initiators when so much of a thin LUN is used), \
     write-same-to-end (WRITE SAME of no blocks means all), direct, volatile, \
     rate=SIZE (bytes per second), latency=MILLISECONDS, id=NAME (identity)";

/// A text that does not describe a LUN.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum InvalidLunSpec {
    /// The `N=` before it is missing.
    #[error("\"{0}\" does not start with a LUN from 0 to 16383 and '=', as in 0=ram:1GiB")]
    Number(String),
    /// Neither `ram:` nor `file:` starts the location.
    #[error("\"{0}\" is neither ram:SIZE nor file:PATH")]
    Kind(String),
    /// An unknown option, or one without its value.
    #[error("\"{option}\" is not an option of {kind}: LUNs. There are: {LUN_OPTIONS}")]
    Option {
        option: String,
        /// `ram` or `file`.
        kind: &'static str,
    },
    /// An invalid value of an option.
    #[error("{option}: {reason}")]
    Value { option: String, reason: String },
}

/// Higher LUNs need a form of the LUN field that not every initiator knows (SAM-5 §4.7.7).
const LUN_MAX: u16 = 0x3fff;

impl FromStr for NumberedLunSpec {
    type Err = InvalidLunSpec;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidLunSpec::Number(text.to_owned());
        let (number, spec) = text.split_once('=').ok_or_else(invalid)?;
        let number = number.parse().ok().filter(|number| *number <= LUN_MAX).ok_or_else(invalid)?;
        Ok(Self { number, spec: spec.parse()? })
    }
}

impl TryFrom<String> for LunSpec {
    type Error = InvalidLunSpec;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for LunSpec {
    type Err = InvalidLunSpec;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(',');
        let mut spec = Self::from_medium(medium(parts.next().unwrap_or_default())?);
        parts.try_for_each(|option| spec.set(option))?;
        Ok(spec)
    }
}

fn medium(text: &str) -> Result<Medium, InvalidLunSpec> {
    match text.split_once(':') {
        Some(("ram", size)) => Ok(Medium::Ram { bytes: byte_size(text, size)? }),
        Some(("file", path)) if !path.is_empty() => {
            Ok(Medium::File { path: path.into(), size_bytes: None, direct: false })
        }
        _ => Err(InvalidLunSpec::Kind(text.to_owned())),
    }
}

impl LunSpec {
    /// The medium with every option at its default.
    #[must_use]
    pub fn from_medium(medium: Medium) -> Self {
        let thin = matches!(medium, Medium::Ram { .. });
        Self {
            medium,
            block_bytes: 512,
            physical_bytes: None,
            removable: false,
            read_only: false,
            thin,
            threshold_percent: None,
            write_same_to_end: false,
            volatile: false,
            pace: None,
            id: None,
        }
    }

    fn set(&mut self, option: &str) -> Result<(), InvalidLunSpec> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        match (name, value, &mut self.medium) {
            ("pbs", Some(value), _) => self.physical_bytes = Some(physical_bytes(option, value)?),
            ("removable", None, _) => self.removable = true,
            ("ro", None, _) => self.read_only = true,
            ("volatile", None, _) => self.volatile = true,
            ("thin", None, _) => self.thin = true,
            ("write-same-to-end", None, _) => self.write_same_to_end = true,
            ("threshold", Some(value), _) => self.threshold_percent = Some(percent(option, value)?),
            ("bs", Some(value), _) => self.block_bytes = block_bytes(option, value)?,
            ("rate", Some(value), _) => self.pace_mut().bytes_per_second = Some(rate(option, value)?),
            ("latency", Some(value), _) => self.pace_mut().latency = latency(option, value)?,
            ("id", Some(value), _) if !value.is_empty() => self.id = Some(value.to_owned()),
            ("direct", None, Medium::File { direct, .. }) => *direct = true,
            ("size", Some(value), Medium::File { size_bytes, .. }) => {
                *size_bytes = Some(byte_size(option, value)?);
            }
            (_, _, Medium::Ram { .. }) => return Err(unknown(option, "ram")),
            (_, _, Medium::File { .. }) => return Err(unknown(option, "file")),
        }
        Ok(())
    }

    fn pace_mut(&mut self) -> &mut Pace {
        self.pace.get_or_insert(Pace { bytes_per_second: None, latency: Duration::ZERO })
    }
}

fn unknown(option: &str, kind: &'static str) -> InvalidLunSpec {
    InvalidLunSpec::Option { option: option.to_owned(), kind }
}

fn invalid(option: &str, reason: &(impl ToString + ?Sized)) -> InvalidLunSpec {
    InvalidLunSpec::Value { option: option.to_owned(), reason: reason.to_string() }
}

fn byte_size(option: &str, value: &str) -> Result<u64, InvalidLunSpec> {
    match value.parse::<ByteSize>() {
        Ok(size) if size.0 > 0 => Ok(size.0),
        Ok(_) => Err(invalid(option, "a size of zero")),
        Err(error) => Err(invalid(option, &error)),
    }
}

fn block_bytes(option: &str, value: &str) -> Result<u32, InvalidLunSpec> {
    match value.parse::<ByteSize>() {
        Ok(ByteSize(512)) => Ok(512),
        Ok(ByteSize(4096)) => Ok(4096),
        _ => Err(invalid(option, "logical blocks have 512 or 4096 bytes")),
    }
}

/// The check against the logical block follows when all options are known.
fn physical_bytes(option: &str, value: &str) -> Result<u32, InvalidLunSpec> {
    match value.parse::<ByteSize>() {
        Ok(ByteSize(bytes)) if bytes.is_power_of_two() && (512..=1 << 20).contains(&bytes) => {
            u32::try_from(bytes).map_err(|error| invalid(option, &error))
        }
        _ => Err(invalid(option, "physical blocks are a power of two, from 512 bytes to 1 MiB")),
    }
}

/// The check that the LUN is thin follows when all options are known.
fn percent(option: &str, value: &str) -> Result<u8, InvalidLunSpec> {
    let percent = value.strip_suffix('%').unwrap_or(value).parse().ok();
    percent
        .filter(|percent| (1..=99).contains(percent))
        .ok_or_else(|| invalid(option, "write a percentage from 1% to 99%, as in threshold=80%"))
}

fn rate(option: &str, value: &str) -> Result<u64, InvalidLunSpec> {
    byte_size(option, value)
}

fn latency(option: &str, value: &str) -> Result<Duration, InvalidLunSpec> {
    let milliseconds = value.trim_end_matches("ms").parse();
    milliseconds
        .map(Duration::from_millis)
        .map_err(|_| invalid(option, "write whole milliseconds, as in latency=5ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<NumberedLunSpec, InvalidLunSpec> {
        text.parse()
    }

    #[test]
    fn a_ram_lun_needs_only_its_size() {
        let lun = parse("0=ram:1GiB").unwrap();
        assert_eq!(lun.number, 0);
        assert_eq!(lun.spec, LunSpec::from_medium(Medium::Ram { bytes: 1 << 30 }));
    }

    #[test]
    fn a_file_lun_takes_every_option() {
        let text = "7=file:/srv/a.img,size=1GiB,thin,threshold=80%,direct,ro,bs=4096,pbs=64K,removable,write-same-to-end,volatile,rate=200M,latency=5ms,id=a";
        let spec = parse(text).unwrap().spec;
        let medium = Medium::File { path: "/srv/a.img".into(), size_bytes: Some(1 << 30), direct: true };
        assert_eq!(spec.medium, medium);
        assert!(spec.thin && spec.read_only && spec.volatile && spec.removable && spec.write_same_to_end);
        assert_eq!((spec.block_bytes, spec.physical_bytes), (4096, Some(64 << 10)));
        let pace = Pace { bytes_per_second: Some(200 << 20), latency: Duration::from_millis(5) };
        assert_eq!(spec.pace, Some(pace));
        assert_eq!((spec.id.as_deref(), spec.threshold_percent), (Some("a"), Some(80)));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(matches!(parse("ram:1G"), Err(InvalidLunSpec::Number(_))));
        assert!(matches!(parse("16384=ram:1G"), Err(InvalidLunSpec::Number(_))));
        assert!(matches!(parse("0=tape:x"), Err(InvalidLunSpec::Kind(_))));
        assert!(matches!(parse("0=file:"), Err(InvalidLunSpec::Kind(_))));
        assert!(matches!(parse("0=ram:0"), Err(InvalidLunSpec::Value { .. })));
        assert!(matches!(parse("0=ram:1G,bs=1024"), Err(InvalidLunSpec::Value { .. })));
        assert!(matches!(parse("0=ram:1G,pbs=1000"), Err(InvalidLunSpec::Value { .. })));
        assert!(matches!(parse("0=ram:1G,threshold=100%"), Err(InvalidLunSpec::Value { .. })));
        assert!(matches!(parse("0=ram:1G,direct"), Err(InvalidLunSpec::Option { .. })));
        assert!(matches!(parse("0=file:/a,sise=1G"), Err(InvalidLunSpec::Option { .. })));
    }
}
