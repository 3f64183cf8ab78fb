//! What else happens at the hosts and on the path.

use super::{Experiment, Form, SCSI, assert_refused};

#[test]
fn what_is_beside_a_workload_and_settings_of_the_kernel_are_checked() {
    let with = |line: &str| {
        SCSI.replace("[setup.scsi.workload.pattern]", &format!("{line}\n[setup.scsi.workload.pattern]"))
    };
    assert_refused(&with("[setup.beside]\nclients = 1\nfrom = \"1s\""), &["setup.beside.from", "streams"]);
    let backward = with("[setup.beside]\nstreams = 1\nfrom = \"2s\"\nto = \"1s\"");
    assert_refused(&backward, &["setup.beside.to is 1s", "after from, 2s"]);
    let unknown = with("[setup.beside]\nstreams = 1\ncongestion_control = \"rw_fast:single\"");
    assert_refused(&unknown, &["setup.beside.congestion_control", "of rw_fast, \"single\" says nothing"]);
    for name in ["kernel.panic", "net.ipv4/../../kernel.panic", "net."] {
        assert_refused(&with(&format!("[setup.settings]\n\"{name}\" = \"0\"")), &["setup.settings", name]);
    }
}

#[test]
fn the_streams_beside_a_workload_have_its_congestion_control_or_their_own_each_with_its_terms() {
    let beside = |line: &str| {
        let table = format!("[setup.beside]\nstreams = 1\n{line}\n[setup.scsi.workload.pattern]");
        let text = SCSI.replace("[setup.scsi.workload.pattern]", &table);
        let text = text.replace("\"reno\"", "\"rw_fair:single\"");
        let plan = Experiment::parse(&text).unwrap().plan(Form::Quick).unwrap();
        plan.cells[0].setup.congestion_beside().to_string()
    };
    assert_eq!(beside(""), "rw_fair:single");
    assert_eq!(beside("congestion_control = \"rw_fast:host\""), "rw_fast:host");
}
