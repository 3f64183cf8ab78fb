//! Real logins between the two ends of the world. They take no time.

use super::device::Device;
use super::end::End;
use super::wire::{Path, Random, Stream};
use super::{Settings, Wire, World};
use pdu::{Cid, CmdSn, Instant, Isid, LaneId, StatSn, Window};
use ropewalk_session::login::{initiator, target};
use ropewalk_session::parameters::{Established, LaneRole};
use ropewalk_session::seam::{Payload, Transmit};
use ropewalk_session::target::{Admission, Registry};
use ropewalk_session::{initiator as initiator_role, target as target_role};
use std::collections::{BTreeMap, HashMap};

pub const TARGET: &str = "iqn.2026-11.org.example:disk";
const FIRST_CMD_SN: CmdSn = CmdSn(u32::MAX - 5);
const FIRST_STAT_SN: StatSn = StatSn(u32::MAX - 5);
const SESSIONS_MAX: u16 = 4;

struct Everybody;

impl target::Directory for Everybody {
    fn access(&self, _: &str, _: Option<&str>) -> Result<target::Access, target::Denial> {
        Ok(target::Access::default())
    }
}

fn config(settings: &Settings, cid: u16, cmd_sn: CmdSn) -> initiator::Config {
    initiator::Config {
        initiator_name: "iqn.2026-11.org.example:host".into(),
        initiator_alias: None,
        target_name: (!settings.is_discovery).then(|| TARGET.into()),
        isid: Isid([0x80, 1, 2, 3, 0, 4]),
        cid: Cid(cid),
        joining: None,
        role: LaneRole::Whole,
        portal_group_tag: None,
        cmd_sn,
        offer: settings.initiator,
        credentials: None,
        entropy: *b"the initiator's entropy, 33 bytes",
    }
}

fn inline(transmit: &Transmit) -> &[u8] {
    if let Payload::Inline(data) = &transmit.payload { data } else { &[] }
}

/// Runs a login. `place` finds the place of who asks for it. `None` if it has to wait.
fn log_in(
    config: initiator::Config,
    settings: &Settings,
    registry: &mut Registry,
    window: Window,
    joined: Option<&World>,
) -> Result<(Established, Established), Admission> {
    let mut ours = initiator::Login::new(config);
    let mut theirs =
        target::Login::new(1, settings.target, FIRST_STAT_SN, b"the target's entropy of 33 bytes!");
    let mut established = None;
    let mut request = ours.start();
    loop {
        let reply = match theirs.receive(&request.header, inline(&request), &Everybody) {
            target::Progress::Reply(reply) => reply,
            target::Progress::Admit(applicant) => {
                let tsih = match registry.admit(&applicant).unwrap() {
                    Admission::New(tsih) | Admission::Join(tsih) => tsih,
                    wait @ Admission::Reinstate(_) => return Err(wait),
                };
                let place = target::Place { tsih, window, joined: joined.map(|world| world.parameters) };
                let (reply, admitted) = theirs.admit(Ok(place));
                established = admitted;
                reply.unwrap()
            }
            target::Progress::Refused { reason, .. } => panic!("refused: {reason}"),
        };
        request = match ours.receive(&reply.header, inline(&reply)) {
            initiator::Progress::Send(request) => request,
            initiator::Progress::Established(ours) => return Ok((ours, established.unwrap())),
            other => panic!("login ended in {other:?}"),
        };
    }
}

fn window_at(first: CmdSn, commands: u32) -> Window {
    Window { exp_cmd_sn: first, max_cmd_sn: CmdSn(first.0.wrapping_sub(1)).plus(commands) }
}

