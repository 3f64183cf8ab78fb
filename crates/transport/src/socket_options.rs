//! The options of every socket.

use crate::pacing;
use crate::retransmission_timeout;
use crate::socket_buffer::SocketBuffer;
use ::congestion::Control;
use framing::{Congestion, InForce, SocketOptions, SocketOptionsError};
use policy::law::GroupTerms;
use socket2::{SockRef, TcpKeepalive};
use std::fmt::Display;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// TCP itself notices a peer whose host vanished, even when no ping is due.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// Sets the options. Call it before the socket connects: a socket that starts with BBR, as the system's default, keeps
/// pacing its segments under any other congestion control.
///
/// # Errors
/// The first option that the kernel refused or granted only in part, such as an unknown congestion control or a buffer
/// beyond the system's limit.
pub fn apply(options: &SocketOptions, socket: &impl AsFd) -> Result<(), SocketOptionsError> {
    let socket = SockRef::from(socket);
    set("TCP_NODELAY", "1", socket.set_tcp_nodelay(true))?;
    if let Some(bytes) = options.unsent.first_bytes() {
        set("TCP_NOTSENT_LOWAT", bytes, socket.set_tcp_notsent_lowat(bytes))?;
    }
    let keepalive = socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_IDLE));
    set("SO_KEEPALIVE", KEEPALIVE_IDLE.as_secs(), keepalive)?;
    if let Some(congestion) = &options.congestion {
        choose(congestion, options.group, &*socket)?;
    }
    if options.is_paced {
        set("SO_MAX_PACING_RATE", "unbounded", pacing::pace(&*socket))?;
    }
    let timeout_min = options.retransmission_timeout_min;
    set("TCP_RTO_MIN_US", timeout_min.as_micros(), retransmission_timeout::set_min(&*socket, timeout_min))?;
    if let Some(bytes) = options.send_buffer_bytes {
        SocketBuffer::Send.set(&*socket, bytes)?;
    }
    if let Some(bytes) = options.receive_buffer_bytes {
        SocketBuffer::Receive.set(&*socket, bytes)?;
    }
    Ok(())
}

/// Chooses the congestion control, and the group under it, none if that is zero. Where one of ours cannot be used, one of
/// the kernel's own is, and a warning says so once.
///
/// # Errors
/// If the kernel refuses a control that is not ours.
pub fn choose(congestion: &Congestion, group: u64, socket: &impl AsFd) -> Result<(), SocketOptionsError> {
    let Some(control) = Control::named(&congestion.name) else {
        return set_congestion(&congestion.name, socket);
    };
    match choose_ours(control, congestion.terms, group, socket) {
        Ok(()) => Ok(()),
        Err(error) => set_congestion(control.instead(&error), socket),
    }
}

/// A socket joins its group when it begins with a control, so one that has it already begins anew, unless it has the group of
/// its host, which does not depend on the session.
fn choose_ours(
    control: Control,
    terms: GroupTerms,
    group: u64,
    socket: &impl AsFd,
) -> Result<(), congestion::Error> {
    let name = control.name();
    if control.has_groups() && (group != 0 || terms.is_of_host) {
        let is_in_force = congestion_of(socket).is_ok_and(|in_force| in_force == name);
        if is_in_force && terms.is_of_host && congestion::has_group(socket.as_fd()) == Some(true) {
            return Ok(());
        }
        congestion::name_group(socket.as_fd(), group, terms)?;
        if is_in_force {
            // If this fails, the socket keeps the group that it has.
            let _ = set_congestion(BETWEEN, socket);
        }
    }
    set_congestion(name, socket).map_err(|error| match error.source.kind() {
        io::ErrorKind::NotFound => congestion::Error::NotLoaded(control),
        _ => congestion::Error::Refused { what: "choose", control, problem: error.source.to_string() },
    })
}

fn set_congestion(name: &str, socket: &impl AsFd) -> Result<(), SocketOptionsError> {
    set("TCP_CONGESTION", name, SockRef::from(socket).set_tcp_congestion(name.as_bytes()))
}

/// A congestion control that every kernel has.
const BETWEEN: &str = "reno";

/// The congestion control that a socket uses now, by the kernel's name.
///
/// # Errors
/// The system's own.
pub fn congestion_of(socket: &impl AsFd) -> io::Result<String> {
    let name = SockRef::from(socket).tcp_congestion()?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// What really counts on a connected socket. Warns once if its group could not be had.
pub fn in_force(socket: &impl AsFd) -> InForce {
    let congestion = congestion_of(socket).ok();
    let control = congestion.as_deref().and_then(Control::named).filter(|control| control.has_groups());
    if let Some(control) = control.filter(|_| congestion::has_group(socket.as_fd()) == Some(false)) {
        control.warn_of_no_room();
    }
    InForce { congestion }
}

fn set(option: &'static str, value: impl Display, result: io::Result<()>) -> Result<(), SocketOptionsError> {
    result.map_err(|source| SocketOptionsError { option, value: value.to_string(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_congestion_control_that_was_asked_for_is_in_force() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let options =
            SocketOptions { congestion: Some(Congestion::named("reno")), ..SocketOptions::default() };
        apply(&options, &socket).unwrap();
        assert_eq!(congestion_of(&socket).unwrap(), "reno");
    }

    #[test]
    fn a_socket_is_paced_if_that_was_asked_for() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = SocketOptions { is_paced: true, ..SocketOptions::default() };
        apply(&options, &socket).unwrap();
        assert!(pacing::is_paced(&socket).unwrap());
    }

    #[test]
    fn the_least_retransmission_timeout_is_as_asked_for_if_the_kernel_has_one() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        // A whole number of ticks at all of Linux's tick rates.
        let min = Duration::from_millis(40);
        let options = SocketOptions { retransmission_timeout_min: min, ..SocketOptions::default() };
        apply(&options, &socket).unwrap();
        if let Some(in_force) = retransmission_timeout::min(&socket).unwrap() {
            assert_eq!(in_force, min);
        }
    }

    #[test]
    fn an_unknown_congestion_control_is_refused_by_name() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let options =
            SocketOptions { congestion: Some(Congestion::named("warp")), ..SocketOptions::default() };
        let refusal = apply(&options, &socket).unwrap_err().to_string();
        assert!(refusal.starts_with("cannot set TCP_CONGESTION to warp"), "{refusal}");
    }
}
