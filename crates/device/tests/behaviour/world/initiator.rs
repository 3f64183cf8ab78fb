//! An initiator of one connection, and the driver of its connection at the target.

use super::{PING_AFTER, PING_TIMEOUT, PORTAL_GROUP, TARGET, TRUSTED, TRUSTED_NAME, World};
use block::Slab;
use framing::{BufferTable, Receiver, Sender};
use pdu::{Cdb, Cid, CmdSn, Instant, Isid, LaneId, LoginStatus, Lun, StatSn, TaskAttribute};
use ropewalk_device::{Leading, SessionDriver};
use session::chap::ENTROPY_BYTES;
use session::initiator::{Command, Completion, Data, Event, Session, TaskFunction, TaskId};
use session::login::{initiator as ours, target as theirs};
use session::parameters::{Established, InitiatorLimits, LaneRole, Offer};
use session::seam::{Endpoint, Payload, PayloadRef, Transmit};
use session::target::Applicant;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

const LANE: LaneId = LaneId(0);
const PULL_BYTES: u32 = 64 << 10;

pub struct Initiator {
    login: ours::Login,
    connection: Rc<RefCell<Connection>>,
    pub session: Option<Session>,
    pub buffers: BufferTable,
    framing: Option<(Receiver, Sender)>,
    pub completed: HashMap<TaskId, Completion>,
    /// In the order of their ends.
    pub ended_tasks: Vec<TaskId>,
    pub ended: Option<bool>,
    /// It takes and sends nothing any more.
    pub is_silent: bool,
}

/// The target's end of a connection.
#[derive(Default)]
struct Connection {
    /// The last login response.
    reply: Option<Transmit>,
    refused: Option<LoginStatus>,
    session: Option<Joined>,
    is_closed: bool,
}

/// A connection that belongs to a session.
struct Joined {
    driver: Rc<SessionDriver>,
    cid: Cid,
    lane: LaneId,
    receiver: Receiver,
    sender: Sender,
}

struct Everybody;

impl theirs::Directory for Everybody {
    fn access(&self, _: &str, _: Option<&str>) -> Result<theirs::Access, theirs::Denial> {
        Ok(theirs::Access::default())
    }
}

impl Initiator {
    /// Negotiates, and leaves the finding of a place to a task of the host, since it may have to wait.
    pub fn start(world: &World, isid: u8, address: IpAddr, error_recovery_level: u8) -> Self {
        let offer = Offer { error_recovery_level, ..Offer::default() };
        let mut login = ours::Login::new(config(isid, offer));
        let mut target = theirs::Login::new(PORTAL_GROUP, offer, StatSn(0), &[1; ENTROPY_BYTES]);
        let mut request = login.start();
        let connection = Rc::new(RefCell::new(Connection::default()));
        loop {
            match target.receive(&request.header, inline(&request), &Everybody) {
                theirs::Progress::Reply(reply) => match login.receive(&reply.header, inline(&reply)) {
                    ours::Progress::Send(next) => request = next,
                    other => panic!("{other:?}"),
                },
                theirs::Progress::Admit(applicant) => {
                    ropewalk_device::Host::spawn(
                        &*world.host,
                        Box::pin(find_place(
                            Rc::clone(&world.node),
                            target,
                            applicant,
                            address,
                            Rc::clone(&connection),
                        )),
                    );
                    break;
                }
                theirs::Progress::Refused { reason, .. } => panic!("{reason}"),
            }
        }
        Self {
            login,
            connection,
            session: None,
            buffers: BufferTable::new(Slab::new(64 << 20)),
            framing: None,
            completed: HashMap::new(),
            ended_tasks: Vec::new(),
            ended: None,
            is_silent: false,
        }
    }

    /// How the login ended, if it has.
    pub fn login_result(&self) -> Option<Result<(), LoginStatus>> {
        let refused = self.connection.borrow().refused;
        refused.map(Err).or(self.session.is_some().then_some(Ok(())))
    }

