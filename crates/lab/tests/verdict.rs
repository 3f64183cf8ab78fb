//! The relay knows what it cannot do. Its own program: the floods take the processors from the labs of other tests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "behaviour/world/mod.rs"]
#[allow(dead_code, reason = "the other programs use the rest")]
mod world;

use ropewalk_lab::netem::LinkModel;
use ropewalk_lab::{Lab, Namespace, Segmentation, Tap, Topology, Verdict, ping};
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use world::{in_lab, link, topology};

/// Far more than a relay that keeps up would ever see.
const DATAGRAMS_MAX: u64 = 20_000_000;

fn flood(from: &Namespace, to: IpAddr, is_over: &AtomicBool) {
    let bound = from.run(|| UdpSocket::bind("0.0.0.0:0"));
    let socket = bound.and_then(|socket| socket).expect("there is room for a socket");
    let sent = (0..DATAGRAMS_MAX).take_while(|_| !is_over.load(Relaxed));
    // What the kernel refuses is no load.
    sent.for_each(|_| drop(socket.send_to(&[0; 64], (to, 9))));
}

#[test]
fn an_overloaded_relay_is_invalid() {
    in_lab(|| {
        let path = LinkModel { queue: "1GB".parse().unwrap(), ..link(100_000, Duration::from_millis(1)) };
        let topology = Topology { segmentation: Segmentation::PerPacket, ..topology(path) };
        let lab = Lab::build(&topology, None).unwrap();
        let (to, is_over) = (lab.server.addresses[0], AtomicBool::new(false));
        std::thread::scope(|scope| {
            let floods = [(); 2].map(|()| scope.spawn(|| flood(&lab.client.namespace, to, &is_over)));
            while lab.relay.report().verdict().is_valid() && !floods.iter().all(ScopedJoinHandle::is_finished)
            {
                std::thread::yield_now();
            }
            is_over.store(true, Relaxed);
        });
        let verdict = lab.relay.stop().verdict();
        assert!(matches!(&verdict, Verdict::Invalid(reasons) if !reasons.is_empty()), "{verdict}");
    });
}

#[test]
fn a_tap_without_room_loses_sightings_and_nothing_else() {
    in_lab(|| {
        let (tap, sightings) = Tap::new(34, 0);
        let lab = Lab::build(&topology(link(100, Duration::ZERO)), Some(tap)).unwrap();
        let round_trips = ping(&lab.client.namespace, lab.server.addresses[0], 2).unwrap();
        assert_eq!(round_trips.len(), 2);
        // Requests and answers are seen at both ends; and perhaps what kernels say of multicast.
        assert!(lab.relay.stop().sightings_lost >= 8);
        assert_eq!(sightings.iter().count(), 0);
    });
}
