//! Asks a logical unit for its description over one path, before that path is trusted.

use crate::driver::{Outcome, Plan, Shared};
use crate::path_acceptance::UnitView;
use crate::path_id::PathId;
use crate::{Error, TargetError, Transfer, Unit, memory};
use futures_util::future::{self, Either};
use pdu::{Lun, TaskAttribute};
use scsi::client::{
    self, AsymmetricAccessState, BlockLimits, BlockProvisioning, Capacity, CdbBytes, DeviceIdentification,
    ModeParameters, SenseData, StandardInquiry, page,
};
use std::pin::pin;

/// Room for every page that is requested here.
const PAGE_BYTES: u16 = 4096;
/// MODE SENSE (6) has one byte for the length.
const MODE_BYTES: u8 = 192;
/// The whole answer of READ CAPACITY (16).
const CAPACITY_BYTES: u16 = 32;
/// Room for 8191 units.
const LUN_LIST_BYTES: u16 = 0xfff8;

/// The path and the unit of the questions.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    pub shared: &'a Shared,
    pub path: PathId,
    pub lun: Lun,
    attribute: TaskAttribute,
}

impl<'a> Probe<'a> {
    pub fn new(shared: &'a Shared, path: PathId, lun: Lun) -> Self {
        Self { shared, path, lun, attribute: TaskAttribute::Simple }
    }

    /// The same for commands that the device executes in the order in which they were asked (SAM-5 §8.6.3), although
    /// none waits here for the answer to the one before it.
    pub fn in_order(self) -> Self {
        Self { attribute: TaskAttribute::Ordered, ..self }
    }
}

