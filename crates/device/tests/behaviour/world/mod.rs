//! A target node and initiators, joined by real logins and by bytes that are handed over: no runtime, no socket, no
//! clock.

pub mod extended_copy;
pub mod forgetful_disk;
pub mod held_disk;
pub mod initiator;
pub mod virtual_host;

use block::Backend;
use initiator::Initiator;
use pdu::LoginStatus;
use ropewalk_device::{
    Environment, Gauges, Host, Ipv6Prefix, LogicalUnit, Memory, SessionLimits, TargetNode, UnitDescription,
    Visibility, Visitor,
};
use session::target::TargetRecord;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use virtual_host::VirtualHost;

pub const TARGET: &str = "iqn.2026-01.net.example:disk";
pub const PORTAL_GROUP: u16 = 1;
pub const BLOCK: u32 = 512;
pub const PING_AFTER: Duration = Duration::from_secs(10);
pub const PING_TIMEOUT: Duration = Duration::from_secs(5);
pub const BUFFER_BYTES: usize = 64 << 20;

/// The ISID of the initiator that may use more than the others, which all have one name.
pub const TRUSTED: u8 = 0xee;
pub const TRUSTED_NAME: &str = "iqn.2026-01.net.example:trusted";
/// The unit that only it may use.
pub const HIDDEN_UNIT: u16 = 7;

/// Everybody may use everything, except [`HIDDEN_UNIT`].
struct AlmostOpen;

impl Visibility for AlmostOpen {
    fn shows_unit(&self, visitor: &Visitor<'_>, _: &str, number: u16) -> bool {
        number != HIDDEN_UNIT || visitor.initiator_name == TRUSTED_NAME
    }

    fn targets(&self, _: &Visitor<'_>, portal: SocketAddr, _: Option<&str>) -> Vec<TargetRecord> {
        let target_addresses = vec![format!("{portal},{PORTAL_GROUP}")];
        vec![TargetRecord { target_name: TARGET.into(), target_addresses }]
    }
}

/// A unit of this number, called "disk" and its number.
pub fn unit(number: u16) -> UnitDescription {
    UnitDescription {
        number,
        identity: scsi::Identity::from_name(&format!("disk{number}")),
        target_port: scsi::TargetPort {
            target_name: TARGET.into(),
            portal_group_tag: PORTAL_GROUP,
            relative_identifier: 1,
        },
        other_ports: vec![],
        physical_bytes: None,
        removable: false,
        read_only: false,
        threshold_percent: None,
        write_same_to_end: false,
    }
}

pub struct World {
    pub host: Rc<VirtualHost>,
    pub gauges: Arc<Gauges>,
    pub memory: Memory,
    pub environment: Rc<Environment>,
    pub node: Rc<TargetNode>,
}

impl World {
    /// A target with this as its LUN 0.
    pub fn with_disk(disk: Arc<dyn Backend>) -> Self {
        Self::with_units(vec![(unit(0), disk)])
    }

    /// A target with these units.
    pub fn with_units(units: Vec<(UnitDescription, Arc<dyn Backend>)>) -> Self {
        Self::with_memory(BUFFER_BYTES, units)
    }

    /// A target with these units, and so much memory for transfers.
    pub fn with_memory(buffer_bytes: usize, units: Vec<(UnitDescription, Arc<dyn Backend>)>) -> Self {
        let (host, gauges) = (Rc::new(VirtualHost::default()), Arc::new(Gauges::default()));
        let memory = Memory::new(buffer_bytes);
        let limits = SessionLimits {
            window_commands: 32,
            sessions_per_address: 4,
            ipv6_prefix: Ipv6Prefix::LINK,
            ping_after: PING_AFTER,
            ping_timeout: PING_TIMEOUT,
        };
        let environment = Environment::new(
            Rc::clone(&host) as Rc<dyn Host>,
            Arc::new(AlmostOpen),
            memory.clone(),
            limits,
            Arc::clone(&gauges),
        );
        let units = units.into_iter();
        let units =
            units.map(|(unit, disk)| Rc::new(LogicalUnit::new(unit, disk, &memory).unwrap())).collect();
        let node = TargetNode::new(&environment, TARGET.into(), units, 16);
        Self { host, gauges, memory, environment, node }
    }

    /// Lets so much time pass, and everybody do what there is to do meanwhile.
    pub fn pass(&self, time: Duration, initiators: &mut [&mut Initiator]) {
        let end = self.host.now() + time;
        Host::spawn(&*self.host, self.host.sleep_until(end));
        self.run(initiators);
        while self.host.now() < end {
            assert!(self.host.advance(), "nothing more happens");
            self.run(initiators);
        }
    }

    /// Logs an initiator in that asks for a new session; it may still have to wait for its place.
    pub fn log_in(&self, isid: u8) -> Initiator {
        self.log_in_from(Ipv4Addr::LOCALHOST.into(), isid)
    }

    /// The same from this address.
    pub fn log_in_from(&self, address: IpAddr, isid: u8) -> Initiator {
        Initiator::start(self, isid, address, 0)
    }

    /// An initiator that is logged in.
    pub fn initiator(&self, isid: u8) -> Initiator {
        self.initiator_at_level(0, isid)
    }

    /// An initiator that is logged in, with a session of this error recovery level.
    pub fn initiator_at_level(&self, error_recovery_level: u8, isid: u8) -> Initiator {
        let mut initiator = Initiator::start(self, isid, Ipv4Addr::LOCALHOST.into(), error_recovery_level);
        self.run(&mut [&mut initiator]);
        assert_eq!(initiator.login_result(), Some(Ok::<(), LoginStatus>(())));
        initiator
    }

    /// Lets everybody do what can be done without time passing.
    pub fn run(&self, initiators: &mut [&mut Initiator]) {
        loop {
            let mut busy = self.host.settle();
            for initiator in initiators.iter_mut() {
                busy |= initiator.exchange(self.host.now());
            }
            if !busy {
                return;
            }
        }
    }
}