impl World {
    /// A new session of one connection.
    pub fn log_in(settings: Settings, path: Path) -> Self {
        let mut registry = Registry::new(SESSIONS_MAX);
        let window = window_at(FIRST_CMD_SN, settings.window_commands);
        let (ours, theirs) =
            log_in(config(&settings, 0, FIRST_CMD_SN), &settings, &mut registry, window, None).unwrap();
        let limits = Self::target_limits(&settings);
        let target = target_role::Session::new(theirs.session, limits, theirs.cmd_sn);
        let initiator = initiator_role::Session::new(ours.session, Self::initiator_limits(), ours.cmd_sn);
        let mut world = Self {
            now: Instant::ZERO,
            settings,
            initiator: End::new(initiator),
            target: End::new(target),
            device: Device::new(settings.device_bytes as usize),
            registry,
            random: Random::new(settings.seed),
            parameters: ours.session,
            tsih: ours.tsih,
            wires: BTreeMap::new(),
            next_lane: 0,
            preferred: Vec::new(),
            completed: HashMap::new(),
            lost: HashMap::new(),
            data: HashMap::new(),
            lent: BTreeMap::new(),
            events: Vec::new(),
            target_ended: None,
            faults: Vec::new(),
            damage: None,
            damaged_permille: 0,
            sent_pdus: [0; 2],
        };
        world.open(path, &ours, &theirs);
        world
    }

    /// Adds a connection to the session.
    pub fn add_lane(&mut self, path: Path) -> LaneId {
        self.add_connection(path, u16::try_from(self.next_lane).unwrap())
    }

    /// Adds a connection of this CID to the session; an older one of that CID is replaced.
    pub fn add_connection(&mut self, path: Path, cid: u16) -> LaneId {
        let joining = Some(initiator::Joining {
            tsih: self.tsih,
            session: self.parameters,
            replaced_exp_stat_sn: self.initiator.session.exp_stat_sn(Cid(cid)),
        });
        let role = self.parameters.split.roles().get(usize::from(cid)).copied().unwrap_or_default();
        let config = initiator::Config {
            joining,
            role,
            ..config(&self.settings, cid, self.initiator.session.cmd_sn())
        };
        let mut registry = std::mem::replace(&mut self.registry, Registry::new(0));
        let counters = self.target.session.counters();
        let window = Window { exp_cmd_sn: counters.exp_cmd_sn, max_cmd_sn: counters.max_cmd_sn };
        let joined = log_in(config, &self.settings, &mut registry, window, Some(self));
        self.registry = registry;
        let (ours, theirs) = joined.unwrap();
        self.open(path, &ours, &theirs)
    }

    /// Logs in anew as the same initiator. `None` while the target has the old session.
    pub fn reinstate(&mut self, path: Path) -> Option<()> {
        let window = window_at(FIRST_CMD_SN, self.settings.window_commands);
        let config = config(&self.settings, 0, FIRST_CMD_SN);
        match log_in(config, &self.settings, &mut self.registry, window, None) {
            Err(_) => {
                self.target.session.close(self.now);
                None
            }
            Ok((ours, theirs)) => {
                let limits = Self::target_limits(&self.settings);
                self.target.session = target_role::Session::new(theirs.session, limits, theirs.cmd_sn);
                self.target_ended = None;
                let session =
                    initiator_role::Session::new(ours.session, Self::initiator_limits(), ours.cmd_sn);
                self.initiator.session = session;
                self.tsih = ours.tsih;
                self.completed.clear();
                self.lost.clear();
                self.open(path, &ours, &theirs);
                Some(())
            }
        }
    }

    fn open(&mut self, path: Path, ours: &Established, theirs: &Established) -> LaneId {
        let lane = LaneId(self.next_lane);
        self.next_lane += 1;
        let wire = Wire { to_target: Stream::new(self.now, path), to_initiator: Stream::new(self.now, path) };
        self.wires.insert(lane, wire);
        self.initiator.open(lane, ours.connection);
        self.target.open(lane, theirs.connection);
        self.initiator.session.add_lane(self.now, lane, ours);
        self.target.session.add_lane(self.now, lane, theirs);
        lane
    }
}
