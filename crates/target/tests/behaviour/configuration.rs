//! A configuration file, and what is wrong with wrong ones.

use framing::Congestion;
use ropewalk_target::{ByteSize, Config, DigestUse, InvalidConfig, Medium};

const FILE: &str = r#"
listen = ["127.0.0.1:3260", "[::1]:3260"]
shards = 2

[limits]
buffer_bytes = "1GiB"
window_commands = 64
ipv6_prefix = 56

[negotiation]
first_burst = "64K"
header_digest = "required"

[socket]
congestion = "bbr"

[[target]]
name = "iqn.2026-01.net.example:archive"
alias = "the archive"
addresses = ["10.0.0.0/8", "192.0.2.7/32"]
initiators = ["iqn.2026-01.net.example:*"]

[target.chap.initiator]
user = "host"
secret_file = "/etc/ropewalk/secret"

[target.chap.target]
user = "archive"
secret_env = "ARCHIVE_SECRET"

[[target.lun]]
number = 0
backend = "file:/srv/a.img,size=1GiB,thin"

[[target.lun]]
number = 1
backend = "ram:64M"
initiators = ["iqn.2026-01.net.example:lab"]
"#;

#[test]
fn a_file_with_everything_in_it_is_understood() {
    let config: Config = toml::from_str(FILE).unwrap();
    assert_eq!(config.listen.len(), 2);
    assert_eq!(config.limits.buffer_bytes, ByteSize(1 << 30));
    assert_eq!(config.limits.ipv6_prefix, 56);
    assert_eq!(config.negotiation.header_digest, DigestUse::Required);
    assert_eq!(config.socket.congestion, Some(Congestion::named("bbr")));
    let target = &config.targets[0];
    assert_eq!(target.mask.addresses.len(), 2);
    let chap = target.chap.as_ref().unwrap();
    assert_eq!(
        (chap.initiators[0].user.as_str(), chap.target.as_ref().unwrap().user.as_str()),
        ("host", "archive")
    );
    assert!(matches!(target.luns[0].backend.medium, Medium::File { size_bytes: Some(0x4000_0000), .. }));
    assert_eq!(target.luns[1].mask.initiators, ["iqn.2026-01.net.example:lab"]);
    config.validate().unwrap();
}

#[test]
fn a_misspelt_key_is_refused() {
    for (right, wrong) in [
        ("shards", "shard"),
        ("window_commands", "windows"),
        ("first_burst", "firstburst"),
        ("addresses", "adresses"),
        ("initiators = [\"iqn.2026-01.net.example:lab", "initiator = [\"iqn.2026-01.net.example:lab"),
        ("secret_file", "secretfile"),
        ("secret_env", "secretenv"),
        ("alias", "nickname"),
    ] {
        assert!(toml::from_str::<Config>(&FILE.replace(right, wrong)).is_err(), "{wrong}");
    }
}

fn refusal(right: &str, wrong: &str) -> InvalidConfig {
    let file = FILE.replace(right, wrong);
    assert_ne!(file, FILE);
    toml::from_str::<Config>(&file).unwrap().validate().unwrap_err()
}

const GROUPS: &str = r#"
chap_algorithms = ["sha3-256", "sha256"]

[[portal_group]]
tag = 1
portals = ["192.0.2.1:3260", "[2001:db8::1]:3260"]

[[portal_group]]
tag = 2
portals = ["198.51.100.1:3260"]

[discovery]
redirect = "192.0.2.9:3260,permanent"
[discovery.chap.initiator]
user = "looker"
secret = "never to be printed"

[[target]]
name = "iqn.2026-01.net.example:archive"
portal_groups = [2]
users = ["alice"]
chap.initiator = [{ user = "alice", secret_env = "ALICE" }, { user = "bob", secret_file = "/etc/bob" }]
lun = [{ number = 0, backend = "ram:1M", users = ["alice"] }]

[[target]]
name = "iqn.2026-01.net.example:elsewhere"
redirect = "storage.example.com:3260"
"#;

#[test]
fn portal_groups_users_and_redirections_are_understood() {
    let config: Config = toml::from_str(GROUPS).unwrap();
    config.validate().unwrap();
    assert_eq!(config.portal_groups[1].tag, 2);
    assert_eq!(config.targets[0].portal_groups, [2]);
    assert_eq!(config.targets[0].chap.as_ref().unwrap().initiators.len(), 2);
    assert!(config.targets[1].redirect.is_some() && config.discovery.redirect.is_some());
    assert_eq!(config.chap_algorithms.0.offer(), "8,7");
    assert!(config.has_inline_secrets());
    assert!(!format!("{config:?}").contains("never to be printed"));
}

#[test]
fn contradictions_of_portal_groups_and_users_are_named() {
    let refusal = |right: &str, wrong: &str| {
        let file = GROUPS.replacen(right, wrong, 1);
        assert_ne!(file, GROUPS);
        toml::from_str::<Config>(&file).unwrap().validate().unwrap_err()
    };
    assert!(matches!(refusal("tag = 2", "tag = 1"), InvalidConfig::TwoGroups(1)));
    assert!(matches!(refusal("tag = 2", "tag = 0"), InvalidConfig::NoTag));
    assert!(matches!(refusal("[\"198.51.100.1:3260\"]", "[]"), InvalidConfig::NoPortal(2)));
    assert!(matches!(refusal("[2]", "[3]"), InvalidConfig::NoGroup { tag: 3, .. }));
    assert!(matches!(refusal("users = [\"alice\"]", "users = [\"eve\"]"), InvalidConfig::NoSuchUser { .. }));
    let beside = refusal("chap_algorithms", "listen = [\"192.0.2.1:1\"]\nchap_algorithms");
    assert!(matches!(beside, InvalidConfig::ListenBesideGroups));
    for (right, wrong) in
        [("\"sha256\"", "\"md4\""), ("[\"sha3-256\", \"sha256\"]", "[]"), ("3260,permanent", "x")]
    {
        assert!(toml::from_str::<Config>(&GROUPS.replacen(right, wrong, 1)).is_err(), "{wrong}");
    }
}

#[test]
fn contradictions_are_named() {
    assert!(matches!(refusal("number = 1", "number = 0"), InvalidConfig::TwoLuns { number: 0, .. }));
    assert!(matches!(refusal("\"64K\"", "64"), InvalidConfig::Length { key: "first_burst", .. }));
    for bits in ["0", "129"] {
        let wrong = refusal("ipv6_prefix = 56", &format!("ipv6_prefix = {bits}"));
        assert_eq!(wrong.to_string(), format!("ipv6_prefix = {bits}: it is from 1 to 128"));
    }
    assert!(matches!(refusal("\"1GiB\"\nwindow", "\"1MiB\"\nwindow"), InvalidConfig::Memory(_)));
    assert!(matches!(Config::default().validate(), Err(InvalidConfig::NoTarget)));
}

#[test]
fn a_level_or_a_time_of_recovery_that_the_standard_does_not_know_is_refused() {
    let validated = |key: &str| {
        let text = FILE.replace("[negotiation]", &format!("[negotiation]\n{key}"));
        toml::from_str::<Config>(&text).unwrap().validate()
    };
    assert!(validated("error_recovery_level = 2\ntime2wait = 2\ntime2retain = 3600").is_ok());
    assert!(matches!(validated("error_recovery_level = 3"), Err(InvalidConfig::ErrorRecoveryLevel(3))));
    assert!(matches!(validated("time2retain = 3601"), Err(InvalidConfig::RecoveryTime(3601))));
}