    /// Whether the target has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.connection.borrow().is_closed
    }

    pub fn submit(&mut self, now: Instant, cdb: &[u8], data: Data) -> TaskId {
        self.submit_to(0, now, cdb, data)
    }

    pub fn submit_to(&mut self, lun: u16, now: Instant, cdb: &[u8], data: Data) -> TaskId {
        self.submit_as(TaskAttribute::Simple, lun, now, cdb, data)
    }

    /// A command without data to LUN 0 that waits for all before it.
    pub fn submit_ordered(&mut self, now: Instant, cdb: &[u8]) -> TaskId {
        self.submit_as(TaskAttribute::Ordered, 0, now, cdb, Data::None)
    }

    fn submit_as(
        &mut self,
        attribute: TaskAttribute,
        lun: u16,
        now: Instant,
        cdb: &[u8],
        data: Data,
    ) -> TaskId {
        let command = Command { lun: Lun::from_index(lun), attribute, cdb: Cdb::new(cdb).unwrap(), data };
        self.session.as_mut().unwrap().submit(now, command).unwrap()
    }

    /// LOGICAL UNIT RESET of LUN 0.
    pub fn reset_unit(&mut self, now: Instant) {
        let reset = TaskFunction::LogicalUnitReset(Lun::from_index(0));
        self.session.as_mut().unwrap().task_management(now, reset);
    }

    /// ABORT TASK.
    pub fn abort(&mut self, now: Instant, task: TaskId) {
        self.session.as_mut().unwrap().task_management(now, TaskFunction::AbortTask(task));
    }

    /// A buffer that holds `bytes`.
    pub fn buffer(&mut self, bytes: &[u8]) -> PayloadRef {
        let mut buffer = self.buffers.budget().allocate(bytes.len()).unwrap();
        buffer.copy_from_slice(bytes);
        let buffer = self.buffers.insert(buffer.share());
        PayloadRef { buffer, offset_bytes: 0, bytes: u32::try_from(bytes.len()).unwrap() }
    }

    /// Moves what both ends have to say. Whether there was anything.
    pub fn exchange(&mut self, now: Instant) -> bool {
        let connection = Rc::clone(&self.connection);
        let mut connection = connection.borrow_mut();
        let mut busy = self.take_reply(now, &mut connection);
        if connection.is_closed {
            return busy;
        }
        if let Some(joined) = &mut connection.session {
            let said = self.pull(now);
            let answered = joined.exchange(now, &said);
            busy |= !said.is_empty() || !answered.is_empty();
            self.hear(now, &answered);
            if let Some(closing) = joined.closing() {
                joined.driver.remove_lane(joined.lane, closing);
                joined.driver.node().lane_closed(joined.driver.tsih(), joined.cid);
                *connection = Connection { is_closed: true, ..Connection::default() };
                busy = true;
            }
        }
        busy
    }

    fn take_reply(&mut self, now: Instant, connection: &mut Connection) -> bool {
        let Some(reply) = connection.reply.take() else { return false };
        if let ours::Progress::Established(established) = self.login.receive(&reply.header, inline(&reply)) {
            let limits =
                InitiatorLimits { commands_max: 64, ping_after: PING_AFTER * 4, ping_timeout: PING_TIMEOUT };
            let mut session = Session::new(established.session, limits, established.cmd_sn);
            session.add_lane(now, LANE, &established);
            self.framing = Some(framing_of(LANE, &established));
            self.session = Some(session);
        }
        true
    }

    fn pull(&mut self, now: Instant) -> Vec<u8> {
        let (Some(session), Some((_, sender))) = (&mut self.session, &mut self.framing) else {
            return Vec::new();
        };
        if self.is_silent {
            return Vec::new();
        }
        while session.demand().is_some() && session.start(now, LANE).is_some() {}
        pull(session, sender, &self.buffers, now, LANE)
    }

    fn hear(&mut self, now: Instant, bytes: &[u8]) {
        let (Some(session), Some((receiver, _))) = (&mut self.session, &mut self.framing) else { return };
        if self.is_silent {
            return;
        }
        receiver.feed(bytes, now, session, &mut self.buffers).unwrap();
        while let Some(event) = session.poll_event() {
            match event {
                Event::Completed(completion) => {
                    self.ended_tasks.push(completion.task);
                    self.completed.insert(completion.task, completion);
                }
                Event::Lost { task, .. } => self.ended_tasks.push(task),
                Event::Ended { orderly } => self.ended = Some(orderly),
                // Buffers are kept for the tests to look at.
                _ => {}
            }
        }
    }
}

