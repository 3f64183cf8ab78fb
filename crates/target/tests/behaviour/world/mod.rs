//! A server in this process, and initiators that are nothing but a socket: they can misbehave.

use pdu::{
    Cdb, Cid, CmdSn, DataOut, DataSn, Header, InitiatorPdu, Isid, Itt, LoginRequest, LoginStatus,
    LogoutOutcome, LogoutReason, LogoutRequest, Lun, ScsiCommand, Stage, StatSn, TargetPdu, TaskAttribute,
    TaskManagementFunction, TaskManagementOutcome, TaskManagementRequest, TextRequest, Tsih, Ttt,
};
use ropewalk_target::{
    Config, Counters, LunConfig, Mask, NumberedLunSpec, Server, ShutdownReport, StartError, TargetConfig,
};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

pub const TARGET: &str = "iqn.2026-01.net.example:disk";
pub const INITIATOR: &str = "iqn.2026-01.net.example:host";
pub const BLOCK: usize = 512;

/// An address of the loopback network that is not the usual one.
pub const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct World {
    runtime: Runtime,
    server: Option<Server>,
}

pub fn target(name: &str, luns: &[&str]) -> TargetConfig {
    let lun = |text: &&str| {
        let NumberedLunSpec { number, spec } = text.parse().unwrap();
        LunConfig { number, backend: spec, mask: Mask::default() }
    };
    TargetConfig { luns: luns.iter().map(lun).collect(), ..TargetConfig::new(name.parse().unwrap()) }
}

/// On loopback, at a port that the system chooses.
pub fn config(targets: Vec<TargetConfig>) -> Config {
    Config { listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))], targets, ..Config::default() }
}

impl World {
    pub fn with_lun(lun: &str) -> Self {
        Self::with_config(config(vec![target(TARGET, &[lun])]))
    }

    pub fn with_config(config: Config) -> Self {
        Self::start(config).unwrap()
    }

    pub fn start(config: Config) -> Result<Self, StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start(config))?;
        Ok(Self { runtime, server: Some(server) })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.as_ref().unwrap().local_addrs()[0]
    }

    /// Where all its portals are.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.as_ref().unwrap().local_addrs()
    }

    pub fn counters(&self) -> Counters {
        self.server.as_ref().unwrap().counters()
    }

    /// Waits until the server's numbers are as expected: it works on threads of its own.
    pub fn wait_for(&self, expected: impl Fn(&Counters) -> bool) {
        let started = Instant::now();
        while !expected(&self.counters()) {
            assert!(started.elapsed() < PATIENCE, "{:?}", self.counters());
            std::thread::yield_now();
        }
    }

    /// A connection that has said nothing yet.
    pub fn connect(&self) -> Peer {
        Self::connect_between(Ipv4Addr::LOCALHOST.into(), self.address())
    }

    /// One that comes from this address of the loopback network.
    pub fn connect_from(&self, address: impl Into<IpAddr>) -> Peer {
        Self::connect_between(address.into(), self.address())
    }

    /// One that comes through this portal.
    pub fn connect_to(&self, portal: SocketAddr) -> Peer {
        Self::connect_between(Ipv4Addr::LOCALHOST.into(), portal)
    }

    fn connect_between(address: IpAddr, portal: SocketAddr) -> Peer {
        let local = SocketAddr::from((address, 0));
        let socket = Socket::new(Domain::for_address(local), Type::STREAM, None).unwrap();
        socket.bind(&local.into()).unwrap();
        socket.connect(&portal.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Peer { stream, itt: 0, cmd_sn: CmdSn(1), exp_stat_sn: StatSn(0) }
    }

    /// An initiator that has logged in and knows of no unit attention.
    pub fn initiator(&self, isid: u8) -> Peer {
        self.initiator_from(Ipv4Addr::LOCALHOST, isid)
    }

    /// One that comes from this address of the loopback network.
    pub fn initiator_from(&self, address: Ipv4Addr, isid: u8) -> Peer {
        let mut peer = self.connect_from(address);
        peer.login(TARGET, isid).unwrap();
        peer.learn_attentions();
        peer
    }

    pub fn shut_down(mut self, grace: Duration) -> ShutdownReport {
        self.runtime.block_on(self.server.take().unwrap().shutdown(grace))
    }
}

