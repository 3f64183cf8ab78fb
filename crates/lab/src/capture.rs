//! The capture of a run: the packets that passed one end of the path. They stay in memory until the run is over; then
//! the whole frames are analysed, and their headers are written.

mod packets;
mod record;
mod setup;

pub(crate) use packets::{SentFrame, sent_frames};
pub use record::{CaptureRecord, CapturedCommand, CapturedConnection};
pub use setup::CaptureSetup;

use crate::relay::{RelayReport, Sighting, Tap};
use observe::{Analyser, CaptureWriter, Digests, Frame, Gap, LinkType, Options};
use pdu::Instant;
use std::sync::mpsc::Receiver;
use std::time::UNIX_EPOCH;

/// The result of a capture.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The part that is kept with the run.
    pub record: CaptureRecord,
    /// Every command that ended within it, with times of [`monotonic_ns`](crate::monotonic_ns).
    pub commands: Vec<CapturedCommand>,
    /// A pcapng file, with wall-clock times.
    pub file: Vec<u8>,
}

/// A capture under way.
#[derive(Debug)]
pub(crate) struct Capture {
    setup: CaptureSetup,
    sightings: Receiver<Sighting>,
}

impl Capture {
    /// Begins a capture. Give the tap to the relay.
    pub fn begin(setup: CaptureSetup) -> (Tap, Self) {
        let (tap, sightings) = Tap::new(usize::MAX, setup.memory_bytes());
        (tap.within(setup.window()), Self { setup, sightings })
    }

    /// Ends the capture. Call it when the relay has stopped.
    pub fn end(self, relay: &RelayReport, digests: Digests) -> Captured {
        let mut sightings: Vec<Sighting> = self.sightings.try_iter().collect();
        // The relay serves one direction after the other.
        sightings.sort_by_key(|sighting| sighting.at);
        // The analyser would learn the round trip only gradually, and at first from delayed acknowledgements.
        let gap = Some(Gap::duration_min(relay.round_trip));
        let mut analyser = Analyser::new(Options { digests, gap, ..Options::default() });
        for sighting in &sightings {
            analyser.frame(&frame(sighting, Instant(relay.begun_ns)), |_| ());
        }
        let analysis = analyser.report();
        let commands = analysis.connections.iter().flat_map(|connection| {
            let of_connection = connection.commands.iter().cloned();
            of_connection.map(|command| CapturedCommand { connection: connection.number, command })
        });
        Captured {
            commands: commands.collect(),
            record: CaptureRecord {
                frames: sightings.len() as u64,
                frames_lost: relay.sightings_lost,
                connections: analysis.connections.iter().map(CapturedConnection::new).collect(),
            },
            file: self.file(&sightings, relay),
        }
    }

    fn file(&self, sightings: &[Sighting], relay: &RelayReport) -> Vec<u8> {
        const WRITTEN: &str = "memory takes whatever is written";
        let mut writer = CaptureWriter::new(Vec::new()).expect(WRITTEN);
        let name = self.setup.host_name();
        let interface = writer.interface(name, LinkType::Ethernet, self.setup.snap_bytes()).expect(WRITTEN);
        let begun = Instant(day_ns(relay));
        for sighting in sightings {
            let Frame { at, bytes, wire_bytes, .. } = frame(sighting, begun);
            writer.frame(interface, at, bytes, wire_bytes).expect(WRITTEN);
        }
        writer.into_inner()
    }
}

fn frame(sighting: &Sighting, begun: Instant) -> Frame<'_> {
    Frame {
        at: begun + sighting.at,
        link: LinkType::Ethernet,
        bytes: &sighting.beginning,
        wire_bytes: sighting.frame_bytes,
    }
}

/// The wall-clock start of the relay, since 1970.
fn day_ns(relay: &RelayReport) -> u64 {
    let since = relay.begun_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    pdu::nanoseconds(since)
}
