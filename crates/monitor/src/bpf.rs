//! Loads the programs of the directory `bpf` into the kernel.

use libbpf_rs::{Error, ErrorKind, Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

/// Why programs could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// The process lacks root's rights, or `CAP_BPF` and `CAP_PERFMON`, in the initial user namespace.
    #[error("loading BPF programs requires root's rights: {0}")]
    NoRights(#[source] Error),
    /// The kernel refused the programs, because it lacks a feature that they need.
    #[error("cannot load BPF programs: {0}")]
    Refused(#[source] Error),
    /// A resource is missing.
    #[error("cannot trace: {0}")]
    System(#[from] io::Error),
}

impl From<Error> for BpfError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::PermissionDenied => Self::NoRights(error),
            _ => Self::Refused(error),
        }
    }
}

/// The cost of BPF programs, which they count themselves (`bpf/cost.h`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub calls: u64,
    pub busy_ns: u64,
    /// Events for which there was no room.
    pub lost: u64,
}

/// The loaded programs of one file, and the links that attach them.
#[derive(Debug)]
pub(crate) struct Programs {
    object: Object,
    links: Vec<Link>,
}

/// A compiled file, aligned as ELF requires.
#[repr(C, align(8))]
pub(crate) struct Compiled<Bytes: ?Sized>(pub Bytes);

/// The BPF file of this name that `build.rs` compiled.
macro_rules! compiled {
    ($name:literal) => {
        &$crate::bpf::Compiled(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")))
    };
}
pub(crate) use compiled;

impl Programs {
    /// Loads the programs with these constants, and attaches them.
    pub fn load(compiled: &Compiled<[u8]>, constants: &[u32]) -> Result<Self, BpfError> {
        // Otherwise the library also prints the errors that it returns.
        libbpf_rs::set_print(None);
        let mut open = ObjectBuilder::default().open_memory(&compiled.0)?;
        let mut section = open.maps_mut().find(|map| map.name().to_string_lossy().ends_with(".rodata"));
        let section = section.as_mut().ok_or_else(|| missing(".rodata"))?;
        let constants: Vec<u8> = constants.iter().copied().flat_map(u32::to_ne_bytes).collect();
        section.set_initial_value(&constants)?;
        let object = open.load()?;
        let links = object.progs_mut().map(|program| program.attach()).collect::<Result<_, _>>()?;
        Ok(Self { object, links })
    }

    /// Detaches the programs. Their maps stay.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// The cost that the programs counted, on all processors.
    pub fn cost(&self) -> Result<Cost, BpfError> {
        let counts = self.map("costs")?.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
        let mut cost = Cost::default();
        for counts in counts.unwrap_or_default() {
            let mut words = words(&counts);
            let mut next = || words.next().unwrap_or_default();
            cost.calls += next();
            cost.busy_ns += next();
            cost.lost += next();
        }
        Ok(cost)
    }

    /// A map of the programs, by its name.
    pub fn map(&self, name: &str) -> Result<MapHandle, BpfError> {
        let map = self.object.maps().find(|map| map.name() == name).ok_or_else(|| missing(name))?;
        Ok(MapHandle::try_from(&map)?)
    }
}

/// The calling thread's network namespace, by its inode number.
pub(crate) fn network_namespace() -> io::Result<u32> {
    u32::try_from(fs::metadata("/proc/thread-self/ns/net")?.ino()).map_err(io::Error::other)
}

/// A map's value as words of 64 bits.
pub(crate) fn words(value: &[u8]) -> impl Iterator<Item = u64> {
    value.chunks_exact(size_of::<u64>()).map(|word| word.try_into().map_or(0, u64::from_ne_bytes))
}

fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("the programs have no map {name}"))
}
