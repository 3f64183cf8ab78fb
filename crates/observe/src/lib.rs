//! What is observed of the network: captures, read and written, and what they say of TCP and of every iSCSI command;
//! what the kernel tells of its sockets.
//!
//! * [`read_capture`] reads pcap and pcapng; [`CaptureWriter`] writes pcapng.
//! * [`Analyser`] takes [`Frame`]s in and follows every TCP connection: order, repetitions, round trips, what is in
//!   flight. In each it looks for iSCSI, on any port, and cuts it into PDUs, each of which is told as a [`PduRecord`].
//! * [`Analysis`] says of every command where its time went; [`timing`] defines the times.
//! * [`SocketsReport`] is what the kernel told of sockets over time: [`TcpInfo`], [`SocketMemory`].
//! * [`TcpTrace`] is what happened to connections, event by event.
//! * [`OffCpuReport`] is where in the kernel a process waited.
//! * [`statistics`] of repeated measurements, and [`report`]: figures and tables that a person reads.
//!
//! A capture may be anyone's, taken anywhere on the path, cut short, incomplete or made to harm: all memory is bounded,
//! and what was lost is told.

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
