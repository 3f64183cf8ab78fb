//! A logical unit: its backend, what it tells of itself, and the state that its sessions share.

use crate::forced::ForcedOperations;
use crate::memory::Memory;
use crate::permit::Permits;
use crate::reservation::Persist;
use block::{Backend, BlockError, BlockErrorKind, Properties, Slab};
use nexus::target::{InitiatorPort, PersistedReservations, Ports, RelativePort};
use pdu::Lun;
use scsi::{
    BlockLength, Blocks, Disk, Extent, Identity, Lba, Outcome, PhysicalExponent, Provisioning, TargetPort,
    Threshold,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// One logical unit of one target. It lives in its target's event loop, so its state needs no lock.
pub struct LogicalUnit {
    pub(crate) number: u16,
    pub(crate) disk: Disk,
    /// The same as its other ports show it.
    through_other_ports: Vec<Disk>,
    pub(crate) backend: Arc<dyn Backend>,
    /// Unit attentions, reservations and the task set, of all sessions.
    pub(crate) shared: RefCell<nexus::target::LogicalUnit>,
    /// Where its persistent reservations are kept, if they can be.
    pub(crate) kept: Option<Rc<dyn Persist>>,
    /// See [`Memory::working`].
    pub(crate) working: Slab,
    /// What waits for the medium.
    pub(crate) forced: Rc<ForcedOperations>,
    /// Permissions to go on with a command that was answered (IMMED).
    pub(crate) unheard: Rc<Permits>,
}

/// Commands of one unit that go on after they were answered: a few, as nothing else bounds them, neither the command
/// window nor the end of their session.
const UNHEARD_MAX: usize = 4;

/// What a logical unit is, beside its backend.
#[derive(Clone, Debug)]
pub struct UnitDescription {
    /// Its number.
    pub number: u16,
    /// The same after a restart and on every path to it.
    pub identity: Identity,
    /// Through which port it is seen by sessions that came through none of the others.
    pub target_port: TargetPort,
    /// The other ports through which it is seen.
    pub other_ports: Vec<TargetPort>,
    /// Bytes of a physical block, if that is to be told. It only says how writes are best aligned.
    pub physical_bytes: Option<u32>,
    /// The medium can be ejected and loaded. Without it nothing is read or written, but nothing is lost either.
    pub removable: bool,
    /// Refuse every write, even if the backend would take it.
    pub read_only: bool,
    /// Tell initiators when so many percent of the capacity are allocated, or cannot be, from 1 to 99.
    pub threshold_percent: Option<u8>,
    /// A WRITE SAME of no blocks means all to the end of the disk; else it is refused.
    pub write_same_to_end: bool,
}

/// The longest transfer of one command: as long as one buffer may be.
pub(crate) const TRANSFER_BYTES_MAX: u32 = 32 << 20;
const _: () = assert!(TRANSFER_BYTES_MAX as usize == block::BUFFER_BYTES_MAX);

/// The longest WRITE SAME, whatever the length of a block: seconds, even where each block must really be written.
const WRITE_SAME_BYTES_MAX: u64 = 2 << 30;

impl LogicalUnit {
    /// A unit over `backend`, which tells the rest: capacity, block length, provisioning, cache.
    ///
    /// # Errors
    /// `Unsupported`: a disk cannot have logical blocks of the backend's length, or not the physical ones, or not this
    /// threshold.
    pub fn new(
        description: UnitDescription,
        backend: Arc<dyn Backend>,
        memory: &Memory,
    ) -> Result<Self, BlockError> {
        let properties = backend.properties();
        let block = BlockLength::from_bytes(properties.block_bytes)
            .ok_or_else(|| BlockError::new(BlockErrorKind::Unsupported, "logical blocks of this length"))?;
        let physical_exponent =
            PhysicalExponent::from_bytes(description.physical_bytes.unwrap_or(block.bytes()), block)
                .ok_or_else(|| {
                    BlockError::new(BlockErrorKind::Unsupported, "physical blocks of this length")
                })?;
        let disk = Disk {
            identity: description.identity,
            target_port: Some(description.target_port),
            other_ports: description.other_ports,
            block,
            physical_exponent,
            blocks: Blocks(properties.blocks),
            removable: description.removable,
            // Not every backend can be opened for reading only.
            read_only: properties.read_only || description.read_only,
            write_cache: properties.volatile_cache,
            provisioning: provisioning(&properties, description.threshold_percent)?,
            limits: scsi::Limits {
                transfer_bytes_max: TRANSFER_BYTES_MAX,
                write_same_blocks_max: Blocks(WRITE_SAME_BYTES_MAX / u64::from(block.bytes())),
                write_same_to_end: description.write_same_to_end,
                ..scsi::Limits::default()
            },
        };
        let ports = disk.target_port.iter().chain(&disk.other_ports);
        let ports = ports.map(|port| RelativePort(port.relative_identifier));
        let shared = RefCell::new(nexus::target::LogicalUnit::new().with_target_ports(ports));
        let (number, kept) = (description.number, None);
        let through_other_ports = disk.through_other_ports().collect();
        let (working, unheard) = (memory.working.clone(), Permits::new(UNHEARD_MAX));
        let forced = Rc::default();
        Ok(Self { number, disk, through_other_ports, backend, shared, kept, working, forced, unheard })
    }

    /// The same unit, whose persistent reservations can survive a loss of power; `last` did. Before its first session.
    #[must_use]
    pub fn keep_reservations(self, kept: Rc<dyn Persist>, last: PersistedReservations) -> Self {
        let shared = RefCell::new(self.shared.into_inner().restore(last));
        Self { shared, kept: Some(kept), ..self }
    }

    /// The ports of the nexus that a session of this CHAP user has with this unit.
    pub(crate) fn ports_of(&self, identity: &session::parameters::Identity, user: Option<&str>) -> Ports {
        let ports = self.disk.target_port.iter().chain(&self.disk.other_ports);
        let mut through = ports.filter(|port| port.portal_group_tag == identity.portal_group_tag);
        let target = through.next().map_or(RelativePort::ONLY, |port| RelativePort(port.relative_identifier));
        let initiator = InitiatorPort::new(&identity.initiator_name, identity.isid).of_user(user);
        Ports { initiator, target }
    }

    /// The disk as it is seen through a portal group.
    pub(crate) fn seen_through(&self, portal_group_tag: u16) -> &Disk {
        let is_port = |port: &TargetPort| port.portal_group_tag == portal_group_tag;
        let mut others = self.through_other_ports.iter();
        others.find(|disk| disk.target_port.as_ref().is_some_and(is_port)).unwrap_or(&self.disk)
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn lun(&self) -> Lun {
        Lun::from_index(self.number)
    }

    /// How many bytes these blocks are.
    pub(crate) fn bytes_of(&self, extent: Extent) -> u64 {
        self.disk.block.times(extent.blocks)
    }

    /// Where these blocks begin on the backend.
    pub(crate) fn offset_of(&self, lba: Lba) -> u64 {
        self.disk.block.times(Blocks(lba.0))
    }

    /// The blocks of whole-block bytes of the backend.
    pub(crate) fn extent_of(&self, offset: u64, bytes: u64) -> Extent {
        Extent { lba: self.lba_at(offset), blocks: Blocks(bytes / u64::from(self.disk.block.bytes())) }
    }

    /// The block in which a byte of the backend is.
    pub(crate) fn lba_at(&self, offset: u64) -> Lba {
        Lba(offset / u64::from(self.disk.block.bytes()))
    }

    /// What is answered when reading from `offset` failed.
    pub(crate) fn read_failure(&self, offset: u64, error: &BlockError) -> Outcome {
        tracing::warn!(lun = self.number, offset, error = %with_source(error), "read failed");
        match error.kind() {
            BlockErrorKind::Medium => Outcome::read_failed(self.lba_at(offset)),
            _ => Outcome::internal_failure(),
        }
    }

    /// What is answered when writing, zeroing or unmapping from `offset` failed.
    pub(crate) fn write_failure(&self, offset: u64, error: &BlockError) -> Outcome {
        tracing::warn!(lun = self.number, offset, error = %with_source(error), "write failed");
        match error.kind() {
            BlockErrorKind::Medium => Outcome::write_failed(self.lba_at(offset)),
            BlockErrorKind::NoSpace => Outcome::out_of_space(),
            BlockErrorKind::ReadOnly => Outcome::write_protected(),
            _ => Outcome::internal_failure(),
        }
    }
}

/// An error and what caused it, in one line.
pub(crate) fn with_source(error: &BlockError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn provisioning(properties: &Properties, threshold_percent: Option<u8>) -> Result<Provisioning, BlockError> {
    let blocks = Blocks(properties.blocks);
    let threshold = threshold_percent.map(|percent| Threshold::from_used_percent(percent, blocks));
    let impossible = |what| Err(BlockError::new(BlockErrorKind::Unsupported, what));
    match (properties.thin, threshold) {
        (_, Some(None)) => impossible("a threshold of this percentage"),
        (None, Some(_)) => impossible("a threshold of a disk that is not thin"),
        (None, None) => Ok(Provisioning::Full),
        (Some(thin), threshold) => Ok(Provisioning::Thin {
            zeroes: thin.reads_zero,
            granularity: Blocks(u64::from(thin.granularity_bytes / properties.block_bytes).max(1)),
            threshold: threshold.flatten(),
        }),
    }
}
