//! Limits of one host hold for it whatever addresses it has.

use crate::world::{BLOCK, World};
use block::Ram;
use pdu::LoginStatus;
use std::sync::Arc;

/// How logins from these addresses end, one after the other.
fn logins(world: &World, addresses: impl Iterator<Item = String>) -> Vec<Result<(), LoginStatus>> {
    let mut initiators = Vec::new();
    for (isid, address) in (1..).zip(addresses) {
        let mut initiator = world.log_in_from(address.parse().unwrap(), isid);
        world.run(&mut [&mut initiator]);
        initiators.push(initiator);
    }
    initiators.iter().map(|initiator| initiator.login_result().unwrap()).collect()
}

fn world() -> World {
    World::with_disk(Arc::new(Ram::new(BLOCK, 8).unwrap()))
}

#[test]
fn a_host_has_no_more_sessions_with_every_address_of_its_network_than_with_one() {
    let one_network = (1..=6).map(|host| format!("2001:db8::{host}"));
    let another = (1..=2).map(|host| format!("2001:db8:0:1::{host}"));
    let refused = Err(LoginStatus::OutOfResources);
    let expected = [Ok(()), Ok(()), Ok(()), Ok(()), refused, refused, Ok(()), Ok(())];
    assert_eq!(logins(&world(), one_network.chain(another)), expected);
}

#[test]
fn an_ipv4_host_is_the_same_when_it_comes_through_ipv6() {
    let addresses = ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1"];
    let neighbour = "::ffff:192.0.2.2";
    let expected = [Ok(()), Ok(()), Ok(()), Ok(()), Err(LoginStatus::OutOfResources), Ok(())];
    assert_eq!(logins(&world(), addresses.into_iter().chain([neighbour]).map(Into::into)), expected);
}
