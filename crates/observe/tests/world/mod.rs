//! A path with a capture on it: what both ends send is written as a capture, read again and analysed.

#![allow(dead_code, reason = "each test file uses what it needs")]
#![allow(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use pdu::{
    Cdb, CmdSn, DataOut, DataSn, Header, Instant, Itt, Lun, R2t, R2tSn, Residual, ScsiCommand, ScsiResponse,
    ServiceResponse, StatSn, TaskAttribute, Ttt, Window,
};
use ropewalk_observe::{
    Analyser, Analysis, CaptureWriter, InterfaceId, LinkType, Options, PduRecord, read_capture,
};

pub const MS: u64 = 1_000_000;
const START_NS: u64 = 1_700_000_000_000_000_000;
const WINDOW: Window = Window { exp_cmd_sn: CmdSn(0), max_cmd_sn: CmdSn(100) };

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum From {
    Initiator,
    Target,
}

pub struct World {
    writer: CaptureWriter<Vec<u8>>,
    interface: InterfaceId,
    link: LinkType,
    now: u64,
    /// The next sequence number of either end.
    next: [u32; 2],
    port: u16,
}

impl World {
    /// A connection whose SYNs are captured, the round trip beyond the point of capture being 10 ms and that before it
    /// 2 ms. Time 0 is when the target's first data could come.
    pub fn new() -> Self {
        let mut world = Self::mid_stream(LinkType::Ethernet, 0);
        world.at(0).segment(From::Initiator, SYN, &[]);
        world.at(10).segment(From::Target, SYN | ACK, &[]);
        world.at(12).segment(From::Initiator, ACK, &[]);
        world
    }

    /// A connection that was there before the capture.
    pub fn mid_stream(link: LinkType, kept_bytes_max: u32) -> Self {
        let mut writer = CaptureWriter::new(Vec::new()).unwrap();
        let interface = writer.interface("eth0", link, kept_bytes_max).unwrap();
        Self { writer, interface, link, now: 0, next: [u32::MAX - 100, 7], port: 3260 }
    }

    pub fn on_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets the clock of the capture.
    pub fn at(&mut self, ms: u64) -> &mut Self {
        self.now = ms * MS;
        self
    }

    pub fn initiator(&mut self, bytes: &[u8]) -> &mut Self {
        self.segment(From::Initiator, ACK, bytes);
        self
    }

    pub fn target(&mut self, bytes: &[u8]) -> &mut Self {
        self.segment(From::Target, ACK, bytes);
        self
    }

    /// Bytes that are sent, but that the capture misses.
    pub fn initiator_unseen(&mut self, bytes: &[u8]) -> &mut Self {
        self.next[0] = self.next[0].wrapping_add(small(bytes.len()));
        self
    }

    fn segment(&mut self, from: From, flags: u8, payload: &[u8]) {
        let way = usize::from(from == From::Target);
        let is_syn = flags & SYN != 0;
        let header_bytes: u8 = if is_syn { 24 } else { 20 };
        let mut frame = headers(self.link, from, payload.len() + usize::from(header_bytes));
        let ports = if way == 0 { [40_000, self.port] } else { [self.port, 40_000] };
        frame.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        frame.extend(self.next[way].to_be_bytes());
        frame.extend(self.next[1 - way].to_be_bytes());
        frame.extend([header_bytes << 2, flags, 0x10, 0, 0, 0, 0, 0]);
        if is_syn {
            // Window scale of 7, after a NOP.
            frame.extend([1, 3, 3, 7]);
        }
        frame.extend_from_slice(payload);
        let wire_bytes = small(frame.len());
        self.writer.frame(self.interface, Instant(START_NS + self.now), &frame, wire_bytes).unwrap();
        self.next[way] = self.next[way].wrapping_add(small(payload.len()) + u32::from(is_syn));
    }

    pub fn into_capture(self) -> Vec<u8> {
        self.writer.into_inner()
    }

    pub fn analyse(self) -> (Analysis, Vec<PduRecord>) {
        analyse(&self.into_capture(), Options::default())
    }
}

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap()
}

