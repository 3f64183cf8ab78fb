//! Captures, which may be anyone's.

use observe::{Analyser, CaptureWriter, LinkType, Options, read_capture};
use pdu::Instant;

/// The longest frame that is made of an input.
const FRAME_BYTES_MAX: usize = 255;

/// Any bytes as a capture, and again as frames of a capture that is well-formed: each of the length that its first byte
/// says, and longer on the wire by its second.
///
/// # Panics
/// If more is told than was captured, or a frame does not survive being written and read.
pub fn capture(input: &[u8]) {
    let _ = analyse(input);
    let Ok(written) = write(input) else { return };
    let told = analyse(&written);
    assert_eq!(told, frames(input).count() as u64, "every frame survives being written");
}

/// How many frames are told of a capture.
fn analyse(bytes: &[u8]) -> u64 {
    let mut analyser = Analyser::new(Options::default());
    let mut pdus = 0_u64;
    let mut frames = 0_u64;
    let _ = read_capture(bytes, |frame| {
        frames += 1;
        analyser.frame(frame, |_| pdus += 1);
    });
    let analysis = analyser.report();
    assert_eq!(analysis.capture.frames, frames);
    let _ = analysis.report("any capture");
    for connection in &analysis.connections {
        let commands = connection.commands.len() as u64 + connection.commands_without_status;
        assert!(commands <= connection.to_target.counters.bytes, "a command takes bytes");
        for direction in [&connection.to_target, &connection.to_initiator] {
            assert!(direction.pdus <= pdus && direction.invalid_pdus <= direction.pdus);
            assert!(direction.counters.cut_bytes == 0 || direction.counters.segments > 0);
        }
    }
    frames
}

/// Cuts the input into frames and what each is longer on the wire.
fn frames(input: &[u8]) -> impl Iterator<Item = (&[u8], u8)> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let (&[bytes, longer], after) = rest.split_first_chunk()?;
        let frame = after.split_at(usize::from(bytes).min(after.len()).min(FRAME_BYTES_MAX));
        rest = frame.1;
        Some((frame.0, longer))
    })
}

fn write(input: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut writer = CaptureWriter::new(Vec::new())?;
    let interface = writer.interface("any", LinkType::RawIp, 0)?;
    for (number, (frame, longer)) in frames(input).enumerate() {
        let wire_bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX) + u32::from(longer);
        writer.frame(interface, Instant(number as u64), frame, wire_bytes)?;
    }
    Ok(writer.into_inner())
}