/// One connection, one command at a time unless a test wants otherwise.
pub struct Peer {
    pub stream: TcpStream,
    pub itt: u32,
    pub cmd_sn: CmdSn,
    pub exp_stat_sn: StatSn,
}

/// The end of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u8,
    pub data: Vec<u8>,
    pub sense: Vec<u8>,
}

impl Answer {
    /// ASC and ASCQ.
    pub fn additional(&self) -> (u8, u8) {
        (self.sense[12], self.sense[13])
    }
}

pub fn isid(number: u8) -> Isid {
    Isid::random([1, 2, 3], number.into())
}

impl Peer {
    pub fn send(&mut self, pdu: &InitiatorPdu, data: &[u8]) {
        let mut bytes = Vec::new();
        pdu.emit().write_to(&mut bytes);
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.stream.write_all(&bytes).unwrap();
    }

    pub fn receive(&mut self) -> io::Result<(TargetPdu, Vec<u8>)> {
        let mut bhs = [0; Header::BHS_BYTES];
        self.stream.read_exact(&mut bhs)?;
        let header = Header::new(bhs);
        let bytes = header.data_segment_bytes();
        let mut data = vec![0; (bytes + pdu::padding(bytes)) as usize];
        self.stream.read_exact(&mut data)?;
        data.truncate(bytes as usize);
        Ok((TargetPdu::parse(&header).unwrap(), data))
    }

