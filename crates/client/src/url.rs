//! `iscsi://[user@]host[:port]/TARGET-IQN/LUN[?congestion=NAME]`; without the parameter, the form that libiscsi and QEMU
//! use too.

use framing::Congestion;
use policy::law::InvalidTerms;
use std::fmt;
use std::str::FromStr;

/// The port that IANA assigned to iSCSI (RFC 7143 §13.8).
pub const DEFAULT_PORT: u16 = 3260;

/// The location of a logical unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Url {
    /// The CHAP name. A URL never holds a secret, which process lists and logs would show.
    pub user: Option<String>,
    /// Host and port.
    pub portal: Portal,
    /// The target's iSCSI name.
    pub target_name: String,
    /// The logical unit number, in simple addressing.
    pub lun: u16,
    /// The congestion control of connections to it; what the configuration says, if missing.
    pub congestion: Option<Congestion>,
}

/// A TCP address of a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Portal {
    /// A host name, an IPv4 address, or an IPv6 address without its brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// The defect of a URL or a portal. Its author is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// The URL does not begin with `iscsi://`.
    #[error("an iSCSI URL looks like iscsi://host[:port]/TARGET-IQN/LUN")]
    Scheme,
    /// The user's part contains a `:`.
    #[error(
        "a URL must not hold a secret: put it in a file or in LIBISCSI_CHAP_PASSWORD, and change it, for others have seen it"
    )]
    Secret,
    /// The host is missing, or its brackets do not match.
    #[error("{0:?} is not a host, host:port, [IPv6] or [IPv6]:port")]
    Portal(String),
    /// The target's name is missing or invalid.
    #[error("{0:?} is not an iSCSI name, which begins with iqn., eui. or naa.")]
    TargetName(String),
    /// The LUN is missing or not a number.
    #[error("{0:?} is not a LUN, a number from 0 to 65535")]
    Lun(String),
    /// A parameter that does not exist.
    #[error("{0:?} is no parameter of a URL, which can have congestion=NAME or congestion=NAME:TERM,...")]
    Parameter(String),
    /// The congestion control cannot be read, or takes no such terms.
    #[error("the URL's congestion control: {0}")]
    Congestion(String),
}

impl FromStr for Portal {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let invalid = || InvalidUrl::Portal(text.to_owned());
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, after) = rest.split_once(']').ok_or_else(invalid)?;
            let port =
                if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or_else(invalid)?) };
            host.parse::<std::net::Ipv6Addr>().map_err(|_| invalid())?;
            (host, port)
        } else {
            match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        let strange = |letter: char| letter.is_whitespace() || letter.is_control() || "/@[]".contains(letter);
        if host.is_empty() || host.contains(strange) {
            return Err(invalid());
        }
        let port = port.map_or(Ok(DEFAULT_PORT), str::parse).map_err(|_| invalid())?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl From<std::net::SocketAddr> for Portal {
    fn from(address: std::net::SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: address.port() }
    }
}

impl fmt::Display for Portal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

impl Url {
    /// What follows the scheme; `None` if the text does not begin with it.
    #[must_use]
    pub fn without_scheme(text: &str) -> Option<&str> {
        const SCHEME: &str = "iscsi://";
        let (scheme, rest) = text.split_at_checked(SCHEME.len())?;
        scheme.eq_ignore_ascii_case(SCHEME).then_some(rest)
    }
}

impl FromStr for Url {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let rest = Self::without_scheme(text).ok_or(InvalidUrl::Scheme)?;
        let (rest, parameter) = match rest.split_once('?') {
            Some((rest, parameter)) => (rest, Some(parameter)),
            None => (rest, None),
        };
        let (authority, path) = rest.split_once('/').ok_or_else(|| InvalidUrl::TargetName(String::new()))?;
        let (user, portal) = match authority.rsplit_once('@') {
            Some((user, portal)) => (Some(user), portal),
            None => (None, authority),
        };
        if user.is_some_and(|user| user.contains([':', '%'])) {
            return Err(InvalidUrl::Secret);
        }
        let (target_name, lun) = path.split_once('/').unwrap_or((path, ""));
        Ok(Self {
            user: user.filter(|user| !user.is_empty()).map(str::to_owned),
            portal: portal.parse()?,
            target_name: target_name_of(target_name)?,
            lun: lun.parse().map_err(|_| InvalidUrl::Lun(lun.to_owned()))?,
            congestion: parameter.map(congestion_of).transpose()?,
        })
    }
}

