//! Limits for each address count the IPv6 addresses of one network as one host.
//!
//! The tests need three addresses of two networks, and so a network namespace of their own.

use crate::world::*;
use pdu::LoginStatus;
use requirement::{Need, Requirement, require, skip};
use ropewalk_target::{Config, Limits};
use std::net::{Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};

/// Set for a test that was started again in a network namespace.
const AGAIN: &str = "ROPEWALK_TEST_IN_NETWORK_NAMESPACE";

const ADDRESSES: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 2),
    Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 1),
];

/// Gives the loopback device of a new namespace the addresses.
const PREPARE: &str =
    "ip link set lo up && for address in $ADDRESSES; do ip addr add $address/128 dev lo nodad; done";

/// Calls `test` in a namespace that has the addresses: in this test's program, started once more.
fn with_addresses(test: impl FnOnce()) {
    if std::env::var_os(AGAIN).is_some() {
        return test();
    }
    if !require(&[Requirement::Peers(&["unshare", "ip"])]) {
        return;
    }
    let inside = |script: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["--user", "--map-root-user", "--net", "sh", "-ec", script]);
        shell.env("ADDRESSES", ADDRESSES.map(|address| address.to_string()).join(" "));
        shell
    };
    let prepared = inside(PREPARE).stderr(Stdio::inherit()).status().unwrap();
    if !prepared.success() {
        return skip(Need::Netns, "there is no network namespace with IPv6");
    }
    let name = std::thread::current().name().expect("the harness names its threads").to_owned();
    let mut again = inside(&format!("{PREPARE}; exec \"$0\" \"$@\""));
    again.arg(std::env::current_exe().unwrap()).args([&name, "--exact", "--nocapture", "--test-threads=1"]);
    let output = again.env(AGAIN, "1").stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.lines().any(|line| line == "running 1 test"), "{said}");
}

fn world_with(limits: Limits) -> World {
    let listen = vec![SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))];
    World::with_config(Config {
        listen,
        limits,
        allow_insecure: true,
        ..config(vec![target(TARGET, &["0=ram:1M"])])
    })
}

/// For each prefix: whether the second and the third address are the host of the first.
const HOSTS: [(u8, [bool; 2]); 3] = [(128, [false, false]), (64, [true, false]), (48, [true, true])];

#[test]
fn connections_are_counted_by_network() {
    with_addresses(|| {
        for (ipv6_prefix, same) in HOSTS {
            let world = world_with(Limits { ipv6_prefix, connections_per_address: 1, ..Limits::default() });
            let mut first = world.connect_from(ADDRESSES[0]);
            first.login(TARGET, 1).unwrap();
            for (address, is_same) in ADDRESSES[1..].iter().zip(same) {
                let mut other = world.connect_from(*address);
                if is_same {
                    other.expect_closed();
                } else {
                    assert!(other.login(TARGET, 2).is_ok(), "{address} /{ipv6_prefix}");
                }
            }
        }
    });
}

#[test]
fn sessions_are_counted_by_network() {
    with_addresses(|| {
        for (ipv6_prefix, same) in HOSTS {
            let world = world_with(Limits { ipv6_prefix, sessions_per_address: 1, ..Limits::default() });
            let mut first = world.connect_from(ADDRESSES[0]);
            first.login(TARGET, 1).unwrap();
            for (address, is_same) in ADDRESSES[1..].iter().zip(same) {
                let mut other = world.connect_from(*address);
                let refused = other.login(TARGET, 2).err();
                assert_eq!(
                    refused,
                    is_same.then_some(LoginStatus::OutOfResources),
                    "{address} /{ipv6_prefix}"
                );
            }
        }
    });
}

#[test]
fn connections_in_login_are_displaced_by_network() {
    with_addresses(|| {
        let [first, second, elsewhere] = ADDRESSES;
        let arrivals = [elsewhere, elsewhere, first, second, second];
        // The largest host loses its oldest: three of one network, or five of both.
        for (ipv6_prefix, displaced) in [(64, 2), (48, 0)] {
            let limits =
                Limits { ipv6_prefix, unauthenticated_connections: arrivals.len(), ..Limits::default() };
            // No connection is closed because its login takes too long.
            let world = world_with(Limits { login_seconds: 3600, ..limits });
            let mut peers = arrivals.map(|address| world.connect_from(address));
            world.wait_for(|counters| counters.unauthenticated_connections == arrivals.len());
            let _one_more = world.connect_from(elsewhere);
            peers[displaced].expect_closed();
        }
    });
}
