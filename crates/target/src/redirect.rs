//! Targets that have moved (RFC 7143 §11.13.5).

use serde::Deserialize;
use session::login::target::Redirection;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// `host[:port][,temporary|permanent]`: sends initiators there, temporarily by default.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Redirect {
    address: String,
    permanent: bool,
}

/// A text that is not a redirection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a redirection: write HOST:PORT[,temporary|permanent], an IPv6 address in brackets, as \
     storage.example.com:3260 or [2001:db8::1]:3260,permanent"
)]
pub struct InvalidRedirect(String);

/// The longest address: a simple value (§6.1).
const ADDRESS_BYTES_MAX: usize = 255;

impl FromStr for Redirect {
    type Err = InvalidRedirect;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, word) = text.split_once(',').unwrap_or((text, "temporary"));
        let permanent = match word.trim() {
            "temporary" => Some(false),
            "permanent" => Some(true),
            _ => None,
        };
        let permanent = permanent.filter(|_| is_address(address));
        let redirect = permanent.map(|permanent| Self { address: address.to_owned(), permanent });
        redirect.ok_or_else(|| InvalidRedirect(text.to_owned()))
    }
}

impl TryFrom<String> for Redirect {
    type Error = InvalidRedirect;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// `host[:port]`, the host a name, an IPv4 address, or an IPv6 address in brackets (§13.8).
fn is_address(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, rest))) if host.parse::<Ipv6Addr>().is_ok() => (
            host,
            rest.strip_prefix(':').or(
                // After the bracket comes a port or nothing.
                rest.is_empty().then_some("3260"),
            ),
        ),
        Some(_) => return false,
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, Some("3260")),
        },
    };
    let in_name = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
    let is_host = text.starts_with('[') || !host.is_empty() && host.chars().all(in_name);
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port != 0));
    is_host && is_port && text.len() <= ADDRESS_BYTES_MAX
}

impl From<&Redirect> for Redirection {
    fn from(redirect: &Redirect) -> Self {
        Self { address: redirect.address.clone(), permanent: redirect.permanent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirection_is_temporary_unless_it_says_otherwise() {
        for (text, address, permanent) in [
            ("storage.example.com", "storage.example.com", false),
            ("192.0.2.1:860", "192.0.2.1:860", false),
            ("[2001:db8::1]:3260,permanent", "[2001:db8::1]:3260", true),
            ("[::1],temporary", "[::1]", false),
        ] {
            let expected = Redirect { address: address.into(), permanent };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_initiators_could_not_follow_is_refused() {
        for text in [
            "",
            ":3260",
            "host:",
            "host:0",
            "host:x",
            "::1",
            "2001:db8::1:3260",
            "[::1",
            "[::1]3260",
            "[x]:1",
            "a b",
            "host,",
            "host,soon",
            "host:1,permanent,1",
        ] {
            assert!(text.parse::<Redirect>().is_err(), "{text}");
        }
    }
}
