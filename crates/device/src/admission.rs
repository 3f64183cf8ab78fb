//! The end of a login: its place in a session, and the session if it is a new one.

use crate::environment::Environment;
use crate::read::retained_bytes_max;
use crate::session_driver::{SessionDriver, SessionParts};
use crate::target_node::TargetNode;
use block::Reservation;
use futures_util::future::{Either, select};
use pdu::{CmdSn, Duration, Instant, LoginStatus, Tsih};
use session::parameters::{SessionParameters, TargetLimits};
use session::target::{Admission, Applicant, Session};
use std::future::Future;
use std::net::IpAddr;
use std::rc::Rc;

/// What a login brings to the session that it leads.
#[derive(Clone, Copy, Debug)]
pub struct Leading {
    /// As the login negotiated them.
    pub parameters: SessionParameters,
    /// The CmdSN of the session's first command.
    pub first: CmdSn,
    /// Where it comes from.
    pub peer: IpAddr,
}

/// How long a login waits for the writes of the session that it replaces to come to rest. A disk that takes longer
/// is broken; the initiator tries again.
const REINSTATEMENT_TIME: Duration = Duration::from_secs(20);

/// Immediate commands that one session may have in execution. They bypass the window, so each has its own share of
/// the memory; what initiators send so (TEST UNIT READY, task management) comes one at a time.
const IMMEDIATE_COMMANDS_MAX: u32 = 4;

/// The smallest window that a session is granted: with less, a long path is not worth its login.
const WINDOW_COMMANDS_MIN: u32 = 4;

/// A session takes no more than this part of the memory that is not yet set aside, so that later ones get theirs.
const SHARE_DIVISOR: usize = 8;

impl TargetNode {
    /// Finds the place of a login that lacks nothing else: a session that it leads, a session that it joins, or, once
    /// the old one has ended and its writes have come to rest, a session that takes the place of one.
    ///
    /// Then answer with [`SessionDriver::place_for`], and call [`SessionDriver::add_lane`] when the answer has left, or
    /// [`SessionDriver::forget_applicant`] if it cannot.
    ///
    /// # Errors
    /// The status with which the login must be refused.
    pub async fn admit(
        self: &Rc<Self>,
        applicant: &Applicant,
        leading: Leading,
    ) -> Result<Rc<SessionDriver>, LoginStatus> {
        let deadline = self.environment.now() + REINSTATEMENT_TIME;
        loop {
            if self.is_closed() {
                return Err(LoginStatus::ServiceUnavailable);
            }
            let admission = self.registry.borrow_mut().admit(applicant)?;
            match admission {
                Admission::New(tsih) => return self.lead(applicant, tsih, leading),
                Admission::Join(tsih) => {
                    return self.session_with(tsih).ok_or(LoginStatus::SessionDoesNotExist);
                }
                Admission::Reinstate(tsih) => {
                    let old = self.session_with(tsih).ok_or(LoginStatus::TargetError)?;
                    let ended = self.session_end();
                    old.close();
                    self.wait_until(deadline, ended).await?;
                }
            }
        }
    }

    /// Waits for `event`, but not for ever.
    async fn wait_until(
        &self,
        deadline: Instant,
        event: impl Future<Output = ()> + Unpin,
    ) -> Result<(), LoginStatus> {
        match select(event, self.environment.host.sleep_until(deadline)).await {
            Either::Left(_) => Ok(()),
            Either::Right(_) => Err(LoginStatus::ServiceUnavailable),
        }
    }

    /// Makes the session that this login leads.
    fn lead(
        self: &Rc<Self>,
        applicant: &Applicant,
        tsih: Tsih,
        leading: Leading,
    ) -> Result<Rc<SessionDriver>, LoginStatus> {
        let Leading { parameters, first, peer } = leading;
        if self.sessions_from(peer) >= self.environment.limits.sessions_per_address.into() {
            self.registry.borrow_mut().ended(tsih);
            return Err(LoginStatus::OutOfResources);
        }
        let Some((window_commands, reserved)) = reserve_window(&self.environment, &parameters) else {
            self.registry.borrow_mut().ended(tsih);
            return Err(LoginStatus::OutOfResources);
        };
        let bounds = &self.environment.limits;
        let limits = TargetLimits {
            window_commands,
            immediate_commands_max: IMMEDIATE_COMMANDS_MAX,
            transfer_bytes_max: crate::logical_unit::TRANSFER_BYTES_MAX,
            retained_bytes_max: retained_bytes_max(self.environment.memory.transfers.budget_bytes()),
            ping_after: bounds.ping_after,
            ping_timeout: bounds.ping_timeout,
        };
        let parts = SessionParts {
            tsih,
            identity: applicant.identity.clone(),
            user: applicant.user.clone(),
            parameters,
            session: Session::new(parameters, limits, first),
            reserved,
            peer,
        };
        let driver = SessionDriver::new(self, parts);
        self.run_session(&driver);
        Ok(driver)
    }
}

/// Sets memory aside for all the data that may come unasked: as many commands' as the window admits. It is halved
/// until it fits; `None` if not even the smallest does.
fn reserve_window(
    environment: &Environment,
    parameters: &SessionParameters,
) -> Option<(u32, Option<Reservation>)> {
    let mut window = environment.limits.window_commands.max(WINDOW_COMMANDS_MIN);
    if !parameters.immediate_data && parameters.initial_r2t {
        return Some((window, None));
    }
    let slab = &environment.memory.transfers;
    let share_bytes = slab.unreserved_bytes() / SHARE_DIVISOR;
    let burst_bytes = parameters.first_burst_bytes as usize;
    loop {
        let buffers = (window + IMMEDIATE_COMMANDS_MAX) as usize;
        let smallest = window == WINDOW_COMMANDS_MIN;
        let affordable = smallest || burst_bytes.next_power_of_two().saturating_mul(buffers) <= share_bytes;
        if affordable && let Some(reservation) = slab.reserve(buffers, burst_bytes) {
            return Some((window, Some(reservation)));
        }
        if smallest {
            return None;
        }
        window = (window / 2).max(WINDOW_COMMANDS_MIN);
    }
}
