//! The interfaces of a lab: pairs of virtual Ethernet interfaces between a host's namespace and the relay's.

use crate::frame::{Frame, Offload};
use crate::namespace::{Namespace, on_a_thread};
use crate::relay::buffers::Buffers;
use crate::relay::packet_socket::{Batch, PacketSocket};
use crate::topology::{Host, PREFIX_BITS_V4, PREFIX_BITS_V6, Segmentation};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags};
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkAttribute};
use rtnetlink::packet_route::route::{RouteAttribute, RouteMetric, RouteScope};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// The name of the relay's end of a host's interface.
pub(crate) fn relay_interface(host: Host) -> &'static str {
    match host {
        Host::Client => "to-client",
        Host::Server => "to-server",
    }
}

/// The host's own name for it.
pub(crate) const HOST_INTERFACE: &str = "wan";

/// The properties of a host's interface.
#[derive(Clone, Debug)]
pub(crate) struct HostInterface {
    pub host: Host,
    pub mtu: u32,
    pub segmentation: Segmentation,
    pub addresses: Vec<IpAddr>,
    /// The addresses of the other host. They are preset, so that no first packet waits for an answer from across the
    /// path.
    pub neighbours: Vec<IpAddr>,
    /// Of the routes to the other host; without any, there are no routes of their own.
    pub metrics: Vec<RouteMetric>,
}

/// Building takes milliseconds.
const TIME_MAX: Duration = Duration::from_secs(10);
const ASKED_EVERY: Duration = Duration::from_millis(1);

/// The longest super-packet: an IPv4 packet is not longer.
const GSO_BYTES_MAX: u32 = 65536;

impl HostInterface {
    /// Makes the pair, and configures both ends.
    pub fn build(&self, host: &Namespace, relay: &Namespace) -> io::Result<()> {
        configure(relay, async |netlink| {
            netlink.link().add(self.pair(host).build()).execute().await?;
            let name = relay_interface(self.host);
            netlink.link().set(LinkUnspec::new_with_name(name).up().build()).execute().await
        })?;
        let index = host.run(|| index_of(HOST_INTERFACE))??;
        configure(host, async |netlink| {
            netlink.link().set(LinkUnspec::new_with_name("lo").up().build()).execute().await?;
            netlink.link().set(self.offloads().build()).execute().await?;
            self.add_addresses(&netlink, index).await?;
            self.add_neighbours(&netlink, index).await
        })?;
        wait_for_addresses(host)?;
        if !self.metrics.is_empty() {
            let outcome = configure(host, async |netlink| self.add_routes(&netlink, index).await);
            outcome.map_err(|error| {
                io::Error::other(format!("cannot make routes with {:?}: {error}", self.metrics))
            })?;
        }
        let host_end = host.run(|| PacketSocket::open(HOST_INTERFACE))??;
        let relay_end = relay.run(|| PacketSocket::open(relay_interface(self.host)))??;
        wait_until_frames_pass(&host_end, &relay_end)?;
        wait_until_frames_pass(&relay_end, &host_end)
    }

