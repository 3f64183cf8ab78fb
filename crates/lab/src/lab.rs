//! Two hosts on one machine, with a path of a wide-area network between them.

use crate::interface::HostInterface;
use crate::kernel_settings::{KernelSettings, SettingRefused, has_ipv6};
use crate::namespace::Namespace;
use crate::relay::{Relay, RelayError, Tap};
use crate::rights::{NoRights, Rights};
use crate::topology::{Host, IpVersion, Topology};
use std::io;
use std::net::IpAddr;

/// Two hosts and the relay between them. Nothing of it has a name outside this process, so nothing is left of it when
/// the process has ended, however it ended.
#[derive(Debug)]
pub struct Lab {
    /// One host.
    pub client: LabHost,
    /// The other.
    pub server: LabHost,
    /// What is between them.
    pub relay: Relay,
    /// By which all this was made.
    pub rights: Rights,
}

/// A host in a [`Lab`].
#[derive(Debug)]
pub struct LabHost {
    /// Where its programs are to run.
    pub namespace: Namespace,
    /// Of its interface; those of IPv4 first.
    pub addresses: Vec<IpAddr>,
    /// The first of them of the version that workloads use.
    pub address: IpAddr,
    /// What the kernel was told.
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
    /// IPv6 was asked for.
    #[error("this machine has no IPv6: its kernel was built or started without")]
    NoIpv6,
    /// There is no relay.
    #[error(transparent)]
    Relay(#[from] RelayError),
}

impl Lab {
    /// Builds the hosts, and starts the relay.
    ///
    /// # Errors
    /// What is missing, or wrong in `topology`.
    pub fn build(topology: &Topology, tap: Option<Tap>) -> Result<Self, LabError> {
        let rights = Rights::of_this_process()?;
        let middle = Namespace::new()?;
        let client = LabHost::build(Host::Client, topology, &middle)?;
        let server = LabHost::build(Host::Server, topology, &middle)?;
        let relay = Relay::start(&middle, &topology.path, topology.seed, tap)?;
        Ok(Self { client, server, relay, rights })
    }
}

impl LabHost {
    fn build(host: Host, topology: &Topology, middle: &Namespace) -> Result<Self, LabError> {
        let namespace = Namespace::new()?;
        // Before there is an interface: it takes over what is set by default.
        let settings = KernelSettings::apply(topology, &namespace)?;
        let addresses = |host: Host| host.addresses(topology.addresses, has_ipv6());
        let interface = HostInterface {
            host,
            mtu: topology.interface_mtu(),
            segmentation: topology.segmentation,
            addresses: addresses(host),
            neighbours: addresses(host.other()),
            congestion_control: topology.congestion_control.clone(),
        };
        interface.build(&namespace, middle)?;
        let addresses = interface.addresses;
        let is_wanted = |address: &&IpAddr| address.is_ipv6() == (topology.ip == IpVersion::V6);
        let address = *addresses.iter().find(is_wanted).ok_or(LabError::NoIpv6)?;
        Ok(Self { namespace, addresses, address, settings })
    }
}
