//! LIO, Linux's own target, in the machine, and our initiator, outside.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_interop::{Cut, Image, Program, Relay, Way, assert_same, binary, ropewalk};
use ropewalk_machines::{LISTEN, Machine, PATIENCE};
use std::net::SocketAddr;
use std::process::Command;

const TARGET: &str = "iqn.2026-11.org.example:lio";

/// LIO with a disk in memory and one in a file, four connections in a session, and this error recovery level.
fn serving(error_recovery_level: u8) -> String {
    format!(
        r#"
modprobe configfs; mount -t configfs configfs /sys/kernel/config
modprobe target_core_mod; modprobe target_core_file; modprobe iscsi_target_mod
lio=/sys/kernel/config/target
mkdir -p $lio/core/rd_mcp_0/memory $lio/core/fileio_1/file
echo rd_pages=16384 >$lio/core/rd_mcp_0/memory/control
echo fd_dev_name=/tmp/file,fd_dev_size=67108864 >$lio/core/fileio_1/file/control
echo 1 >$lio/core/rd_mcp_0/memory/enable; echo 1 >$lio/core/fileio_1/file/enable
group=$lio/iscsi/{TARGET}/tpgt_1
mkdir -p $group/lun/lun_0 $group/lun/lun_1 $group/np/0.0.0.0:3260
ln -s $lio/core/rd_mcp_0/memory $group/lun/lun_0/; ln -s $lio/core/fileio_1/file $group/lun/lun_1/
for setting in authentication=0 generate_node_acls=1 cache_dynamic_acls=1 demo_mode_write_protect=0 \
  default_erl={error_recovery_level}; do
  echo "${{setting#*=}}" >"$group/attrib/${{setting%=*}}"
done
echo 4 >$group/param/MaxConnections; echo {error_recovery_level} >$group/param/ErrorRecoveryLevel
echo 1 >$group/enable
{LISTEN}
end=$!
echo "LIO serves"
wait $end
! dmesg | grep -E 'BUG:|Oops|WARNING:|Kernel panic|Time2Retain timer expired|Received CmdSN|SNACK'
"#
    )
}

/// LIO in a machine.
struct Lio {
    machine: Machine,
    address: SocketAddr,
}

impl Lio {
    fn boot(error_recovery_level: u8) -> Self {
        let machine = Machine::boot(&serving(error_recovery_level), &[]).unwrap();
        machine.wait_for("LIO serves").unwrap();
        let address = machine.port(3260).unwrap();
        Self { machine, address }
    }

    /// Copies to a LUN and back, over four connections, by this address, and compares.
    fn there_and_back(&self, address: SocketAddr, lun: u16) {
        let image = Image::random(48).unwrap();
        let back = image.beside("back");
        let url = format!("iscsi://{address}/{TARGET}/{lun}");
        let options = ["--connections=4", "--sessions=1", "--overwrite", "--verify=full"];
        for ends in [[image.name(), &url], [&url, &back]] {
            let mut copy = Command::new(binary().unwrap());
            copy.env("RUST_LOG", "info");
            // The machine at the other end is emulated.
            let (status, said) = Program::run(copy.arg("copy").args(ends).args(options), PATIENCE).unwrap();
            assert!(status.success(), "{ends:?}: {said:#?}\nLIO's machine: {:#?}", self.machine.said());
        }
        std::fs::File::options().write(true).open(&back).unwrap().set_len(48 << 20).unwrap();
        assert_same(image.path(), back).unwrap();
    }

    /// Ends it; its kernel must not have complained, nor have kept a session that had ended. (6.12 may sleep in the timer
    /// that ends such a session, which is a bug.) No command may have come twice, nor a DataACK too late: 6.12 drops the
    /// connection for the latter, and at level 2 may crash as it recovers it.
    fn end(self) {
        self.machine.let_go().unwrap();
        self.machine.finish().unwrap();
    }
}

/// The second and the third connection break, each way.
const CUTS: [Cut; 3] = [
    Cut { connection: 1, way: Way::ToTarget, after_bytes: 3 << 20 },
    Cut { connection: 2, way: Way::ToTarget, after_bytes: 7 << 20 },
    Cut { connection: 3, way: Way::ToInitiator, after_bytes: 1 << 10 },
];

#[test]
fn a_session_of_four_connections_works_with_lio_at_level_0_even_while_connections_break() {
    if !Machine::is_prepared() {
        return;
    }
    let lio = Lio::boot(0);
    for lun in [0, 1] {
        lio.there_and_back(lio.address, lun);
        let relay = Relay::to(lio.address, &CUTS).unwrap();
        lio.there_and_back(relay.address(), lun);
    }
    lio.end();
}

#[test]
fn a_session_of_four_connections_works_with_lio_at_level_2_and_logs_out_without_a_panic() {
    if !Machine::is_prepared() {
        return;
    }
    let lio = Lio::boot(2);
    for lun in [0, 1] {
        lio.there_and_back(lio.address, lun);
    }
    for _ in 0..40 {
        let url = format!("iscsi://{}/{TARGET}/0", lio.address);
        let (status, said) = ropewalk(["info", &url, "--connections=4"]).unwrap();
        assert!(status.success(), "{said:#?}");
    }
    lio.end();
}

#[test]
fn lio_does_not_split_sessions_and_gets_whole_connections() {
    if !Machine::is_prepared() {
        return;
    }
    let lio = Lio::boot(0);
    let image = Image::random(8).unwrap();
    let url = format!("iscsi://{}/{TARGET}/0", lio.address);
    for lanes in ["split", "split3"] {
        let options = ["--lanes", lanes, "--connections=2", "--overwrite", "--verify=full"];
        let (status, said) = ropewalk(["copy", image.name(), &url].into_iter().chain(options)).unwrap();
        assert!(status.success(), "{said:#?}");
        let warning = format!("does not have {lanes} connections");
        assert!(said.iter().any(|line| line.text.contains(&warning)), "{said:#?}");
    }
    lio.end();
}
