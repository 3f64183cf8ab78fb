//! Linux's own initiator, in the machine, and our target, outside.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_interop::{IQN, Image, Relay, Ropewalk, ropewalk};
use ropewalk_machines::{HOST, LISTEN, Machine, OPEN, check_ext4};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const IMAGE_MIB: u64 = 256;

/// Starts Linux's initiator, and defines what jobs need.
const INITIATOR: &str = r#"
modprobe iscsi_tcp; modprobe sd_mod; modprobe sg; modprobe ext4
mkdir -p /etc/iscsi /run/lock/iscsi /var/lib/iscsi /mnt
echo InitiatorName=iqn.2026-11.org.example:guest >/etc/iscsi/initiatorname.iscsi
touch /etc/iscsi/iscsid.conf
iscsid -f >/dev/null 2>&1 &
# until_true COMMAND...: for twenty seconds.
until_true() { i=0; until "$@" 2>/dev/null; do i=$((i + 1)); [ $i -lt 200 ] || return 1; sleep 0.1; done; }
# node PORTAL ARGUMENTS...
node() { portal=$1; shift; iscsiadm -m node -T "$target" -p "$portal" "$@"; }
add() { until_true node "$1" -o new >/dev/null; }
set_to() { node "$1" -o update -n "$2" -v "$3"; }
# log_in PORTAL DEVICE: and wait for the disk.
log_in() { add "$1"; node "$1" -l; until_true [ -b "$2" ]; }
# write_and_compare FILE: 32 MiB, read back from the disk.
write_and_compare() {
  head -c 33554432 /dev/urandom >/tmp/noise
  cp /tmp/noise "$1"; sync; echo 3 >/proc/sys/vm/drop_caches; cmp /tmp/noise "$1"
}
"#;

fn job(rest: &str) -> String {
    format!("target={IQN}\n{INITIATOR}{rest}")
}

#[test]
fn linux_logs_in_by_chap_with_digests_and_keeps_a_filesystem_on_our_disk() {
    if !Machine::is_prepared() {
        return;
    }
    let image = Image::empty(IMAGE_MIB).unwrap();
    let secret = image.beside("secret");
    fs::write(&secret, "a secret of many bytes").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let lun = format!("0=file:{},thin", image.name());
    let chap = ["--chap-user", "guest", "--chap-secret-file", &secret];
    let target = Ropewalk::serve_at(HOST, &[&lun], &chap).unwrap();
    let job = job(&format!(
        r#"
portal={portal}
add $portal
for digest in HeaderDigest DataDigest; do set_to $portal "node.conn[0].iscsi.$digest" CRC32C; done
! node $portal -l 2>/dev/null && echo "refused without a secret"
set_to $portal node.session.auth.authmethod CHAP
set_to $portal node.session.auth.username guest
set_to $portal node.session.auth.password "a secret of many bytes"
node $portal -l
until_true [ -b /dev/sda ]
iscsiadm -m session -P 2 | grep -E 'HeaderDigest|DataDigest'
mkfs.ext4 -q /dev/sda
mount -t ext4 /dev/sda /mnt
write_and_compare /mnt/file
fstrim /mnt
umount /mnt
e2fsck -fn /dev/sda
node $portal -u
"#,
        portal = target.address()
    ));
    let said = Machine::boot(&job, &[]).unwrap().finish().unwrap();
    assert!(said.iter().any(|line| line == "refused without a secret"), "{said:#?}");
    assert_eq!(said.iter().filter(|line| line.contains("Digest: CRC32C")).count(), 2, "{said:#?}");
    assert!(target.stop().unwrap().success());
    check_ext4(image.name()).unwrap();
}

