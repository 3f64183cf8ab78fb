//! The kernel's TCP settings in a host's namespace.

use crate::lab::LabError;
use crate::namespace::Namespace;
use crate::relay::scheduling::Division;
use crate::topology::Topology;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

/// The kernel's settings (sysctl) that affect a run, by name, with the values in force in a host's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct KernelSettings(pub BTreeMap<String, String>);

/// A setting that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("setting {name} to \"{value}\": {source}; take it out of the setup, or load the module that has it")]
pub struct SettingRefused {
    /// The setting's name.
    pub name: String,
    /// The requested value.
    pub value: String,
    /// The kernel's error.
    pub source: io::Error,
}

/// Settings that are recorded but not changed.
const RECORDED: &[&str] = &[
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_limit_output_bytes",
    "net.core.rmem_max",
    "net.core.wmem_max",
];

/// The processors on which new interfaces' packets are processed. Linux has it since 6.3.
const RPS_DEFAULT_MASK: &str = "net.core.rps_default_mask";

impl KernelSettings {
    /// Applies the settings of `topology`, and reads back those in force.
    pub(crate) fn apply(topology: &Topology, host: &Namespace) -> Result<Self, LabError> {
        let wanted = wanted(topology);
        let apply = || {
            for (name, value) in &wanted {
                write(name, value)?;
            }
            let set = wanted.iter().map(|(name, _)| Ok((name.clone(), read(name)?)));
            let others = RECORDED.iter().filter_map(|name| Some(Ok(((*name).to_owned(), read(name).ok()?))));
            set.chain(others).collect::<Result<BTreeMap<_, _>, LabError>>()
        };
        let mut settings = host.run(apply)??;
        // Older kernels have some of them only for the whole machine.
        let missing = RECORDED.iter().filter(|name| !settings.contains_key(**name));
        let of_machine: Vec<_> =
            missing.filter_map(|name| Some(((*name).to_owned(), read(name).ok()?))).collect();
        settings.extend(of_machine);
        Ok(Self(settings))
    }
}

fn wanted(topology: &Topology) -> Vec<(String, String)> {
    let bytes_max = topology.tcp_buffer_bytes_max;
    let mut wanted = vec![
        // The smallest and the first buffer are the kernel's defaults.
        ("net.ipv4.tcp_rmem", format!("4096 131072 {bytes_max}")),
        ("net.ipv4.tcp_wmem", format!("4096 16384 {bytes_max}")),
        // Otherwise a connection would start with the results of an earlier one on the same path.
        ("net.ipv4.tcp_no_metrics_save", "1".to_owned()),
    ];
    if let Some(division) = Division::of_this_thread()
        && file(RPS_DEFAULT_MASK).exists()
    {
        // TCP would otherwise receive each packet within the relay's call that sends it.
        wanted.push((RPS_DEFAULT_MASK, division.hosts_mask()));
    }
    if has_ipv6() {
        // As few other packets as possible.
        wanted.push(("net.ipv6.conf.default.accept_ra", "0".to_owned()));
        // Without duplicate address detection, which would delay the use of addresses (RFC 4862 §5.4).
        wanted.push(("net.ipv6.conf.default.accept_dad", "0".to_owned()));
        wanted.push(("net.ipv6.conf.default.router_solicitations", "0".to_owned()));
        // No link-local addresses.
        wanted.push(("net.ipv6.conf.default.addr_gen_mode", "1".to_owned()));
    }
    let wanted = wanted.into_iter().map(|(name, value)| (name.to_owned(), value));
    wanted.chain(topology.settings.clone()).collect()
}

/// Whether the kernel supports IPv6.
pub(crate) fn has_ipv6() -> bool {
    file("net.ipv6.conf").exists()
}

fn write(name: &str, value: &str) -> Result<(), SettingRefused> {
    fs::write(file(name), value).map_err(|source| SettingRefused {
        name: name.to_owned(),
        value: value.to_owned(),
        source,
    })
}

/// Reads a setting in the calling thread's namespace.
fn read(name: &str) -> io::Result<String> {
    let text = fs::read_to_string(file(name));
    let text = text.map_err(|error| io::Error::new(error.kind(), format!("reading {name}: {error}")))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn file(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}