/// Everything before TCP.
fn headers(link: LinkType, from: From, segment_bytes: usize) -> Vec<u8> {
    let addresses = if from == From::Initiator { [1, 2] } else { [2, 1] };
    let v4 = || {
        let total = u16::try_from(segment_bytes + 20).unwrap();
        let mut header = vec![0x45, 0];
        header.extend(total.to_be_bytes());
        header.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        addresses.iter().for_each(|last| header.extend([10, 0, 0, *last]));
        header
    };
    let v6 = || {
        let mut header = vec![0x60, 0, 0, 0];
        header.extend(u16::try_from(segment_bytes).unwrap().to_be_bytes());
        header.extend([6, 64]);
        addresses.iter().for_each(|last| {
            header.extend([0xfd; 15]);
            header.push(*last);
        });
        header
    };
    match link {
        LinkType::Ethernet => [vec![0; 12], vec![0x08, 0x00], v4()].concat(),
        LinkType::LinuxCooked => [vec![0; 14], vec![0x86, 0xdd], v6()].concat(),
        LinkType::LinuxCooked2 => [vec![0x08, 0x00], vec![0; 18], v4()].concat(),
        _ => v6(),
    }
}

pub fn analyse(capture: &[u8], options: Options) -> (Analysis, Vec<PduRecord>) {
    let mut analyser = Analyser::new(options);
    let mut pdus = Vec::new();
    read_capture(capture, |frame| analyser.frame(frame, |pdu| pdus.push(*pdu))).unwrap();
    (analyser.report(), pdus)
}

/// A PDU with so much data, all zeroes, and its padding.
pub fn with_data(header: &Header) -> Vec<u8> {
    let data_bytes = header.data_segment_bytes();
    let mut bytes = Vec::new();
    header.write_to(&mut bytes);
    bytes.resize(bytes.len() + (data_bytes + pdu::padding(data_bytes)) as usize, 0);
    bytes
}

pub fn write(number: u32, bytes: u32, immediate_bytes: u32) -> Vec<u8> {
    let command = ScsiCommand { data_segment_bytes: immediate_bytes, ..command(number, bytes) };
    with_data(&ScsiCommand { read: false, write: true, ..command }.emit())
}

pub fn read(number: u32, bytes: u32) -> Vec<u8> {
    with_data(&command(number, bytes).emit())
}

fn command(number: u32, bytes: u32) -> ScsiCommand {
    ScsiCommand {
        lun: Lun(0),
        itt: Itt(number),
        immediate: false,
        final_: true,
        read: true,
        write: false,
        attribute: TaskAttribute::Simple,
        expected_data_bytes: bytes,
        bidirectional_read_bytes: None,
        cmd_sn: CmdSn(number),
        exp_stat_sn: StatSn(0),
        cdb: Cdb::from([0x8a; 16]),
        data_segment_bytes: 0,
    }
}

pub fn r2t(number: u32, offset: u32, bytes: u32) -> Vec<u8> {
    let r2t = R2t {
        lun: Lun(0),
        itt: Itt(number),
        ttt: Ttt(number),
        stat_sn: StatSn(0),
        window: WINDOW,
        r2t_sn: R2tSn(0),
        buffer_offset: offset,
        desired_bytes: bytes,
    };
    with_data(&r2t.emit())
}

pub fn data_out(number: u32, offset: u32, bytes: u32, final_: bool) -> Vec<u8> {
    let data = DataOut {
        lun: Lun(0),
        itt: Itt(number),
        ttt: Ttt(number),
        final_,
        exp_stat_sn: StatSn(0),
        data_sn: DataSn(0),
        buffer_offset: offset,
        data_segment_bytes: bytes,
    };
    with_data(&data.emit())
}

pub fn data_in(number: u32, bytes: u32, with_status: bool) -> Vec<u8> {
    let status = pdu::CollapsedStatus { stat_sn: StatSn(number), status: 0, residual: Residual::None };
    let data = pdu::DataIn {
        lun: Lun(0),
        itt: Itt(number),
        ttt: Ttt::NONE,
        final_: with_status,
        acknowledge: false,
        status: with_status.then_some(status),
        window: WINDOW,
        data_sn: DataSn(0),
        buffer_offset: 0,
        data_segment_bytes: bytes,
    };
    with_data(&data.emit())
}

pub fn response(number: u32) -> Vec<u8> {
    let response = ScsiResponse {
        itt: Itt(number),
        response: ServiceResponse::CompletedAtTarget,
        status: 0,
        residual: Residual::None,
        bidirectional_read_residual: Residual::None,
        snack_tag: 0,
        stat_sn: StatSn(number),
        window: WINDOW,
        exp_data_sn: DataSn(0),
        data_segment_bytes: 0,
    };
    with_data(&response.emit())
}
