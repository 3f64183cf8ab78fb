//! The target's end: commands from the arrival of their headers to the medium's answer.

use super::connection::Connections;
use super::holes::Holes;
use super::samples::{AtTarget, End, SessionSamples};
use super::{COMMANDS_MAX, lock};
use crate::monotonic_ns;
use framing::ConnectionObserver;
use pdu::{CmdSn, Header, InitiatorPdu, Tsih};
use session::parameters::Established;
use session::target::{Command, TaskId};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use transport::Observer;

#[derive(Debug, Default)]
pub(super) struct TargetSide {
    /// Connections keep the state that was present at their login.
    present: Mutex<Arc<Mutex<State>>>,
}

#[derive(Debug, Default)]
struct State {
    /// The arrivals of commands that have not begun.
    arrivals: HashMap<(u16, u32), u64>,
    open: HashMap<(u16, TaskId), (u32, AtTarget)>,
    /// By TSIH and CmdSN.
    carried_out: HashMap<(u16, u32), AtTarget>,
    holes: BTreeMap<u16, Holes>,
    connections: Connections,
}

#[derive(Debug)]
struct Connection {
    state: Arc<Mutex<State>>,
    place: usize,
    session: u16,
}

impl TargetSide {
    fn present(&self) -> Arc<Mutex<State>> {
        Arc::clone(&lock(&self.present))
    }

    pub fn restart(&self) {
        *lock(&self.present) = Arc::default();
    }

    /// Adds the target's samples.
    pub fn join(&self, samples: &mut SessionSamples) {
        let present = self.present();
        let mut state = lock(&present);
        for command in &mut samples.commands {
            command.target = state.carried_out.remove(&(command.session, command.cmd_sn));
        }
        samples.connections.extend(state.connections.samples());
        samples.cmd_sn_holes = state.holes.values().map(|holes| holes.open.clone()).collect();
    }
}

impl Observer for TargetSide {
    fn connected(&self, socket: BorrowedFd<'_>, established: &Established) -> Box<dyn ConnectionObserver> {
        let present = self.present();
        let mut state = lock(&present);
        let session = established.tsih.0;
        let place = state.connections.add(End::Target, socket, established);
        // Only the first connection's CmdSN is meaningful.
        state.holes.entry(session).or_insert_with(|| Holes::new(established.cmd_sn));
        drop(state);
        Box::new(Connection { state: present, place, session })
    }
}

impl ConnectionObserver for Connection {
    fn header_received(&mut self, header: &Header) {
        let now_ns = monotonic_ns();
        let mut state = lock(&self.state);
        state.connections.received(self.place);
        let Ok(pdu) = InitiatorPdu::parse(header) else { return };
        let Some(cmd_sn) = pdu.place_in_order() else { return };
        let is_command = matches!(pdu, InitiatorPdu::ScsiCommand(_));
        if is_command && state.arrivals.len() < COMMANDS_MAX {
            state.arrivals.entry((self.session, cmd_sn.0)).or_insert(now_ns);
        }
        match state.holes.get_mut(&self.session) {
            Some(holes) if is_command => holes.arrived(now_ns, cmd_sn),
            Some(holes) => holes.other_arrived(now_ns, cmd_sn),
            None => {}
        }
    }

    fn data_received(&mut self) {}

    fn pulled(&mut self, _header: &Header) {}

    fn sent(&mut self, bytes: usize, pdus: u32) {
        lock(&self.state).connections.sent(self.place, monotonic_ns(), bytes, pdus);
    }

    fn blocked(&mut self) {
        lock(&self.state).connections.blocked(self.place, monotonic_ns());
    }
}

impl device::Observer for TargetSide {
    fn command_begins(&self, session: Tsih, command: &Command) {
        let Some(CmdSn(cmd_sn)) = command.cmd_sn else { return };
        let begun_ns = monotonic_ns();
        let present = self.present();
        let mut state = lock(&present);
        if let Some(holes) = state.holes.get_mut(&session.0) {
            holes.begun(begun_ns, CmdSn(cmd_sn));
        }
        let arrived_ns = state.arrivals.remove(&(session.0, cmd_sn)).unwrap_or(begun_ns);
        if state.open.len() < COMMANDS_MAX {
            let order_wait = command.order_wait.unwrap_or_default();
            let order_wait_ns = pdu::nanoseconds(order_wait);
            let begun = AtTarget { arrived_ns, begun_ns, order_wait_ns, started_ns: None, carried_out_ns: 0 };
            state.open.insert((session.0, command.task), (cmd_sn, begun));
        }
    }

    fn command_starts(&self, session: Tsih, task: TaskId) {
        let now_ns = monotonic_ns();
        if let Some((_, command)) = lock(&self.present()).open.get_mut(&(session.0, task)) {
            command.started_ns = Some(now_ns);
        }
    }

    fn command_ends(&self, session: Tsih, task: TaskId) {
        let carried_out_ns = monotonic_ns();
        let present = self.present();
        let mut state = lock(&present);
        if let Some((cmd_sn, command)) = state.open.remove(&(session.0, task))
            && state.carried_out.len() < COMMANDS_MAX
        {
            state.carried_out.insert((session.0, cmd_sn), AtTarget { carried_out_ns, ..command });
        }
    }
}