impl Joined {
    /// Hands over what arrived, and takes what there is to send.
    fn exchange(&mut self, now: Instant, arrived: &[u8]) -> Vec<u8> {
        let mut state = self.driver.state();
        let both = &mut *state;
        self.receiver.feed(arrived, now, &mut both.session, &mut both.buffers).unwrap();
        self.driver.drain(&mut state);
        let both = &mut *state;
        let bytes = pull(&mut both.session, &mut self.sender, &both.buffers, now, self.lane);
        self.driver.drain(&mut state);
        bytes
    }

    fn closing(&self) -> Option<session::seam::LaneLoss> {
        self.driver.state().closing(self.lane).map(|closing| closing.loss)
    }
}

async fn find_place(
    node: Rc<ropewalk_device::TargetNode>,
    mut login: theirs::Login,
    applicant: Applicant,
    peer: IpAddr,
    connection: Rc<RefCell<Connection>>,
) {
    let leading = Leading {
        parameters: *login.session_parameters().unwrap(),
        first: login.first_cmd_sn().unwrap(),
        peer,
    };
    let placed = node.admit(&applicant, leading).await;
    let place = placed.as_ref().map(|driver| driver.place_for(&applicant)).map_err(|status| *status);
    let (reply, established) = login.admit(place);
    let mut connection = connection.borrow_mut();
    connection.reply = reply;
    match placed {
        Ok(driver) => {
            let established = established.unwrap();
            let lane = driver.add_lane(&established, (Ipv4Addr::LOCALHOST, 3260).into());
            let (receiver, sender) = framing_of(lane, &established);
            let cid = established.cid;
            connection.session = Some(Joined { driver, cid, lane, receiver, sender });
        }
        Err(status) => connection.refused = Some(status),
    }
}

fn framing_of(lane: LaneId, established: &Established) -> (Receiver, Sender) {
    (Receiver::new(lane, &established.connection), Sender::new(&established.connection))
}

fn pull<E: Endpoint>(
    endpoint: &mut E,
    sender: &mut Sender,
    buffers: &BufferTable,
    now: Instant,
    lane: LaneId,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(now, lane, PULL_BYTES) {
        assert!(sender.push(transmit, buffers));
        while !sender.is_empty() {
            let mut slices = [IoSlice::new(&[]); 8];
            let filled = sender.gather(&mut slices);
            let before = bytes.len();
            slices[..filled].iter().for_each(|slice| bytes.extend_from_slice(slice));
            let pdus = sender.advance(bytes.len() - before);
            endpoint.transmitted(now, lane, pdus);
        }
    }
    bytes
}

fn config(isid: u8, offer: Offer) -> ours::Config {
    ours::Config {
        initiator_name: if isid == TRUSTED { TRUSTED_NAME } else { "iqn.2026-01.net.example:host" }.into(),
        initiator_alias: None,
        target_name: Some(TARGET.into()),
        isid: Isid::random([1, 2, 3], isid.into()),
        cid: Cid(0),
        joining: None,
        role: LaneRole::Whole,
        portal_group_tag: None,
        cmd_sn: CmdSn(1),
        offer,
        credentials: None,
        entropy: [2; ENTROPY_BYTES],
    }
}

fn inline(transmit: &Transmit) -> &[u8] {
    if let Payload::Inline(data) = &transmit.payload { data } else { &[] }
}
