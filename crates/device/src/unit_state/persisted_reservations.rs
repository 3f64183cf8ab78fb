//! Reservations that outlive the target's process (SPC-4, "persist through power loss"), as a text of a few lines.
//!
//! ```text
//! ropewalk reservations 1
//! registration 00000000deadbeef 1 800102030405 iqn.2026-01.org.example:host alice
//! held 5 0
//! crc32c 89abcdef
//! ```
//!
//! A registration has its key, its relative target port (or `all`), ISID, name and, if authenticated, CHAP user. `held`
//! has the type of the reservation and the index of its holder's registration (or `all`). The last line protects the
//! others against damage.

use core::fmt::{self, Write as _};

use pdu::Isid;
use scsi::{Naa, ReservationKey, ReservationType};

use super::i_t_nexus::{InitiatorPort, RelativePort};
use super::percent_encoding;
use super::reservations::{
    Held, Holder, REGISTRATIONS_MAX, Registered, Registration, Reservations, TargetPorts,
};

const HEADER: &str = "ropewalk reservations 1";
const ALL: &str = "all";
const FILE_SUFFIX: &str = ".reservations";

/// The part of a unit's reservations that survives a power loss: nothing, unless the last registration asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistedReservations {
    registrations: Vec<Registration>,
    held: Option<Held>,
}

/// A text that is not a snapshot, or a damaged one. Ignoring it could let two hosts write to one disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSnapshot {
    /// The text is of another kind, or from a later version.
    #[error("it does not begin with \"{HEADER}\"")]
    Header,
    /// The text was changed or truncated.
    #[error("its checksum is wrong: it was changed or truncated")]
    Checksum,
    /// This line is meaningless, although the checksum is right.
    #[error("line {0} is invalid")]
    Line(usize),
}

impl PersistedReservations {
    /// The most bytes of a snapshot: names and numbers at their longest.
    pub const BYTES_MAX: usize = 2 << 20;

    /// The name of a logical unit's file. It contains the unit's designator instead of its number, so that another disk
    /// behind the same LUN does not inherit reservations. It has no separator or other character that is special to a
    /// file system, whatever the target's name.
    #[must_use]
    pub fn file_name(target_name: &str, unit: Naa) -> String {
        format!("{}_{unit}{FILE_SUFFIX}", percent_encoding::encode(target_name))
    }

    /// Whether a file of this name belongs to a logical unit of the target.
    #[must_use]
    pub fn is_file_of(target_name: &str, file_name: &str) -> bool {
        // No encoded name contains an underscore.
        let rest = file_name.strip_prefix(&percent_encoding::encode(target_name));
        rest.is_some_and(|rest| rest.starts_with('_') && rest.ends_with(FILE_SUFFIX))
    }

    /// Whether nobody is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registrations.is_empty()
    }

    /// Parses a snapshot.
    ///
    /// # Errors
    /// The text differs from the form in which [`Self`] is displayed.
    pub fn parse(text: &str) -> Result<Self, InvalidSnapshot> {
        if !text.strip_prefix(HEADER).is_some_and(|rest| rest.starts_with('\n')) {
            return Err(InvalidSnapshot::Header);
        }
        let (lines, checksum) = text.rsplit_once("crc32c ").ok_or(InvalidSnapshot::Checksum)?;
        if checksum != format!("{}\n", checksum_of(lines)) {
            return Err(InvalidSnapshot::Checksum);
        }
        let mut snapshot = Self::default();
        for (place, line) in lines.lines().enumerate().skip(1) {
            snapshot.take(line).ok_or(InvalidSnapshot::Line(place + 1))?;
        }
        Ok(snapshot)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[..] {
            ["registration", ref fields @ ..] if self.held.is_none() => {
                let registration = registration(fields)?;
                let met = self.registrations.iter().any(|known| known.nexus.meets(&registration.nexus));
                if met || self.registrations.len() == REGISTRATIONS_MAX {
                    return None;
                }
                self.registrations.push(registration);
            }
            ["held", kind, place] if self.held.is_none() => {
                let kind = ReservationType::from_code(kind.parse().ok()?)?;
                let maker = match (place, kind.is_all_registrants()) {
                    (ALL, true) => self.registrations.first()?,
                    (place, false) => self.registrations.get(place.parse::<usize>().ok()?)?,
                    _ => return None,
                };
                self.held = Some(Held::new(kind, &maker.nexus));
            }
            _ => return None,
        }
        Some(())
    }
}

