//! A configuration file, and what is wrong with wrong ones.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_target::{ByteSize, Config, DigestUse, InvalidConfig, Medium};

const FILE: &str = r#"
listen = ["127.0.0.1:3260", "[::1]:3260"]
shards = 2

[limits]
buffer_bytes = "1GiB"
window_commands = 64

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
    assert_eq!(config.negotiation.header_digest, DigestUse::Required);
    assert_eq!(config.socket.congestion.as_deref(), Some("bbr"));
    let target = &config.targets[0];
    assert_eq!(target.mask.addresses.len(), 2);
    let chap = target.chap.as_ref().unwrap();
    assert_eq!(
        (chap.initiator.user.as_str(), chap.target.as_ref().unwrap().user.as_str()),
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
        ("secret_env", "secret"),
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

#[test]
fn contradictions_are_named() {
    assert!(matches!(refusal("number = 1", "number = 0"), InvalidConfig::TwoLuns { number: 0, .. }));
    assert!(matches!(refusal("\"64K\"", "64"), InvalidConfig::Length { key: "first_burst", .. }));
    assert!(matches!(refusal("\"1GiB\"\nwindow", "\"1MiB\"\nwindow"), InvalidConfig::Memory(_)));
    assert!(matches!(Config::default().validate(), Err(InvalidConfig::NoTarget)));
}
