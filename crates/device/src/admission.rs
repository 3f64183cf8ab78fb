//! The end of a login: its place in a session, and the session if it is a new one.

use crate::read_memory::retained_bytes_max;
use crate::session_driver::{SessionDriver, SessionParts};
use crate::target_node::TargetNode;
use crate::window_share::{IMMEDIATE_COMMANDS_MAX, reserve_window};
use futures_util::future::{Either, select};
use pdu::{CmdSn, Duration, Instant, LoginStatus, Tsih};
use session::parameters::{SessionParameters, TargetLimits};
use session::target::{Admission, Applicant, Session};
use std::future::Future;
use std::net::IpAddr;
use std::rc::Rc;

/// The properties of a session that a login leads.
#[derive(Clone, Copy, Debug)]
pub struct Leading {
    /// The negotiated parameters.
    pub parameters: SessionParameters,
    /// The CmdSN of the session's first command.
    pub first: CmdSn,
    /// The initiator's address.
    pub peer: IpAddr,
}

/// The time that a login waits for the writes of the session that it replaces. A disk that takes longer is broken; the
/// initiator tries again.
const REINSTATEMENT_TIME: Duration = Duration::from_secs(20);

impl TargetNode {
    /// Finds the place of a login that lacks nothing else: a session that it leads, a session that it joins, or a
    /// session that it reinstates, once the old one has ended and its writes have come to rest.
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
                Admission::Join(tsih) => return self.join(applicant, tsih, leading.peer),
                Admission::Reinstate(tsih) => {
                    let old = self.session_with(tsih).ok_or(LoginStatus::TargetError)?;
                    let ended = self.session_end();
                    old.close();
                    self.wait_until(deadline, ended).await?;
                }
            }
        }
    }

    /// Waits for `event`, up to a limit.
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

    /// The session that this login joins. Its units were chosen for the address of its leading connection; another
    /// connection must not reach a unit from an address that may not use it.
    fn join(
        &self,
        applicant: &Applicant,
        tsih: Tsih,
        peer: IpAddr,
    ) -> Result<Rc<SessionDriver>, LoginStatus> {
        let session = self.session_with(tsih).ok_or(LoginStatus::SessionDoesNotExist)?;
        if !session.may_be_used_from(peer) {
            self.lane_closed(tsih, applicant.cid);
            return Err(LoginStatus::AuthorizationFailure);
        }
        Ok(session)
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
        let slab = &self.environment.memory.transfers;
        let window_max = self.environment.limits.window_commands;
        let Some((window_commands, reserved)) = reserve_window(slab, window_max, &parameters) else {
            self.registry.borrow_mut().ended(tsih);
            return Err(LoginStatus::OutOfResources);
        };
        let bounds = &self.environment.limits;
        let limits = TargetLimits {
            window_commands,
            immediate_commands_max: IMMEDIATE_COMMANDS_MAX,
            transfer_bytes_max: crate::logical_unit::TRANSFER_BYTES_MAX,
            retained_bytes_max: retained_bytes_max(&self.environment.memory),
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
