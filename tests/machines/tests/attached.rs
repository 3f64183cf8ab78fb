//! `ropewalk attach` in the machine, whose kernel has NBD, and `ropewalk serve` outside.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_interop::{Image, Ropewalk, binary, ropewalk};
use ropewalk_machines::{FREE_FROM, HOST, Machine, OPEN, check_ext4};

#[test]
fn linux_mounts_a_remote_disk_by_its_own_nbd_client_and_then_by_a_loop_device() {
    if !Machine::is_prepared() {
        return;
    }
    let image = Image::empty(256).unwrap();
    let target = Ropewalk::serve_at(HOST, &[&format!("0=file:{},thin", image.name())], OPEN).unwrap();
    let job = format!(
        r#"
modprobe nbd; modprobe loop; modprobe fuse; modprobe ext4
mkdir -p /mnt
url={url}
head -c 33554432 /dev/urandom >/tmp/noise
ropewalk attach --name disk --nbd /run/disk.sock $url
nbd-client -unix /run/disk.sock /dev/nbd0 -C 4
ropewalk attach --list
mkfs.ext4 -q /dev/nbd0
mount -t ext4 /dev/nbd0 /mnt
cp /tmp/noise /mnt/file
sync; echo 3 >/proc/sys/vm/drop_caches; cmp /tmp/noise /mnt/file
! ropewalk detach disk
umount /mnt
nbd-client -d /dev/nbd0
until ropewalk detach disk; do sleep 0.2; done
device=$(ropewalk attach --name disk $url)
mount -t ext4 $device /mnt
cmp /tmp/noise /mnt/file
rm /mnt/file
fstrim -v /mnt
cp /tmp/noise /mnt/again
umount /mnt
e2fsck -fn $device
ropewalk detach disk
ropewalk attach --list
"#,
        url = target.url(0)
    );
    let binary = binary().unwrap();
    let said = Machine::boot(&job, &[&binary]).unwrap().finish().unwrap();
    assert!(said.iter().any(|line| line.contains("has 4 clients")), "{said:#?}");
    assert!(said.iter().any(|line| line.contains("nothing is attached")), "{said:#?}");
    assert!(target.stop().unwrap().success());
    check_ext4(image.name()).unwrap();
}

#[test]
fn a_machine_boots_from_a_remote_disk_and_keeps_a_filesystem_on_it() {
    if !Machine::is_prepared() {
        return;
    }
    let image = Image::empty(128).unwrap();
    let job = "
modprobe virtio_blk; modprobe ext4
mkdir -p /mnt
mkfs.ext4 -q /dev/vda2
mount -t ext4 /dev/vda2 /mnt
head -c 16777216 /dev/urandom >/tmp/noise
cp /tmp/noise /mnt/file; sync; echo 3 >/proc/sys/vm/drop_caches; cmp /tmp/noise /mnt/file
umount /mnt
";
    Machine::make_disk(job, image.path()).unwrap();
    let target = Ropewalk::serve(&[&format!("0=file:{},thin", image.name())]).unwrap();
    let (name, socket) = (format!("boots-{}", std::process::id()), image.beside("socket"));
    let (status, said) = ropewalk(["attach", "--name", &name, "--nbd", &socket, &target.url(0)]).unwrap();
    assert!(status.success(), "{said:#?}");
    let booted = Machine::boot_from(&format!("nbd+unix:///?socket={socket}")).unwrap().finish();
    let (status, said) = ropewalk(["detach", &name]).unwrap();
    assert!(status.success(), "{said:#?}");
    booted.unwrap();
    assert!(target.stop().unwrap().success());
    check_ext4(&format!("{}?offset={FREE_FROM}", image.name())).unwrap();
}