#[test]
fn a_mounted_filesystem_outlives_the_death_of_its_target() {
    if !Machine::is_prepared() {
        return;
    }
    let image = Image::empty(IMAGE_MIB).unwrap();
    let lun = format!("0=file:{}", image.name());
    let mut target = Ropewalk::serve_at(HOST, &[&lun], OPEN).unwrap();
    let job = job(&format!(
        r#"
portal={portal}
log_in $portal /dev/sda
mkfs.ext4 -q /dev/sda
mount -t ext4 /dev/sda /mnt
for number in $(seq 40); do
  head -c 1048576 /dev/urandom >/tmp/$number
  dd if=/tmp/$number of=/mnt/$number bs=64k conv=fsync 2>/dev/null
  echo "written $number"
done
echo 3 >/proc/sys/vm/drop_caches
for number in $(seq 40); do cmp /tmp/$number /mnt/$number; done
umount /mnt
e2fsck -fn /dev/sda
node $portal -u
"#,
        portal = target.address()
    ));
    let machine = Machine::boot(&job, &[]).unwrap();
    for number in [5, 15, 25] {
        machine.wait_for(&format!("written {number}")).unwrap();
        target.kill_and_restart().unwrap();
    }
    machine.finish().unwrap();
    assert!(target.stop().unwrap().success());
    check_ext4(image.name()).unwrap();
}

#[test]
fn multipath_goes_on_by_one_portal_when_the_other_dies() {
    if !Machine::is_prepared() {
        return;
    }
    let image = Image::empty(IMAGE_MIB).unwrap();
    let target = Ropewalk::serve_at(HOST, &[&format!("0=file:{}", image.name())], OPEN).unwrap();
    let dying = Relay::at(HOST, target.address(), &[]).unwrap();
    let job = job(&format!(
        r#"
modprobe dm_multipath; modprobe dm_round_robin
export DM_DISABLE_UDEV=1
for portal in {living} {dying}; do
  add $portal
  set_to $portal node.session.timeo.replacement_timeout 2
  set_to $portal node.conn[0].timeo.noop_out_interval 1
  set_to $portal node.conn[0].timeo.noop_out_timeout 1
  node $portal -l
done
until_true [ -b /dev/sda ]; until_true [ -b /dev/sdb ]
cmp /sys/block/sda/device/wwid /sys/block/sdb/device/wwid
paths="$(cat /sys/block/sda/dev) 1 $(cat /sys/block/sdb/dev) 1"
dmsetup create both --table "0 $(cat /sys/block/sda/size) multipath 1 queue_if_no_path 0 1 1 round-robin 0 2 1 $paths"
mkfs.ext4 -q /dev/mapper/both
mount -t ext4 /dev/mapper/both /mnt
write_and_compare /mnt/one
echo "both paths work"
for number in $(seq 60); do
  dd if=/tmp/noise of=/mnt/two bs=1M conv=fsync 2>/dev/null
  dmsetup status both | grep -q ' F ' && break
done
dmsetup status both | grep ' F '
write_and_compare /mnt/three
cmp /tmp/noise /mnt/three
umount /mnt
dmsetup remove both
e2fsck -fn /dev/sda
"#,
        living = target.address(),
        dying = dying.address(),
    ));
    let machine = Machine::boot(&job, &[]).unwrap();
    machine.wait_for("both paths work").unwrap();
    drop(dying);
    machine.finish().unwrap();
    assert!(target.stop().unwrap().success());
    check_ext4(image.name()).unwrap();
}

#[test]
fn a_reservation_of_linux_keeps_others_from_writing_until_it_is_released() {
    if !Machine::is_prepared() {
        return;
    }
    let image = Image::random(8).unwrap();
    let target = Ropewalk::serve_at(HOST, &["0=ram:64MiB"], OPEN).unwrap();
    let job = job(&format!(
        r#"
portal={portal}
log_in $portal /dev/sda
sg_persist --out --register --param-sark=0xabc /dev/sda
sg_persist --out --reserve --param-rk=0xabc --prout-type=5 /dev/sda
sg_persist --in --read-reservation /dev/sda
{LISTEN}
go=$!
echo "the disk is reserved"
wait $go
sg_persist --out --release --param-rk=0xabc --prout-type=5 /dev/sda
sg_persist --out --register --param-rk=0xabc --param-sark=0 /dev/sda
node $portal -u
"#,
        portal = target.address()
    ));
    let machine = Machine::boot(&job, &[]).unwrap();
    machine.wait_for("the disk is reserved").unwrap();
    let url = target.url(0);
    let copy = || ropewalk(["copy", image.name(), &url]).unwrap();
    let (refused, said) = copy();
    assert_eq!(refused.code(), Some(5), "{said:#?}");
    assert!(said.iter().any(|line| line.text.contains("reserved")), "{said:#?}");
    machine.let_go().unwrap();
    machine.finish().unwrap();
    let (status, said) = copy();
    assert!(status.success(), "{said:#?}");
}
