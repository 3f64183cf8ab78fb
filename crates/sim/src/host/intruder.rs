//! Somebody who claims a host's name and ISID, and is another CHAP user or cannot prove to be any.
//!
//! Names are only claimed: who does not know a secret is refused, and another user gets neither the host's sessions nor
//! its registrations. The intruder knows all that is no secret: names, session handles, reservation keys.

use super::network::SimulatedNetwork;
use super::runtime::Runtime;
use super::{Host, NAME_PREFIX, Phase};
use crate::checker::{Change, Port};
use crate::network::Stream;
use crate::portal::PortalId;
use crate::random::Random;
use crate::reached::Way;
use crate::unit::TargetIndex;
use crate::users::Users;
use client::{Host as _, PathReport};
use framing::{read_pdu, write_pdu};
use futures_util::future::{Either, select};
use pdu::{Cid, CmdSn, Duration, Itt, LoginStatus, Lun, ScsiCommand, ScsiResponse, StatSn, TaskAttribute};
use scsi::client as command;
use session::login::DATA_SEGMENT_BYTES_MAX;
use session::login::initiator::{Config, Failure, Joining, Login, Progress};
use session::parameters::{Established, LaneRole, Offer, SplitLanes};
use session::seam::{Payload, Transmit};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

/// It tries so often, with pauses between.
const ATTEMPTS_MAX: u32 = 32;
const PAUSE_MS: (u64, u64) = (100, 8_000);

/// An attempt that takes longer is given up: its connection may be dead.
const PATIENCE: Duration = Duration::from_secs(40);

/// The most unit attentions that a nexus is told of before it hears anything else.
const COMMANDS_MAX: u32 = 8;

const GOOD: u8 = 0x00;
const RESERVATION_CONFLICT: u8 = 0x18;

/// What it tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// To log in as the host's user, without the secret.
    WrongSecret,
    /// To log in under the host's name and ISID, as a user of its own.
    Claim,
    /// The same, to join the host's session.
    Join,
}

/// An attacker that knows the hosts' names and ISIDs, but not their secrets.
pub(super) struct Intruder {
    pub hosts: Vec<Rc<Host>>,
    pub runtime: Runtime,
    pub network: Arc<SimulatedNetwork>,
    pub random: Random,
}

/// Whom it attacks.
struct Victim {
    host: Rc<Host>,
    target: TargetIndex,
    path: PathReport,
    portal: PortalId,
    offer: Offer,
}

impl Intruder {
    /// Tries as long as the hosts work.
    pub async fn live(mut self) {
        for _ in 0..ATTEMPTS_MAX {
            let pause = Duration::from_millis(self.random.between(PAUSE_MS.0, PAUSE_MS.1));
            self.runtime.sleep_until(self.runtime.now() + pause).await;
            let Some(victim) = self.victim() else { continue };
            if victim.host.ledger.borrow().phase != Phase::Work {
                return;
            }
            let attempt = *self.random.choose(&[Attempt::WrongSecret, Attempt::Claim, Attempt::Join]);
            let late = self.runtime.sleep_until(self.runtime.now() + PATIENCE);
            let trial = pin!(self.attempt(&victim, attempt));
            if let Either::Left((Err(problem), _)) = select(trial, late).await {
                victim.host.violate(&format!("{attempt:?} by an intruder: {problem}"));
            }
        }
    }

    /// Any session of any host.
    fn victim(&mut self) -> Option<Victim> {
        let host = Rc::clone(self.random.choose(&self.hosts));
        let reports = host.reports();
        let report = reports.get(self.random.index(reports.len()))?;
        let target = TargetIndex::from_name(&report.target_name)?;
        let path = report.paths.get(self.random.index(report.paths.len()))?.clone();
        let portal = PortalId::at(&path.portal.host)?;
        let offer =
            Offer { error_recovery_level: 0, split: SplitLanes::None, ..host.plan.paths.first()?.offer };
        Some(Victim { host, target, path, portal, offer })
    }

