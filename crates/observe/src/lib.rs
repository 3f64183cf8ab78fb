//! Observations of the network: reads and writes captures, analyses their TCP connections and iSCSI commands, and
//! models the kernel's view of its sockets.
//!
//! * [`read_capture`] reads pcap and pcapng; [`CaptureWriter`] writes pcapng.
//! * [`Analyser`] takes [`Frame`]s and follows every TCP connection: order, repetitions, round trips, data in flight.
//!   It finds iSCSI on any port and cuts it into PDUs, each of which it reports as a [`PduRecord`].
//! * [`Analysis`] has the times of every command; [`timing`] defines them.
//! * [`SocketsReport`] has samples of the kernel's view of sockets: [`TcpInfo`], [`SocketMemory`].
//! * [`TcpTrace`] has the events of connections.
//! * [`OffCpuReport`] has the waits of a process in the kernel.
//! * [`statistics`] summarises repeated measurements; [`report`] makes figures and tables for people.
//!
//! A capture may come from anyone and anywhere on the path, and may be truncated, incomplete or malicious: all memory
//! is bounded, and losses are reported.

#![forbid(unsafe_code)]

mod analyser;
mod analysis;
mod capture_reader;
mod capture_writer;
mod command;
mod commands;
mod connection;
mod digests;
mod fields;
mod flight;
mod frame;
mod login;
mod off_cpu;
mod pdu_cutter;
mod pdu_record;
pub mod report;
mod segment;
mod socket_memory;
mod socket_series;
pub mod statistics;
mod stream;
mod tcp_event;
mod tcp_info;
mod timeline;
pub mod timing;

pub use analyser::{Analyser, Options};
pub use analysis::{Analysis, CaptureReport, CommandSummary, ConnectionReport, DirectionReport, RttReport};
pub use capture_reader::{CaptureError, ReadSummary, read_capture};
pub use capture_writer::{CaptureWriter, InterfaceId};
pub use command::{Gap, Kind};
pub use digests::Digests;
pub use fields::Fields;
pub use frame::{Frame, LinkType};
pub use off_cpu::{OffCpuReport, OffCpuStack};
pub use pdu_record::PduRecord;
pub use segment::Segment;
pub use socket_memory::SocketMemory;
pub use socket_series::{CongestionControl, SocketSample, SocketSeries, SocketsReport};
pub use stream::StreamCounters;
pub use tcp_event::{TcpEvent, TcpEventKind, TcpTrace};
pub use tcp_info::{CongestionState, TcpInfo, TcpState, slow_start_threshold};
pub use timeline::{Flow, Point, Timeline};
pub use timing::CommandReport;
