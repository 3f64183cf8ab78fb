//! What else happens at the hosts and on the path.

use super::{SCSI, assert_refused};

#[test]
fn what_is_beside_a_workload_and_settings_of_the_kernel_are_checked() {
    let with = |line: &str| {
        SCSI.replace("[setup.scsi.workload.pattern]", &format!("{line}\n[setup.scsi.workload.pattern]"))
    };
    assert_refused(&with("[setup.beside]\nclients = 1\nfrom = \"1s\""), &["setup.beside.from", "streams"]);
    let backward = with("[setup.beside]\nstreams = 1\nfrom = \"2s\"\nto = \"1s\"");
    assert_refused(&backward, &["setup.beside.to is 1s", "after from, 2s"]);
    for name in ["kernel.panic", "net.ipv4/../../kernel.panic", "net."] {
        assert_refused(&with(&format!("[setup.settings]\n\"{name}\" = \"0\"")), &["setup.settings", name]);
    }
}
