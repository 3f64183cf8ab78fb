//! The names of the kernel's functions (`/proc/kallsyms`).

use std::fs;
use std::io;

/// The address at which each function begins, in order.
#[derive(Debug)]
pub(crate) struct Symbols {
    names: Vec<(u64, String)>,
}

impl Symbols {
    pub fn read() -> io::Result<Self> {
        // Without this list, addresses stand for functions.
        let list = match fs::read_to_string("/proc/kallsyms") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            list => list?,
        };
        Ok(Self::parse(&list))
    }

    /// Parses lines of an address, a kind and a name. An unprivileged reader sees only zero addresses.
    fn parse(list: &str) -> Self {
        let entry = |line: &str| {
            let mut fields = line.split_ascii_whitespace();
            let address = u64::from_str_radix(fields.next()?, 16).ok().filter(|address| *address != 0)?;
            Some((address, fields.nth(1)?.to_owned()))
        };
        let mut names: Vec<_> = list.lines().filter_map(entry).collect();
        names.sort_by_key(|(address, _)| *address);
        Self { names }
    }

    /// The name of the function that contains the address, or the address itself if the name is unknown.
    pub fn name(&self, address: u64) -> String {
        let next = self.names.partition_point(|(begin, _)| *begin <= address);
        let known = next.checked_sub(1).and_then(|index| self.names.get(index));
        known.map_or_else(|| format!("{address:#x}"), |(_, name)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_that_begins_before_it() {
        let symbols = Symbols::parse("ffff2000 t tcp_push\nffff1000 T tcp_sendmsg\t[module]\n0 T hidden\n");
        let names = [0xffff_1000, 0xffff_1fff, 0xffff_2001, 0xfff].map(|address| symbols.name(address));
        assert_eq!(names, ["tcp_sendmsg", "tcp_sendmsg", "tcp_push", "0xfff"]);
    }
}
