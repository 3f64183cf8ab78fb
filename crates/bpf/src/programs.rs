//! Programs that work as long as this process does.

use crate::error::missing;
use crate::{BpfError, Compiled};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder};

/// The cost of BPF programs, as they (`bpf/cost.h`) or the kernel count it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// How often they ran.
    pub calls: u64,
    /// How long, in nanoseconds.
    pub busy_ns: u64,
    /// Events for which there was no room.
    pub lost: u64,
}

/// The loaded programs of one file, and the links that attach them.
#[derive(Debug)]
pub struct Programs {
    object: Object,
    links: Vec<Link>,
}

impl Programs {
    /// Loads the programs with these constants, and attaches them.
    ///
    /// # Errors
    /// If the kernel refuses them.
    pub fn load(compiled: &Compiled, constants: &[u32]) -> Result<Self, BpfError> {
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
    ///
    /// # Errors
    /// If the kernel does not tell it.
    pub fn cost(&self) -> Result<Cost, BpfError> {
        let counts = self.map("costs")?.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
        let mut cost = Cost::default();
        for counts in counts.unwrap_or_default() {
            let mut words = crate::words(&counts);
            let mut next = || words.next().unwrap_or_default();
            cost.calls += next();
            cost.busy_ns += next();
            cost.lost += next();
        }
        Ok(cost)
    }

    /// A map of the programs, by its name.
    ///
    /// # Errors
    /// If there is none.
    pub fn map(&self, name: &str) -> Result<MapHandle, BpfError> {
        let map = self.object.maps().find(|map| map.name() == name).ok_or_else(|| missing(name))?;
        Ok(MapHandle::try_from(&map)?)
    }
}
