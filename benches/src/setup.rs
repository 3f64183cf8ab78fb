//! The report's head: the programs, the machine, the commit and the date.

use crate::{CLIENT_CORE, Effort, TARGET_CORE, WORKING_SET_MIB, machine, packages};
use std::fs;

/// The packages of the programs that are measured beside ropewalk.
const OTHERS: [&str; 4] = ["tgt", "istgt", "libiscsi-bin", "qemu-utils"];

/// The report's beginning.
pub fn describe(effort: Effort) -> anyhow::Result<String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let congestion = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
    Ok(format!(
        "# Speed and memory\n\n\
         Written by `{command}`, built from commit {commit}, on {date}: medians of {rounds} rounds of {seconds} s \
         each; in every round, the contenders of a cell take turns.\n\n\
         * Machine: {machine}. Loopback; congestion control {congestion}; targets on core \
         {TARGET_CORE}, clients on core {CLIENT_CORE}.\n\
         * Storage: {WORKING_SET_MIB} MiB of memory, fully written beforehand.\n\
         * Others: {others}.\n",
        command = format!("benches/run {}", arguments.join(" ")).trim(),
        commit = machine::commit(),
        date = machine::today(),
        rounds = effort.rounds,
        seconds = effort.duration.as_secs(),
        machine = machine::describe(),
        congestion = congestion.trim(),
        others = packages::installed(&OTHERS).join(", "),
    ))
}
