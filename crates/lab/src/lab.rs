//! Two hosts on one machine, with a WAN path between them.

use crate::interface::HostInterface;
use crate::kernel_settings::{KernelSettings, SettingRefused, has_ipv6};
use crate::namespace::Namespace;
use crate::relay::{Relay, RelayError, Tap};
use crate::rights::{NoRights, Rights};
use crate::topology::{Host, IpVersion, Topology};
use std::io;
use std::net::IpAddr;

/// Two hosts and the relay between them. Nothing of it has a name outside this process, so the end of the process
/// removes all of it.
#[derive(Debug)]
pub struct Lab {
    /// The host where the load runs.
    pub client: LabHost,
    /// The host that serves it.
    pub server: LabHost,
    /// The relay between them.
    pub relay: Relay,
    /// The rights that built it.
    pub rights: Rights,
}

/// A host in a [`Lab`].
#[derive(Debug)]
pub struct LabHost {
    /// The namespace for its programs.
    pub namespace: Namespace,
    /// The addresses of its interface, IPv4 first.
    pub addresses: Vec<IpAddr>,
    /// The first address of the version that workloads use.
    pub address: IpAddr,
    /// All addresses of that version.
    pub portals: Vec<IpAddr>,
    /// Its kernel settings.
    pub settings: KernelSettings,
}

/// A lab that could not be built.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// This process may not build one.
    #[error(transparent)]
    NoRights(#[from] NoRights),
    /// The kernel refused a setting.
    #[error(transparent)]
    Setting(#[from] SettingRefused),
    /// The kernel refused a namespace or an interface.
    #[error("building a network: {0}")]
    Network(#[from] io::Error),
    /// IPv6 was requested, but the kernel lacks it.
    #[error("this machine has no IPv6: its kernel was built or started without it")]
    NoIpv6,
    /// The relay could not start.
    #[error(transparent)]
    Relay(#[from] RelayError),
}

impl Lab {
    /// Builds the hosts, and starts the relay.
    ///
    /// # Errors
    /// A missing right or feature, or a defect of `topology`.
    pub fn build(topology: &Topology, tap: Option<Tap>) -> Result<Self, LabError> {
        let rights = Rights::of_this_process()?;
        let middle = Namespace::new()?;
        let client = LabHost::build(Host::Client, topology, &middle)?;
        let server = LabHost::build(Host::Server, topology, &middle)?;
        let paths = (&topology.path, topology.second.as_ref());
        let relay = Relay::start(&middle, paths, topology.seed, tap)?;
        Ok(Self { client, server, relay, rights })
    }
}

impl LabHost {
    fn build(host: Host, topology: &Topology, middle: &Namespace) -> Result<Self, LabError> {
        let namespace = Namespace::new()?;
        // Before the interface exists, because an interface takes over the defaults.
        let settings = KernelSettings::apply(topology, &namespace)?;
        let addresses = |host: Host| host.addresses(topology.addresses, has_ipv6());
        let interface = HostInterface {
            host,
            mtu: topology.interface_mtu(),
            segmentation: topology.segmentation,
            addresses: addresses(host),
            neighbours: addresses(host.other()),
            metrics: topology.route_metrics(),
        };
        interface.build(&namespace, middle)?;
        let addresses = interface.addresses;
        let is_wanted = |address: &&IpAddr| address.is_ipv6() == (topology.ip == IpVersion::V6);
        let portals: Vec<IpAddr> = addresses.iter().filter(is_wanted).copied().collect();
        let address = *portals.first().ok_or(LabError::NoIpv6)?;
        Ok(Self { namespace, addresses, address, portals, settings })
    }
}