    fn pair(&self, host: &Namespace) -> LinkMessageBuilder<LinkVeth> {
        let host_end = LinkUnspec::new_with_name(HOST_INTERFACE)
            .mtu(self.mtu)
            .address(self.host.ethernet_address().to_vec())
            .setns_by_fd(host.as_fd().as_raw_fd())
            .build();
        LinkVeth::new(relay_interface(self.host), HOST_INTERFACE)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(host_end)))
            .mtu(self.mtu)
    }

    fn offloads(&self) -> LinkMessageBuilder<LinkUnspec> {
        let segments = match self.segmentation {
            Segmentation::Offloaded(segments) => segments.max(1),
            Segmentation::PerPacket => 1,
        };
        LinkUnspec::new_with_name(HOST_INTERFACE)
            .append_extra_attribute(LinkAttribute::GsoMaxSegs(segments))
            .append_extra_attribute(LinkAttribute::GsoMaxSize(GSO_BYTES_MAX))
            .up()
    }

    async fn add_addresses(&self, netlink: &Handle, index: u32) -> Result<(), rtnetlink::Error> {
        for address in &self.addresses {
            let prefix_bits = if address.is_ipv4() { PREFIX_BITS_V4 } else { PREFIX_BITS_V6 };
            netlink.address().add(index, *address, prefix_bits).execute().await?;
        }
        Ok(())
    }

    async fn add_neighbours(&self, netlink: &Handle, index: u32) -> Result<(), rtnetlink::Error> {
        let ethernet_address = self.host.other().ethernet_address();
        for neighbour in &self.neighbours {
            let request = netlink.neighbours().add(index, *neighbour);
            request.link_layer_address(&ethernet_address).execute().await?;
        }
        Ok(())
    }

    /// Adds routes with these metrics.
    async fn add_routes(&self, netlink: &Handle, index: u32) -> Result<(), rtnetlink::Error> {
        for neighbour in &self.neighbours {
            let mut route = match neighbour {
                IpAddr::V4(address) => {
                    RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(*address, 32).build()
                }
                IpAddr::V6(address) => {
                    RouteMessageBuilder::<Ipv6Addr>::new().destination_prefix(*address, 128).build()
                }
            };
            route.header.scope = RouteScope::Link;
            let metrics = RouteAttribute::Metrics(self.metrics.clone());
            route.attributes.extend([RouteAttribute::Oif(index), metrics]);
            netlink.route().add(route).execute().await?;
        }
        Ok(())
    }
}

/// Waits for IPv6 addresses, which become usable in the background.
fn wait_for_addresses(host: &Namespace) -> io::Result<()> {
    configure(host, async |netlink| {
        while has_tentative_addresses(&netlink).await? {
            tokio::time::sleep(ASKED_EVERY).await;
        }
        // The kernel finishes its work on interfaces before it answers this query.
        netlink.link().get().match_name(HOST_INTERFACE.to_owned()).execute().try_collect::<Vec<_>>().await?;
        Ok(())
    })
}

/// For experiments on a local network (IEEE 802).
const ETHERNET_TYPE: [u8; 2] = [0x88, 0xb5];

/// Waits until frames pass. The end of a pair that came up first follows the other in the background, and silently
/// drops frames until then.
fn wait_until_frames_pass(from: &PacketSocket, to: &PacketSocket) -> io::Result<()> {
    let broadcast = [&[0xff; 6][..], &[0x02, 0, 0, 0, 0, 0], &ETHERNET_TYPE, &[0; 46]].concat();
    let frame = Frame::new(Offload::default(), Buffers::default().copy_of(&broadcast));
    let mut batch = Batch::new();
    let begun = Instant::now();
    while begun.elapsed() < TIME_MAX {
        from.send([&frame].into_iter())?;
        to.receive(&mut batch)?;
        if batch.frames().any(|received| received.bytes == broadcast) {
            return Ok(());
        }
        std::thread::sleep(ASKED_EVERY);
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "no frame passes between two interfaces"))
}

async fn has_tentative_addresses(netlink: &Handle) -> Result<bool, rtnetlink::Error> {
    let addresses: Vec<_> = netlink.address().get().execute().try_collect().await?;
    let mut attributes = addresses.iter().flat_map(|address| &address.attributes);
    Ok(attributes.any(|attribute| {
        matches!(attribute, AddressAttribute::Flags(flags) if flags.contains(AddressFlags::Tentative))
    }))
}

/// Configures the interfaces of a namespace.
fn configure(
    namespace: &Namespace,
    requests: impl AsyncFnOnce(Handle) -> Result<(), rtnetlink::Error> + Send,
) -> io::Result<()> {
    on_a_thread(|| {
        namespace.enter()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection()?;
            tokio::spawn(connection);
            let outcome = tokio::time::timeout(TIME_MAX, requests(handle)).await?;
            outcome.map_err(io::Error::other)
        })
    })
}

/// The index of an interface in the calling thread's namespace.
pub(crate) fn index_of(interface: &str) -> io::Result<u32> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(socket, interface)?)
}
