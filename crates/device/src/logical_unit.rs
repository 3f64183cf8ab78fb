//! A logical unit: its backend, its description, and the state that its sessions share.

use crate::forced::ForcedOperations;
use crate::memory::Memory;
use crate::permit::Permits;
use crate::reservation::Persist;
use crate::unit_state::{InitiatorPort, PersistedReservations, Ports, RelativePort, UnitState};
use block::{Backend, BlockError, BlockErrorKind, Properties, Slab};
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
    /// The same disk as its other ports show it.
    through_other_ports: Vec<Disk>,
    pub(crate) backend: Arc<dyn Backend>,
    /// Unit attentions, reservations and the task set, of all sessions.
    pub(crate) state: RefCell<UnitState>,
    /// The storage of its persistent reservations, if it has one.
    pub(crate) kept: Option<Rc<dyn Persist>>,
    /// The pool for commands that need memory besides their data, one piece at a time ([`Memory::working`]).
    pub(crate) working: Slab,
    /// Running forced operations.
    pub(crate) forced: Rc<ForcedOperations>,
    /// Permits to continue a command after its answer (IMMED).
    pub(crate) unheard: Rc<Permits>,
}

/// The most commands of one unit that continue after their answers. Few, because neither the command window nor the end
/// of their session bounds them.
const UNHEARD_MAX: usize = 4;

/// The description of a logical unit, besides its backend.
#[derive(Clone, Debug)]
pub struct UnitDescription {
    /// The logical unit number, from 0 to 16383.
    pub number: u16,
    /// Its identity: the same after a restart and over every path.
    pub identity: Identity,
    /// The port of sessions that came through none of the others.
    pub target_port: TargetPort,
    /// The other ports of the unit.
    pub other_ports: Vec<TargetPort>,
    /// Bytes of a physical block, if the unit reports them. They only affect the alignment of writes.
    pub physical_bytes: Option<u32>,
    /// The medium can be ejected and loaded. While it is ejected, nothing is read or written, and nothing is lost.
    pub removable: bool,
    /// Refuse every write, even if the backend would accept it.
    pub read_only: bool,
    /// Tell initiators when this percentage of the capacity, from 1 to 99, is allocated, or when the rest cannot be.
    pub threshold_percent: Option<u8>,
    /// A WRITE SAME of zero blocks runs to the end of the disk; otherwise it is refused.
    pub write_same_to_end: bool,
}

/// The longest transfer of one command: the longest buffer.
pub(crate) const TRANSFER_BYTES_MAX: u32 = 32 << 20;
const _: () = assert!(TRANSFER_BYTES_MAX as usize == block::BUFFER_BYTES_MAX);

/// The longest WRITE SAME, for any block length: seconds, even if each block must be written.
const WRITE_SAME_BYTES_MAX: u64 = 2 << 30;

impl LogicalUnit {
    /// A unit over `backend`, whose properties give its capacity, block length, provisioning and cache.
    ///
    /// # Errors
    /// `Unsupported`: the disk cannot have the backend's logical blocks, these physical blocks, or this threshold.
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
            // Some backends cannot be opened for reading only.
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
        let state = RefCell::new(UnitState::new().with_target_ports(ports));
        let (number, kept) = (description.number, None);
        let through_other_ports = disk.through_other_ports().collect();
        let (working, unheard) = (memory.working.clone(), Permits::new(UNHEARD_MAX));
        let forced = Rc::default();
        Ok(Self { number, disk, through_other_ports, backend, state, kept, working, forced, unheard })
    }

    /// The same unit with persistent reservations, which start as `last`. Call it before the first session.
    #[must_use]
    pub fn keep_reservations(self, kept: Rc<dyn Persist>, last: PersistedReservations) -> Self {
        let state = RefCell::new(self.state.into_inner().restore(last));
        Self { state, kept: Some(kept), ..self }
    }

    /// The same unit with a lower MAXIMUM TRANSFER LENGTH (block limits VPD page): longer commands are refused. At least
    /// one block is always allowed.
    #[must_use]
    pub fn limit_transfers(mut self, bytes_max: u32) -> Self {
        for disk in std::iter::once(&mut self.disk).chain(&mut self.through_other_ports) {
            let limit = &mut disk.limits.transfer_bytes_max;
            *limit = (*limit).min(bytes_max).max(disk.block.bytes());
        }
        self
    }

    /// The ports of the nexus between a session of this CHAP user and this unit.
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

    /// The logical unit number, as in [`UnitDescription::number`].
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn lun(&self) -> Lun {
        Lun::from_index(self.number)
    }

    /// The length of these blocks in bytes.
    pub(crate) fn bytes_of(&self, extent: Extent) -> u64 {
        self.disk.block.times(extent.blocks)
    }

    /// The offset of this block on the backend.
    pub(crate) fn offset_of(&self, lba: Lba) -> u64 {
        self.disk.block.times(Blocks(lba.0))
    }

    /// The blocks of this range of bytes, which must be whole blocks.
    pub(crate) fn extent_of(&self, offset: u64, bytes: u64) -> Extent {
        Extent { lba: self.lba_at(offset), blocks: Blocks(bytes / u64::from(self.disk.block.bytes())) }
    }

    /// The block that contains this byte of the backend.
    pub(crate) fn lba_at(&self, offset: u64) -> Lba {
        Lba(offset / u64::from(self.disk.block.bytes()))
    }

    /// The response to a failed read from `offset`.
    pub(crate) fn read_failure(&self, offset: u64, error: &BlockError) -> Outcome {
        tracing::warn!(lun = self.number, offset, error = %with_source(error), "read failed");
        match error.kind() {
            BlockErrorKind::Medium => Outcome::read_failed(self.lba_at(offset)),
            _ => Outcome::internal_failure(),
        }
    }

    /// The response to a failed write, zeroing or unmapping from `offset`.
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

/// An error and its cause, on one line.
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