fn registration(fields: &[&str]) -> Option<Registration> {
    let (&[key, port, isid, name], user) = match fields.split_first_chunk()? {
        (fields, []) => (fields, None),
        (fields, [user]) => (fields, Some(percent_encoding::decode(user)?)),
        _ => return None,
    };
    let hexadecimal = |text: &str, digits| {
        let right = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if right { u64::from_str_radix(text, 16).ok() } else { None }
    };
    let key = ReservationKey(hexadecimal(key, 16)?);
    let target = match port {
        ALL => TargetPorts::All,
        port => TargetPorts::One(RelativePort(port.parse().ok()?)),
    };
    let [_, _, isid @ ..] = hexadecimal(isid, 12)?.to_be_bytes();
    let initiator = InitiatorPort::new(&percent_encoding::decode(name)?, Isid(isid)).of_user(user.as_deref());
    let nexus = Registered { initiator, target };
    (key != ReservationKey::NONE).then_some(Registration { nexus, key })
}

fn checksum_of(lines: &str) -> String {
    pdu::digest(lines.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for PersistedReservations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = format!("{HEADER}\n");
        for Registration { nexus, key } in &self.registrations {
            let (isid, name) = (nexus.initiator.isid(), percent_encoding::encode(nexus.initiator.name()));
            let port = match nexus.target {
                TargetPorts::One(port) => port.0.to_string(),
                TargetPorts::All => ALL.to_owned(),
            };
            write!(lines, "registration {:016x} {port} {isid} {name}", key.0)?;
            if let Some(user) = nexus.initiator.user() {
                write!(lines, " {}", percent_encoding::encode(user))?;
            }
            writeln!(lines)?;
        }
        if let Some(Held { kind, holder }) = &self.held {
            let place = match holder {
                Holder::One(holder) => self.registrations.iter().position(|known| known.nexus == *holder),
                Holder::AllRegistrants => None,
            };
            let place = place.map_or_else(|| ALL.to_owned(), |place| place.to_string());
            writeln!(lines, "held {} {place}", kind.code())?;
        }
        writeln!(formatter, "{lines}crc32c {}", checksum_of(&lines))
    }
}

impl Reservations {
    /// The part that survives a loss of power.
    pub(super) fn persisted(&self) -> PersistedReservations {
        if !self.persists {
            return PersistedReservations::default();
        }
        PersistedReservations { registrations: self.registrations.clone(), held: self.held.clone() }
    }

    /// The state after a loss of power: PRGENERATION starts anew (SPC-4).
    pub(super) fn restored(snapshot: PersistedReservations) -> Self {
        let PersistedReservations { registrations, held } = snapshot;
        Self { generation: 0, persists: !registrations.is_empty(), registrations, held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Naa = Naa([0x60; 16]);

    #[test]
    fn no_name_of_a_target_leaves_the_directory() {
        let unit = "naa.60606060606060606060606060606060.reservations";
        for (name, expected) in [
            ("iqn.2026-01.org.example:disk", "iqn.2026-01.org.example:disk_"),
            ("../../etc/passwd", "..%2f..%2fetc%2fpasswd_"),
            ("/", "%2f_"),
            ("a\0b\n", "a%00b%0a_"),
            ("", "_"),
        ] {
            assert_eq!(PersistedReservations::file_name(name, UNIT), format!("{expected}{unit}"));
        }
    }

    #[test]
    fn different_units_have_different_files() {
        let names = ["a", "a_1", "A", "%61", "a%5f1", "a/1", "ä"];
        let files = names
            .into_iter()
            .flat_map(|name| [1, 11].map(|byte| PersistedReservations::file_name(name, Naa([byte; 16]))));
        let files: std::collections::BTreeSet<String> = files.collect();
        assert_eq!(files.len(), 2 * names.len());
    }

    #[test]
    fn a_file_belongs_to_one_target() {
        let file = PersistedReservations::file_name("a", UNIT);
        assert!(PersistedReservations::is_file_of("a", &file));
        for (target, file) in
            [("a", "a.reservations"), ("a", "ab_0.reservations"), ("a", "a_0.lock"), ("b", &file)]
        {
            assert!(!PersistedReservations::is_file_of(target, file), "{file}");
        }
    }

    #[test]
    fn an_encoded_name_is_decoded_to_itself() {
        for name in ["iqn.2026-01.org.example:disk", "../x", "ä%", " "] {
            assert_eq!(percent_encoding::decode(&percent_encoding::encode(name)).as_deref(), Some(name));
        }
        for text in ["%", "%2", "%zz", "A", "%61", "%ff"] {
            assert_eq!(percent_encoding::decode(text), None, "{text}");
        }
    }
}