impl Probe<'_> {
    /// Asks whether the unit is ready, and at the same time everything else. A unit that was not ready, or said that it
    /// had changed, is asked again when it is ready.
    ///
    /// The number is that of [`changes_told`](crate::driver::Driver::changes_told) before the answers: they are worth
    /// nothing if it is another by now.
    pub async fn at_once<T, F>(&self, questions: impl Fn() -> F) -> (u64, Result<T, Error>)
    where
        F: Future<Output = Result<T, Error>>,
    {
        let told = self.changes_told();
        let (ready, answers) = future::join(self.ready(), questions()).await;
        let told_meanwhile = self.changes_told();
        match ready {
            Err(error) => (told_meanwhile, Err(error)),
            Ok(()) if told_meanwhile == told => (told, answers),
            Ok(()) => (told_meanwhile, questions().await),
        }
    }

    /// Takes in unit attentions, and waits for a unit that is becoming ready.
    ///
    /// Every new I_T nexus has an attention. The first TEST UNIT READY takes it in, so that the second one tells
    /// whether the unit is ready without a further round trip.
    async fn ready(&self) -> Result<(), Error> {
        let test = || self.execute("TEST UNIT READY", client::test_unit_ready(), 0);
        let (first, second) = (pin!(test()), pin!(test()));
        let told = match future::select(first, second).await {
            Either::Left((Err(error), second)) => {
                drop(second.await);
                Err(error)
            }
            Either::Left((Ok(_), second)) => second.await,
            Either::Right((told, _)) => told,
        };
        told.map(drop)
    }

    fn changes_told(&self) -> u64 {
        self.shared.read(|driver| driver.changes_told(self.path))
    }

    /// A whole description; what a device does not know how to tell has its default.
    pub async fn unit(&self) -> Result<Unit, Error> {
        let limits = client::inquiry_page(page::BLOCK_LIMITS, PAGE_BYTES);
        let provisioning = client::inquiry_page(page::LOGICAL_BLOCK_PROVISIONING, PAGE_BYTES);
        let mode = client::mode_sense_caching(MODE_BYTES);
        let needed = future::join3(self.inquiry(), self.capacity(), self.identification());
        let optional = future::join3(
            self.optional("INQUIRY of block limits", limits),
            self.optional("INQUIRY of block provisioning", provisioning),
            self.execute("MODE SENSE", mode, MODE_BYTES.into()),
        );
        let (needed, (limits, provisioning, mode)) = future::join(needed, optional).await;
        let (inquiry, (capacity, long_addresses), identification) = all_of(needed)?;
        let (limits, provisioning, mode) = (limits?, provisioning?, unless_refused(mode)?);
        Ok(Unit {
            lun: self.lun,
            inquiry,
            designator: identification.logical_unit().cloned(),
            capacity,
            long_addresses,
            limits: limits.and_then(|bytes| BlockLimits::parse(&bytes)).unwrap_or_default(),
            provisioning: provisioning.and_then(|bytes| BlockProvisioning::parse(&bytes)).unwrap_or_default(),
            mode: mode.and_then(|bytes| ModeParameters::parse(&bytes)).unwrap_or_default(),
        })
    }

    /// The properties that a path must show, but for its reservation.
    pub async fn view(&self) -> Result<UnitView, Error> {
        let answers = future::join3(self.inquiry(), self.capacity(), self.identification()).await;
        let (inquiry, (capacity, _), identification) = all_of(answers)?;
        let access = if inquiry.asymmetric_access { self.access(&identification).await? } else { None };
        Ok(UnitView {
            designator: identification.logical_unit().cloned(),
            blocks: capacity.blocks,
            block_bytes: capacity.block_bytes,
            access,
            reserved: None,
        })
    }

    /// The units that the target shows to this initiator.
    pub async fn luns(&self) -> Result<Vec<Lun>, Error> {
        let cdb = client::report_luns(LUN_LIST_BYTES.into());
        let bytes = self.execute("REPORT LUNS", cdb, LUN_LIST_BYTES).await?;
        let list =
            client::lun_list(&bytes).ok_or_else(|| self.nonsense("REPORT LUNS", "no list of units"))?;
        Ok(list.into_iter().map(Lun).collect())
    }

    async fn inquiry(&self) -> Result<StandardInquiry, Error> {
        let bytes = self.execute("INQUIRY", client::inquiry(PAGE_BYTES), PAGE_BYTES).await?;
        let inquiry =
            StandardInquiry::parse(&bytes).ok_or_else(|| self.nonsense("INQUIRY", "less than 36 bytes"))?;
        if inquiry.is_disk() {
            return Ok(inquiry);
        }
        let StandardInquiry { qualifier, device_type, .. } = inquiry;
        Err(TargetError::NotADisk { lun: self.lun, qualifier, device_type }.into())
    }

    /// The capacity by READ CAPACITY (16), or (10) if the unit lacks it; `true` for (16).
    async fn capacity(&self) -> Result<(Capacity, bool), Error> {
        let cdb = client::read_capacity_16(CAPACITY_BYTES.into());
        let long = unless_refused(self.execute("READ CAPACITY (16)", cdb, CAPACITY_BYTES).await)?;
        let (capacity, is_long) = match long {
            Some(bytes) => (Capacity::parse_16(&bytes), true),
            None => {
                let bytes = self.execute("READ CAPACITY (10)", client::read_capacity_10(), 8).await?;
                (Capacity::parse_10(&bytes), false)
            }
        };
        let sound = |capacity: &Capacity| {
            let block_bytes = u64::from(capacity.block_bytes);
            (512..=65536).contains(&block_bytes)
                && block_bytes.is_power_of_two()
                && capacity.blocks.checked_mul(block_bytes).is_some()
        };
        let capacity = capacity.filter(sound).ok_or_else(|| {
            self.nonsense("READ CAPACITY", "a capacity or block length that no disk here can have")
        })?;
        Ok((capacity, is_long))
    }

    async fn identification(&self) -> Result<DeviceIdentification, Error> {
        let cdb = client::inquiry_page(page::DEVICE_IDENTIFICATION, PAGE_BYTES);
        let bytes = self.optional("INQUIRY of device identification", cdb).await?;
        Ok(bytes.and_then(|bytes| DeviceIdentification::parse(&bytes)).unwrap_or_default())
    }

    /// The access state of this path to the unit, if the target reports it for the path's port group.
    async fn access(
        &self,
        identification: &DeviceIdentification,
    ) -> Result<Option<AsymmetricAccessState>, Error> {
        let Some(group) = identification.target_port_group() else { return Ok(None) };
        let cdb = client::report_target_port_groups(PAGE_BYTES.into());
        let bytes = self.optional("REPORT TARGET PORT GROUPS", cdb).await?;
        let groups = bytes.and_then(|bytes| client::target_port_groups(&bytes)).unwrap_or_default();
        Ok(groups.into_iter().find(|report| report.group == group).map(|report| report.state))
    }

    pub(crate) async fn optional(
        &self,
        command: &'static str,
        cdb: CdbBytes,
    ) -> Result<Option<Vec<u8>>, Error> {
        unless_refused(self.execute(command, cdb, PAGE_BYTES).await)
    }

    pub(crate) async fn execute(
        &self,
        command: &'static str,
        cdb: CdbBytes,
        bytes: u16,
    ) -> Result<Vec<u8>, Error> {
        let data = match bytes {
            0 => Transfer::None,
            _ => Transfer::In(memory::allocate(&self.shared.pages, bytes.into())?),
        };
        let outcome = self.carry_out(Plan::inquire(self.lun, command, cdb, data, Some(self.path))).await;
        let arrived = outcome.result? as usize;
        Ok(outcome.buffer.and_then(|buffer| buffer.get(..arrived).map(<[u8]>::to_vec)).unwrap_or_default())
    }

    pub(crate) async fn carry_out(&self, plan: Plan) -> Outcome {
        self.shared.execute(Plan { attribute: self.attribute, ..plan }).await
    }

    fn nonsense(&self, command: &'static str, problem: &'static str) -> Error {
        TargetError::Nonsense { command, lun: self.lun, problem }.into()
    }
}

/// The answers, or the first error among them.
fn all_of<A, B, C, E>(answers: (Result<A, E>, Result<B, E>, Result<C, E>)) -> Result<(A, B, C), E> {
    Ok((answers.0?, answers.1?, answers.2?))
}

/// `None` where the device does not know what was asked for, as it need not. Some refuse without sense data.
pub(crate) fn unless_refused<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.sense().is_some_and(SenseData::is_unsupported) => Ok(None),
        Err(Error::Target(TargetError::Status { status: Some(CHECK_CONDITION), .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The status that normally carries sense data.
const CHECK_CONDITION: u8 = scsi::Status::CheckCondition.code();
