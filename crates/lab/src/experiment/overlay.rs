//! Overlays tables.

use toml::{Table, Value};

/// Puts everything of `over` into `under`: joins tables, replaces anything else.
pub(crate) fn lay(under: &mut Table, over: &Table) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => lay(under, over),
            _ => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A table with this value at the place named by dotted keys.
pub(crate) fn nest(dotted_key: &str, value: Value) -> Table {
    let (first, rest) = match dotted_key.split_once('.') {
        Some((first, rest)) => (first, Value::Table(nest(rest, value))),
        None => (dotted_key, value),
    };
    Table::from_iter([(first.to_owned(), rest)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_joined_and_all_else_is_replaced() {
        let mut under: Table = toml::from_str("a = 1\nt = { b = 2, c = [1] }").unwrap();
        lay(&mut under, &toml::from_str("t = { c = [2], d = 3 }\ne = 4").unwrap());
        assert_eq!(under, toml::from_str("a = 1\ne = 4\nt = { b = 2, c = [2], d = 3 }").unwrap());
    }

    #[test]
    fn a_value_replaces_a_table_and_a_table_a_value() {
        let mut under: Table = toml::from_str("loss = { random = \"1%\" }\nx = 1").unwrap();
        lay(&mut under, &toml::from_str("loss = \"none\"\nx = { y = 2 }").unwrap());
        assert_eq!(under, toml::from_str("loss = \"none\"\nx = { y = 2 }").unwrap());
    }

    #[test]
    fn a_key_with_dots_is_a_place_within_tables() {
        assert_eq!(nest("a.b.c", Value::Integer(1)), toml::from_str("a.b.c = 1").unwrap());
        assert_eq!(nest("a", Value::Integer(1)), toml::from_str("a = 1").unwrap());
    }
}