    /// Reads until the target closes the connection.
    pub fn expect_closed(&mut self) {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}"),
        }
    }

    pub fn login_request(&self, isid_number: u8, data_segment_bytes: u32) -> LoginRequest {
        LoginRequest {
            current_stage: Stage::OperationalNegotiation,
            next_stage: Some(Stage::FullFeaturePhase),
            continued: false,
            version_max: 0,
            version_min: 0,
            isid: isid(isid_number),
            tsih: Tsih::NEW_SESSION,
            itt: Itt(0),
            cid: Cid(0),
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            data_segment_bytes,
        }
    }

    pub fn login(&mut self, target: &str, isid: u8) -> Result<Tsih, LoginStatus> {
        self.login_as(INITIATOR, target, isid)
    }

    pub fn login_as(&mut self, initiator: &str, target: &str, isid: u8) -> Result<Tsih, LoginStatus> {
        let text = format!(
            "InitiatorName={initiator}\0TargetName={target}\0SessionType=Normal\0MaxConnections=8\0InitialR2T=No\0\
             ImmediateData=Yes\0FirstBurstLength=65536\0MaxBurstLength=1048576\0"
        );
        self.login_with(&text, |request| request, isid)
    }

    pub fn login_with(
        &mut self,
        text: &str,
        change: impl FnOnce(LoginRequest) -> LoginRequest,
        isid: u8,
    ) -> Result<Tsih, LoginStatus> {
        let request = change(self.login_request(isid, u32::try_from(text.len()).unwrap()));
        self.send(&InitiatorPdu::LoginRequest(request), text.as_bytes());
        match self.receive().unwrap().0 {
            TargetPdu::LoginResponse(response) if response.status.is_success() => {
                assert_eq!(response.next_stage, Some(Stage::FullFeaturePhase));
                self.exp_stat_sn = response.stat_sn.next();
                Ok(response.tsih)
            }
            TargetPdu::LoginResponse(response) => Err(response.status),
            other => panic!("{other:?}"),
        }
    }

    /// A question in this text, whole.
    pub fn text_request(&self, text: &[u8]) -> TextRequest {
        TextRequest {
            immediate: false,
            final_: true,
            continued: false,
            lun: Lun::default(),
            itt: Itt(1),
            ttt: Ttt::NONE,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            data_segment_bytes: u32::try_from(text.len()).unwrap(),
        }
    }

    /// The rest of a login whose security stage has been left.
    pub fn finish_login(&mut self, isid: u8) {
        self.login_with("", |request| request, isid).unwrap();
    }

    /// Asks until there is no unit attention left.
    pub fn learn_attentions(&mut self) {
        while self.command(&[0], &[], 0).status != 0 {}
    }

    pub fn next_command(&mut self, lun: u16, cdb: &[u8], out_bytes: usize, in_bytes: usize) -> ScsiCommand {
        self.itt += 1;
        let command = ScsiCommand {
            lun: Lun::from_index(lun),
            itt: Itt(self.itt),
            immediate: false,
            final_: true,
            read: in_bytes > 0,
            write: out_bytes > 0,
            attribute: TaskAttribute::Simple,
            expected_data_bytes: u32::try_from(out_bytes + in_bytes).unwrap(),
            bidirectional_read_bytes: None,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            cdb: Cdb::new(cdb).unwrap(),
            data_segment_bytes: 0,
        };
        self.cmd_sn = self.cmd_sn.next();
        command
    }

    /// Sends a command to LUN 0, its data as it is asked for, and waits for its end.
    pub fn command(&mut self, cdb: &[u8], out: &[u8], in_bytes: usize) -> Answer {
        self.command_to(0, cdb, out, in_bytes)
    }

    pub fn command_to(&mut self, lun: u16, cdb: &[u8], out: &[u8], in_bytes: usize) -> Answer {
        let command = self.next_command(lun, cdb, out.len(), in_bytes);
        self.send(&InitiatorPdu::ScsiCommand(command), &[]);
        self.answer(out)
    }

    /// The end of the command under way.
    pub fn answer(&mut self, out: &[u8]) -> Answer {
        let mut answer = Answer { status: 0xff, data: Vec::new(), sense: Vec::new() };
        loop {
            match self.receive().unwrap() {
                (TargetPdu::R2t(r2t), _) => self.send_data(r2t.lun, (r2t.itt, r2t.ttt), r2t.buffer_offset, {
                    let start = r2t.buffer_offset as usize;
                    &out[start..start + r2t.desired_bytes as usize]
                }),
                (TargetPdu::DataIn(data_in), data) => {
                    assert_eq!(data_in.buffer_offset as usize, answer.data.len());
                    answer.data.extend(data);
                    if let Some(collapsed) = data_in.status {
                        self.exp_stat_sn = collapsed.stat_sn.next();
                        return Answer { status: collapsed.status, ..answer };
                    }
                }
                (TargetPdu::ScsiResponse(response), data) => {
                    self.exp_stat_sn = response.stat_sn.next();
                    let sense = data.get(2..).unwrap_or_default().to_vec();
                    return Answer { status: response.status, sense, ..answer };
                }
                (other, _) => panic!("{other:?}"),
            }
        }
    }

    pub fn send_data(&mut self, lun: Lun, (itt, ttt): (Itt, Ttt), offset: u32, data: &[u8]) {
        const SEGMENT: usize = 8192;
        let count = data.len().div_ceil(SEGMENT);
        for (number, piece) in data.chunks(SEGMENT).enumerate() {
            let place = u32::try_from(number * SEGMENT).unwrap();
            let pdu = DataOut {
                lun,
                itt,
                ttt,
                final_: number + 1 == count,
                exp_stat_sn: self.exp_stat_sn,
                data_sn: DataSn(u32::try_from(number).unwrap()),
                buffer_offset: offset + place,
                data_segment_bytes: u32::try_from(piece.len()).unwrap(),
            };
            self.send(&InitiatorPdu::DataOut(pdu), piece);
        }
    }

    pub fn write(&mut self, lba: u32, data: &[u8]) -> Answer {
        self.write_to(0, lba, data)
    }

    pub fn write_to(&mut self, lun: u16, lba: u32, data: &[u8]) -> Answer {
        let cdb = read_write_10(0x2a, lba, data.len() / BLOCK);
        self.command_to(lun, &cdb, data, 0)
    }

    pub fn read(&mut self, lba: u32, blocks: usize) -> Answer {
        self.read_from(0, lba, blocks)
    }

    pub fn read_from(&mut self, lun: u16, lba: u32, blocks: usize) -> Answer {
        self.command_to(lun, &read_write_10(0x28, lba, blocks), &[], blocks * BLOCK)
    }

    /// Asks for the end of the session, and does not wait for it.
    pub fn send_logout(&mut self) {
        self.ask_for_logout(LogoutReason::CloseSession, Cid(0));
    }

    /// Asks for the end of a connection, or of the session, and does not wait for it.
    pub fn ask_for_logout(&mut self, reason: LogoutReason, cid: Cid) {
        self.itt += 1;
        let request = LogoutRequest {
            reason,
            immediate: true,
            itt: Itt(self.itt),
            cid,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        self.send(&InitiatorPdu::LogoutRequest(request), &[]);
    }

    /// Removes a connection for recovery, and waits for the answer.
    pub fn remove_for_recovery(&mut self, cid: Cid) -> LogoutOutcome {
        self.ask_for_logout(LogoutReason::RemoveConnectionForRecovery, cid);
        loop {
            match self.receive().unwrap().0 {
                TargetPdu::LogoutResponse(response) => {
                    self.exp_stat_sn = response.stat_sn.next();
                    return response.outcome;
                }
                // That the connection is gone is told without being asked, too.
                TargetPdu::AsyncMessage(message) => self.exp_stat_sn = message.stat_sn.next(),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Joins a session, whose numbers these are, as its connection of this name.
    pub fn join(&mut self, numbers: (CmdSn, u32), tsih: Tsih, cid: Cid) -> Result<Tsih, LoginStatus> {
        self.cmd_sn = numbers.0;
        // Its task tags are no other connection's.
        self.itt = numbers.1 + 1000;
        let text = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0SessionType=Normal\0");
        self.login_with(&text, |request| LoginRequest { tsih, cid, ..request }, 1)
    }

    /// Moves a task to this connection.
    pub fn reassign(&mut self, task: Itt) -> TaskManagementOutcome {
        let request = self.management(TaskManagementFunction::TaskReassign);
        self.ask_for_function(TaskManagementRequest { referenced_task: task, ..request })
    }

    /// Sees to it that the command before this number has arrived, if only in the form of this.
    pub fn abort_before(&mut self, cmd_sn: CmdSn) -> TaskManagementOutcome {
        let ref_cmd_sn = CmdSn(cmd_sn.0.wrapping_sub(1));
        let request = self.management(TaskManagementFunction::AbortTask);
        let referenced_task = Itt(request.itt.0 + 1_000_000);
        self.ask_for_function(TaskManagementRequest { referenced_task, ref_cmd_sn, ..request })
    }

    pub fn manage(&mut self, function: TaskManagementFunction) -> TaskManagementOutcome {
        let request = self.management(function);
        self.ask_for_function(request)
    }

    fn management(&mut self, function: TaskManagementFunction) -> TaskManagementRequest {
        self.itt += 1;
        TaskManagementRequest {
            function,
            immediate: true,
            lun: Lun::from_index(0),
            itt: Itt(self.itt),
            referenced_task: Itt::NONE,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            ref_cmd_sn: self.cmd_sn,
            exp_data_sn: DataSn(0),
        }
    }

    fn ask_for_function(&mut self, request: TaskManagementRequest) -> TaskManagementOutcome {
        self.send(&InitiatorPdu::TaskManagementRequest(request), &[]);
        match self.receive().unwrap().0 {
            TargetPdu::TaskManagementResponse(response) => {
                self.exp_stat_sn = response.stat_sn.next();
                response.outcome
            }
            other => panic!("{other:?}"),
        }
    }
}

pub fn read_write_10(code: u8, lba: u32, blocks: usize) -> [u8; 10] {
    let [a, b, c, d] = lba.to_be_bytes();
    let [e, f] = u16::try_from(blocks).unwrap().to_be_bytes();
    [code, 0, a, b, c, d, 0, e, f, 0]
}

/// Bytes that tell where they belong.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from((at / BLOCK + at) % 251).unwrap()).collect()
}

/// Puts a length into a CDB, in the `width` bytes from `place` on.
pub fn set_length(cdb: &mut [u8], place: usize, width: usize, bytes: usize) {
    cdb[place..place + width].copy_from_slice(&bytes.to_be_bytes()[size_of::<usize>() - width..]);
}
