//! `bpf/tcp_trace.bpf.c`, loaded.

use libbpf_rs::{Error, Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder};
use std::io;

/// Whose events to tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub namespace_inode: u32,
    pub port: Option<u16>,
}

/// What the programs counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub calls: u64,
    pub busy_ns: u64,
    /// For which there was no room.
    pub events_lost: u64,
}

/// The programs, and what holds them in their places.
#[derive(Debug)]
pub(crate) struct Programs {
    object: Object,
    links: Vec<Link>,
}

/// As the words of an ELF file want to lie.
#[repr(C, align(8))]
struct Aligned<Bytes: ?Sized>(Bytes);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/tcp_trace.bpf.o")));

impl Programs {
    /// Loads them, and puts them in their places.
    pub fn load(wanted: Wanted) -> Result<Self, Error> {
        // Else the library prints what is returned as an error as well.
        libbpf_rs::set_print(None);
        let mut open = ObjectBuilder::default().open_memory(&OBJECT.0)?;
        let mut constants = open.maps_mut().find(|map| map.name().to_string_lossy().ends_with(".rodata"));
        let constants = constants.as_mut().ok_or_else(|| missing(".rodata"))?;
        let port = u32::from(wanted.port.unwrap_or_default());
        constants.set_initial_value([wanted.namespace_inode, port].map(u32::to_ne_bytes).as_flattened())?;
        let object = open.load()?;
        let links = object.progs_mut().map(|program| program.attach()).collect::<Result<_, _>>()?;
        Ok(Self { object, links })
    }

    /// Where they put what they tell.
    pub fn events(&self) -> Result<MapHandle, Error> {
        self.map("events")
    }

    /// Takes them away. What they told stays.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// What they counted, on all processors.
    pub fn cost(&self) -> Result<Cost, Error> {
        let counts = self.map("costs")?.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
        let mut cost = Cost::default();
        for counts in counts.unwrap_or_default() {
            let mut words = counts.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
            let mut next = || words.next().unwrap_or_default();
            cost.calls += next();
            cost.busy_ns += next();
            cost.events_lost += next();
        }
        Ok(cost)
    }

    fn map(&self, name: &str) -> Result<MapHandle, Error> {
        let map = self.object.maps().find(|map| map.name() == name).ok_or_else(|| missing(name))?;
        MapHandle::try_from(&map)
    }
}

fn missing(name: &str) -> Error {
    io::Error::new(io::ErrorKind::NotFound, format!("the programs have no map {name}")).into()
}