    async fn attempt(&self, victim: &Victim, attempt: Attempt) -> Result<(), String> {
        let Some(config) = self.config(victim, attempt) else { return Ok(()) };
        let mut wire = self.network.stream(victim.portal);
        let Some(answer) = log_in(&mut wire, config).await else { return Ok(()) };
        let count = |way| victim.host.ledger.borrow_mut().tally.reached.count(way);
        match (attempt, answer) {
            (Attempt::WrongSecret, Err(Failure::Refused(LoginStatus::AuthenticationFailure))) => {
                count(Way::WrongSecretRefused);
            }
            (Attempt::Join, Err(Failure::Refused(LoginStatus::AuthorizationFailure))) => {
                count(Way::JoinRefused);
            }
            (Attempt::WrongSecret | Attempt::Join, Ok(_)) => return Err("it is let in".into()),
            (Attempt::Claim, Ok(established)) => {
                count(Way::NameClaimed);
                return clear_registrations(&mut wire, &established, victim).await;
            }
            // There is no room, or no such session any more.
            (_, Err(_)) => {}
        }
        Ok(())
    }

    fn config(&self, victim: &Victim, attempt: Attempt) -> Option<Config> {
        let host = victim.host.index;
        let joining = match (attempt, victim.path.tsih, victim.path.parameters) {
            (Attempt::Join, Some(tsih), Some(session)) => {
                Some(Joining { tsih, session, replaced_exp_stat_sn: StatSn(0) })
            }
            (Attempt::Join, ..) => return None,
            _ => None,
        };
        let credentials = match attempt {
            Attempt::WrongSecret => Users::impostor(host),
            Attempt::Claim | Attempt::Join => Users::intruder(),
        };
        let mut entropy = [0; session::chap::ENTROPY_BYTES];
        self.runtime.entropy(&mut entropy).ok()?;
        Some(Config {
            initiator_name: format!("{NAME_PREFIX}{host}"),
            initiator_alias: None,
            target_name: Some(victim.target.name()),
            isid: victim.path.isid,
            cid: Cid(0),
            joining,
            role: LaneRole::Whole,
            portal_group_tag: None,
            cmd_sn: CmdSn(1),
            offer: victim.offer,
            credentials: Some(credentials?),
            entropy,
        })
    }
}

/// `None` if the connection breaks first.
async fn log_in(wire: &mut Stream, config: Config) -> Option<Result<Established, Failure>> {
    let mut login = Login::new(config);
    let mut request = login.start();
    loop {
        write_pdu(wire, &request).await.ok()?;
        let (header, data) = read_pdu(wire, DATA_SEGMENT_BYTES_MAX).await.ok()?;
        match login.receive(&header, &data) {
            Progress::Send(next) => request = next,
            Progress::Established(established) => return Some(Ok(established)),
            Progress::Refused(failure) => return Some(Err(failure)),
            Progress::Redirected { .. } => return None,
        }
    }
}

/// Asks to clear all registrations, with the host's key, which only a registered nexus may (SPC-4 §5.12.11.2.5).
async fn clear_registrations(
    wire: &mut Stream,
    established: &Established,
    victim: &Victim,
) -> Result<(), String> {
    let Established { session, connection, .. } = established;
    // What it sends, it sends by hand.
    if connection.header_digest || connection.data_digest || !session.immediate_data {
        return Ok(());
    }
    let unit = victim.host.units.iter().find(|unit| unit.target == victim.target);
    let lun = Lun::from_index(unit.map_or(0, |unit| unit.number));
    let port = Port::of(victim.host.index, 0);
    let (cdb, list) = command::persistent_reserve_out(&Change::Clear.request(port));
    let list_bytes = u32::try_from(list.len()).unwrap_or(u32::MAX);
    for number in 0..COMMANDS_MAX {
        let header = ScsiCommand {
            lun,
            itt: Itt(number),
            immediate: false,
            final_: true,
            read: false,
            write: true,
            attribute: TaskAttribute::Simple,
            expected_data_bytes: list_bytes,
            bidirectional_read_bytes: None,
            cmd_sn: established.cmd_sn.plus(number),
            exp_stat_sn: established.stat_sn.plus(number),
            cdb: cdb.into(),
            data_segment_bytes: list_bytes,
        }
        .emit();
        let request = Transmit { header, payload: Payload::Inline(list.clone()) };
        let answer = async {
            write_pdu(wire, &request).await.ok()?;
            let (header, _) = read_pdu(wire, connection.receive_segment_bytes_max).await.ok()?;
            ScsiResponse::parse(&header).ok()
        };
        match answer.await.map(|response| response.status) {
            Some(GOOD) => return Err("it clears the host's registrations".into()),
            Some(RESERVATION_CONFLICT) => {
                victim.host.ledger.borrow_mut().tally.reached.count(Way::RegistrationsDefended);
                return Ok(());
            }
            // CHECK CONDITION: a unit attention.
            Some(_) => {}
            None => return Ok(()),
        }
    }
    Ok(())
}
