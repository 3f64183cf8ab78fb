//! Our congestion controls in the machine, whose kernel is another than this host's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use requirement::{Need, skip};
use ropewalk_interop::{IQN, binary, ropewalk};
use ropewalk_machines::Machine;

#[test]
fn debians_kernel_takes_all_controls_and_a_copy_uses_each() {
    if !Machine::is_prepared() {
        return;
    }
    let (_, listed) = ropewalk(["cc", "list"]).unwrap();
    if listed.iter().any(|line| line.text.contains("needs a build with BPF")) {
        return skip(Need::Bpf, "ropewalk was built without BPF");
    }
    let job = format!(
        r#"
mount -t bpf bpf /sys/fs/bpf
ropewalk cc load
head -c 1048576 /dev/urandom >/tmp/image
ropewalk serve --target {IQN} --lun 0=ram:1MiB &
target=$!
until ropewalk info iscsi://127.0.0.1/{IQN}/0 >/dev/null 2>&1; do sleep 0.2; done
for control in $(ls /sys/fs/bpf/ropewalk | grep ^rw_); do
  ropewalk copy --congestion $control --overwrite /tmp/image iscsi://127.0.0.1/{IQN}/0
done
kill -INT $target; wait $target
ropewalk cc unload
! ropewalk cc list | grep 'rw_.*available'
"#
    );
    let said = Machine::boot(&job, &[&binary().unwrap()]).unwrap().finish().unwrap();
    for control in ["bic", "fair", "fast", "hstcp", "htcp", "reno", "scalable", "westwood"] {
        let in_force = format!("(rw_{control} at this end)");
        assert!(said.iter().any(|line| line.contains(&in_force)), "{control}: {said:#?}");
    }
}
