//! Compares our initiator and target with plain streams over as many connections.

use crate::contender::Contender;
use crate::measure::{Measurement, moved, rounds, run, with_spread};
use crate::plain_stream;
use crate::{CLIENT_CORE, Effort};
use ropewalk_interop::binary;
use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

const CONNECTIONS: [usize; 3] = [1, 4, 8];

/// Requests outstanding: enough to keep every connection busy.
const REQUESTS: usize = 32;

pub fn measure(effort: Effort) -> anyhow::Result<String> {
    let contender = Contender::ropewalk_ram()?;
    let mut text = String::from(
        "## Our initiator and target beside plain streams\n\n\
         `ropewalk bench` with requests of 1 MiB, 32 outstanding, to a target that serves `ram:`, beside plain sockets that carry the same memory over \
         the same number of connections. MB/s (10^6 bytes).\n\n\
         | way | connections | ropewalk | plain streams | ratio |\n|---|---:|---:|---:|---:|\n",
    );
    for (way, from_target) in [("read", true), ("write", false)] {
        for connections in CONNECTIONS {
            eprintln!("{way} over {connections} connections");
            let (mut ours, mut plain) = (Vec::new(), Vec::new());
            for _ in 0..effort.rounds {
                ours.push(ropewalk(&contender, way, connections, effort.duration)?.bytes_per_second);
                plain.push(plain_stream::bytes_per_second(
                    connections,
                    REQUESTS,
                    from_target,
                    effort.duration,
                )?);
            }
            let ratio = with_spread(&rounds(ours.iter().zip(&plain).map(|(ours, plain)| ours / plain))?);
            let (ours, plain) = (rounds(ours)?.median() / 1e6, rounds(plain)?.median() / 1e6);
            writeln!(text, "| {way} | {connections} | {ours:.0} | {plain:.0} | {ratio} |")?;
        }
    }
    Ok(text)
}

/// One run of `ropewalk bench`.
pub fn ropewalk(
    contender: &Contender,
    way: &str,
    connections: usize,
    duration: Duration,
) -> anyhow::Result<Measurement> {
    let mut client = Command::new(binary()?);
    client.args(["bench", &contender.url, "--rw", way, "--request-size", "1M", "--json"]);
    client.args(["--requests", &REQUESTS.to_string(), "--connections", &connections.to_string()]);
    client.args(["--runtime", &format!("{}s", duration.as_secs())]);
    if way == "write" {
        client.arg("--destroy-data");
    }
    run(contender.program(), &[CLIENT_CORE], &client, moved)
}
