//! Two hosts on one machine, with a path of a wide-area network between them.

use crate::interface::HostInterface;
use crate::kernel_settings::{KernelSettings, SettingRefused, has_ipv6};
use crate::namespace::Namespace;
use crate::relay::{Relay, RelayError, Tap};
use crate::rights::{NoRights, Rights};
use crate::topology::{Host, Topology};
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
        Ok(Self { namespace, addresses: interface.addresses, settings })
    }
}
