//! The initiator's end: commands from the assignment of their connection to their status.

use super::connection::Connections;
use super::samples::{CommandSample, End, SessionSamples};
use super::window::WindowWatch;
use super::{COMMANDS_MAX, lock};
use crate::monotonic_ns;
use crate::workload::Direction;
use framing::ConnectionObserver;
use pdu::{Header, InitiatorPdu, Itt, ScsiCommand, TargetPdu};
use session::parameters::Established;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use transport::Observer;

/// TSIH and task tag.
type TaskName = (u16, Itt);

#[derive(Debug, Default)]
pub(super) struct InitiatorSide {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<TaskName, CommandSample>,
    ended: Vec<CommandSample>,
    lost: u64,
    windows: BTreeMap<u16, WindowWatch>,
    connections: Connections,
}

/// The observer of one connection of the initiator.
#[derive(Debug)]
struct Connection {
    state: Arc<Mutex<State>>,
    place: usize,
    session: u16,
    cid: u16,
    /// PDUs that were pulled and have not left completely.
    pulled: VecDeque<Pulled>,
    /// A command whose last data segment is arriving, and its status, if that ends it.
    incoming: Option<(Itt, Option<u8>)>,
}

#[derive(Clone, Copy, Debug)]
enum Pulled {
    Command { itt: Itt, has_data: bool },
    DataOut(Itt),
    Other,
}

impl InitiatorSide {
    pub fn take(&self) -> SessionSamples {
        let mut state = lock(&self.state);
        SessionSamples {
            commands: std::mem::take(&mut state.ended),
            commands_lost: state.lost,
            commands_open: state.open.len() as u64,
            connections: state.connections.samples().collect(),
            window_closed: state.windows.values().map(|window| window.closed.clone()).collect(),
            cmd_sn_holes: Vec::new(),
        }
    }
}

impl Observer for InitiatorSide {
    fn connected(&self, socket: BorrowedFd<'_>, established: &Established) -> Box<dyn ConnectionObserver> {
        let mut state = lock(&self.state);
        let session = established.tsih.0;
        let place = state.connections.add(End::Initiator, socket, established);
        let window = || WindowWatch::new(monotonic_ns(), established.cmd_sn, established.window.max_cmd_sn);
        state.windows.entry(session).or_insert_with(window);
        Box::new(Connection {
            state: Arc::clone(&self.state),
            place,
            session,
            cid: established.cid.0,
            pulled: VecDeque::new(),
            incoming: None,
        })
    }
}

impl ConnectionObserver for Connection {
    fn pulled(&mut self, header: &Header) {
        let now_ns = monotonic_ns();
        let Ok(pdu) = InitiatorPdu::parse(header) else { return self.pulled.push_back(Pulled::Other) };
        let mut state = lock(&self.state);
        if let (Some(cmd_sn), Some(window)) = (pdu.place_in_order(), state.windows.get_mut(&self.session)) {
            window.sent(now_ns, cmd_sn);
        }
        self.pulled.push_back(match pdu {
            InitiatorPdu::ScsiCommand(command) => {
                state.begin((self.session, command.itt), || self.sample(&command, now_ns));
                Pulled::Command { itt: command.itt, has_data: command.data_segment_bytes > 0 }
            }
            InitiatorPdu::DataOut(data) => Pulled::DataOut(data.itt),
            _ => Pulled::Other,
        });
    }

    fn sent(&mut self, bytes: usize, pdus: u32) {
        let now_ns = monotonic_ns();
        let mut state = lock(&self.state);
        state.connections.sent(self.place, now_ns, bytes, pdus);
        for _ in 0..pdus {
            match self.pulled.pop_front() {
                Some(Pulled::Command { itt, has_data }) => {
                    if let Some(command) = state.open.get_mut(&(self.session, itt)) {
                        command.sent_ns.get_or_insert(now_ns);
                        command.data_sent_ns = command.data_sent_ns.or(has_data.then_some(now_ns));
                    }
                }
                Some(Pulled::DataOut(itt)) => {
                    if let Some(command) = state.open.get_mut(&(self.session, itt)) {
                        command.data_sent_ns = Some(now_ns);
                    }
                }
                Some(Pulled::Other) | None => {}
            }
        }
    }