fn congestion_of(parameter: &str) -> Result<Congestion, InvalidUrl> {
    let value = parameter.strip_prefix("congestion=").filter(|value| !value.contains('&'));
    let value = value.ok_or_else(|| InvalidUrl::Parameter(parameter.to_owned()))?;
    let congestion: Congestion =
        value.parse().map_err(|error: InvalidTerms| InvalidUrl::Congestion(error.to_string()))?;
    match congestion.name.is_empty() {
        true => Err(InvalidUrl::Congestion("it has no name".to_owned())),
        false => Ok(congestion),
    }
}

/// Names are compared in lower case (RFC 7143 §4.2.7.2).
fn target_name_of(text: &str) -> Result<String, InvalidUrl> {
    let name = session::name::normalized(text).ok();
    let known = |name: &String| ["iqn.", "eui.", "naa."].iter().any(|prefix| name.starts_with(prefix));
    name.filter(known).ok_or_else(|| InvalidUrl::TargetName(text.to_owned()))
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("iscsi://")?;
        if let Some(user) = &self.user {
            write!(formatter, "{user}@")?;
        }
        write!(formatter, "{}/{}/{}", self.portal, self.target_name, self.lun)?;
        self.congestion.as_ref().map_or(Ok(()), |congestion| write!(formatter, "?congestion={congestion}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn a_url_without_port_means_3260() {
        let url = url("iscsi://host/iqn.2026-11.test:disk/7");
        assert_eq!((url.portal.host.as_str(), url.portal.port, url.lun), ("host", 3260, 7));
        assert_eq!(url.user, None);
    }

    #[test]
    fn an_ipv6_host_stands_in_brackets() {
        let text = "iscsi://alice@[2001:db8::1]:860/iqn.2026-11.test:disk/0";
        let url = url(text);
        assert_eq!(url.portal, Portal { host: "2001:db8::1".into(), port: 860 });
        assert_eq!(url.to_string(), text);
    }

    #[test]
    fn a_url_may_name_the_congestion_control() {
        let text = "iscsi://host:3260/iqn.2026-11.test:disk/0?congestion=rw_fair:single,cubic";
        let url = url(text);
        assert_eq!(url.congestion.as_ref().unwrap().name, "rw_fair");
        assert_eq!(url.to_string(), text);
    }

    #[test]
    fn a_secret_in_a_url_is_refused() {
        for text in ["iscsi://alice:secret@h/iqn.a/0", "iscsi://alice%secret@h/iqn.a/0"] {
            assert_eq!(text.parse::<Url>(), Err(InvalidUrl::Secret));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Url>().unwrap_err();
        assert_eq!(error("/dev/sda"), InvalidUrl::Scheme);
        assert_eq!(error("iscsi://h"), InvalidUrl::TargetName(String::new()));
        assert_eq!(error("iscsi://h/disk/0"), InvalidUrl::TargetName("disk".into()));
        assert_eq!(error("iscsi://h/iqn.a b/0"), InvalidUrl::TargetName("iqn.a b".into()));
        assert_eq!(error("iscsi://h/iqn.a"), InvalidUrl::Lun(String::new()));
        assert_eq!(error("iscsi://h/iqn.a/x"), InvalidUrl::Lun("x".into()));
        assert_eq!(error("iscsi://h/iqn.a/0?law=reno"), InvalidUrl::Parameter("law=reno".into()));
        assert!(matches!(error("iscsi://h/iqn.a/0?congestion=rw_fair:warp"), InvalidUrl::Congestion(_)));
        assert!(matches!(error("iscsi://h/iqn.a/0?congestion="), InvalidUrl::Congestion(_)));
        assert_eq!(error("iscsi://h:x/iqn.a/0"), InvalidUrl::Portal("h:x".into()));
        assert_eq!(error("iscsi://[::1/iqn.a/0"), InvalidUrl::Portal("[::1".into()));
        assert_eq!(error("iscsi:///iqn.a/0"), InvalidUrl::Portal(String::new()));
    }
}