    fn blocked(&mut self) {
        lock(&self.state).connections.blocked(self.place, monotonic_ns());
    }

    fn header_received(&mut self, header: &Header) {
        let now_ns = monotonic_ns();
        let mut state = lock(&self.state);
        state.connections.received(self.place);
        self.incoming = None;
        let Ok(pdu) = TargetPdu::parse(header) else { return };
        if let Some(window) = state.windows.get_mut(&self.session) {
            window.told(now_ns, pdu.window().max_cmd_sn);
        }
        let itt = header.task_tag();
        let status = match &pdu {
            TargetPdu::ScsiResponse(response) => Some(response.status),
            TargetPdu::DataIn(data) => data.status.map(|collapsed| collapsed.status),
            TargetPdu::R2t(_) => None,
            _ => return,
        };
        if let Some(command) = state.open.get_mut(&(self.session, itt)) {
            match &pdu {
                TargetPdu::R2t(_) => {
                    command.first_r2t_ns.get_or_insert(now_ns);
                    command.r2ts += 1;
                }
                TargetPdu::DataIn(_) => {
                    command.first_data_ns.get_or_insert(now_ns);
                }
                _ => {}
            }
        }
        if header.data_segment_bytes() > 0 {
            self.incoming = Some((itt, status));
        } else if let Some(status) = status {
            state.end((self.session, itt), now_ns, status);
        }
    }

    fn data_received(&mut self) {
        let Some((itt, status)) = self.incoming.take() else { return };
        let now_ns = monotonic_ns();
        let mut state = lock(&self.state);
        if let Some(command) = state.open.get_mut(&(self.session, itt)) {
            // Sense data arrives as a data segment too.
            command.data_received_ns = command.first_data_ns.map(|_| now_ns);
        }
        if let Some(status) = status {
            state.end((self.session, itt), now_ns, status);
        }
    }
}

impl Connection {
    fn sample(&self, command: &ScsiCommand, now_ns: u64) -> CommandSample {
        let cdb = command.cdb.bytes();
        CommandSample {
            session: self.session,
            connection: self.cid,
            task_tag: command.itt.0,
            cmd_sn: command.cmd_sn.0,
            operation_code: cdb[0],
            direction: match (command.read, command.write) {
                (_, true) => Some(Direction::Write),
                (true, false) => Some(Direction::Read),
                (false, false) => None,
            },
            lba: lba(cdb),
            bytes: command.expected_data_bytes,
            pulled_ns: now_ns,
            sent_ns: None,
            first_r2t_ns: None,
            r2ts: 0,
            data_sent_ns: None,
            first_data_ns: None,
            data_received_ns: None,
            ended_ns: 0,
            status: 0,
            target: None,
        }
    }
}

impl State {
    /// A command leaves, unless it is sent again.
    fn begin(&mut self, name: TaskName, sample: impl FnOnce() -> CommandSample) {
        if self.open.contains_key(&name) {
            return;
        }
        if self.open.len() + self.ended.len() >= COMMANDS_MAX {
            self.lost += 1;
            return;
        }
        self.open.insert(name, sample());
    }

    fn end(&mut self, name: TaskName, now_ns: u64, status: u8) {
        if let Some(command) = self.open.remove(&name) {
            self.ended.push(CommandSample { ended_ns: now_ns, status, ..command });
        }
    }
}

/// The first block of READ and WRITE, (10) and (16) (SBC-3 §5.11, §5.13, §5.32, §5.34).
fn lba(cdb: &[u8]) -> Option<u64> {
    let field = match cdb.first()? {
        0x28 | 0x2a => cdb.get(2..6)?,
        0x88 | 0x8a => cdb.get(2..10)?,
        _ => return None,
    };
    Some(field.iter().fold(0, |lba, byte| lba << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_of_a_command_is_read_from_its_cdb() {
        assert_eq!(lba(&[0x28, 0, 0, 1, 2, 3, 0, 0, 8, 0]), Some(0x1_0203));
        assert_eq!(lba(&[0x8a, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0]), Some(0x0100_0000_0000_0002));
        assert_eq!(lba(&[0x12, 0, 0, 0, 255, 0]), None);
    }
}
