//! What is emitted is parsed as what it was, for each PDU.

use proptest::prelude::*;
use ropewalk_pdu::*;

/// Sends a header through its bytes, as a driver does.
fn over_the_wire(sent: &Header) -> Header {
    let mut header = Header::new(*sent.bhs());
    assert_eq!(header.ahs_bytes(), sent.ahs().len());
    header.set_ahs(sent.ahs().to_vec()).unwrap();
    header
}

prop_compose! {
    fn window()(exp in any::<u32>(), max in any::<u32>()) -> Window {
        Window { exp_cmd_sn: CmdSn(exp), max_cmd_sn: CmdSn(max) }
    }
}

fn task() -> impl Strategy<Value = Itt> {
    (0..u32::MAX).prop_map(Itt)
}

fn transfer() -> impl Strategy<Value = Ttt> {
    (0..u32::MAX).prop_map(Ttt)
}

fn any_transfer() -> impl Strategy<Value = Ttt> {
    prop_oneof![transfer(), Just(Ttt::NONE)]
}

fn lun() -> impl Strategy<Value = Lun> {
    any::<u64>().prop_map(Lun)
}

fn data_bytes() -> impl Strategy<Value = u32> {
    0..=DATA_SEGMENT_BYTES_MAX
}

fn residual() -> impl Strategy<Value = Residual> {
    prop_oneof![
        Just(Residual::None),
        any::<u32>().prop_map(Residual::Overflow),
        any::<u32>().prop_map(Residual::Underflow),
    ]
}

fn attribute() -> impl Strategy<Value = TaskAttribute> {
    use TaskAttribute::{Aca, HeadOfQueue, Ordered, Simple, Untagged};
    prop::sample::select(vec![Untagged, Simple, Ordered, HeadOfQueue, Aca])
}

fn stage() -> impl Strategy<Value = Stage> {
    use Stage::{FullFeaturePhase, OperationalNegotiation, SecurityNegotiation};
    prop::sample::select(vec![SecurityNegotiation, OperationalNegotiation, FullFeaturePhase])
}

/// The last bit of a text exchange and the bit of a text that goes on: never both.
fn final_or_continued() -> impl Strategy<Value = (bool, bool)> {
    prop::sample::select(vec![(false, false), (true, false), (false, true)])
}

prop_compose! {
    fn nop_out()(
        task in prop_oneof![task(), Just(Itt::NONE)], immediate: bool, lun in lun(), ttt in any_transfer(),
        cmd_sn: u32, exp_stat_sn: u32, data_segment_bytes in data_bytes(),
    ) -> NopOut {
        NopOut {
            immediate: immediate || task.is_none(), lun, itt: task, ttt,
            cmd_sn: CmdSn(cmd_sn), exp_stat_sn: StatSn(exp_stat_sn), data_segment_bytes,
        }
    }
}

prop_compose! {
    fn nop_in()(
        lun in lun(), (itt, ttt, data_segment_bytes) in prop_oneof![
            (task(), Just(Ttt::NONE), data_bytes()),
            (Just(Itt::NONE), any_transfer(), Just(0)),
        ], stat_sn: u32, window in window(),
    ) -> NopIn {
        NopIn { lun, itt, ttt, stat_sn: StatSn(stat_sn), window, data_segment_bytes }
    }
}

prop_compose! {
    fn scsi_command()(
        lun in lun(), itt in task(), immediate: bool, final_: bool, read: bool, write: bool,
        attribute in attribute(), expected: u32, read_bytes: u32,
        (cmd_sn, exp_stat_sn) in any::<(u32, u32)>(),
        cdb in prop::collection::vec(any::<u8>(), 6..=Cdb::BYTES_MAX), data_segment_bytes in data_bytes(),
    ) -> ScsiCommand {
        ScsiCommand {
            lun, itt, immediate, final_: final_ || !write, read, write, attribute,
            expected_data_bytes: if read || write { expected } else { 0 },
            bidirectional_read_bytes: (read && write).then_some(read_bytes),
            cmd_sn: CmdSn(cmd_sn), exp_stat_sn: StatSn(exp_stat_sn),
            cdb: Cdb::new(&cdb).unwrap(), data_segment_bytes,
        }
    }
}

prop_compose! {
    fn scsi_response()(
        itt in task(), response: u8, status: u8, residual in residual(), read_residual in residual(),
        snack_tag: u32, stat_sn: u32, window in window(), exp_data_sn: u32,
        data_segment_bytes in 1..=DATA_SEGMENT_BYTES_MAX,
    ) -> ScsiResponse {
        // Half of all commands complete at the target.
        let response = ServiceResponse::from_wire(if response < 128 { 0 } else { response });
        let completed = response == ServiceResponse::CompletedAtTarget;
        ScsiResponse {
            itt, response,
            status: if completed { status } else { 0 },
            residual: if completed { residual } else { Residual::None },
            bidirectional_read_residual: if completed { read_residual } else { Residual::None },
            snack_tag, stat_sn: StatSn(stat_sn), window, exp_data_sn: DataSn(exp_data_sn), data_segment_bytes,
        }
    }
}

prop_compose! {
    fn data_out()(
        lun in lun(), itt in task(), ttt in any_transfer(), final_: bool, exp_stat_sn: u32, data_sn: u32,
        buffer_offset: u32, data_segment_bytes in data_bytes(),
    ) -> DataOut {
        DataOut {
            lun, itt, ttt, final_, exp_stat_sn: StatSn(exp_stat_sn), data_sn: DataSn(data_sn),
            buffer_offset, data_segment_bytes,
        }
    }
}

prop_compose! {
    fn collapsed_status()(stat_sn: u32, status: u8, residual in residual()) -> CollapsedStatus {
        CollapsedStatus { stat_sn: StatSn(stat_sn), status, residual }
    }
}

prop_compose! {
    fn data_in()(
        lun in lun(), itt in task(), (acknowledge, ttt) in prop_oneof![
            (Just(true), transfer()),
            (Just(false), Just(Ttt::NONE)),
        ], final_: bool, status in prop::option::of(collapsed_status()), window in window(),
        data_sn: u32, buffer_offset: u32, data_segment_bytes in data_bytes(),
    ) -> DataIn {
        DataIn {
            lun, itt, ttt, final_: final_ || status.is_some(), acknowledge, status, window,
            data_sn: DataSn(data_sn), buffer_offset, data_segment_bytes,
        }
    }
}

prop_compose! {
    fn r2t()(
        lun in lun(), itt in task(), ttt in transfer(), stat_sn: u32, window in window(), r2t_sn: u32,
        buffer_offset: u32, desired_bytes in 1..=u32::MAX,
    ) -> R2t {
        R2t {
            lun, itt, ttt, stat_sn: StatSn(stat_sn), window, r2t_sn: R2tSn(r2t_sn), buffer_offset,
            desired_bytes,
        }
    }
}

prop_compose! {
    fn task_management_request()(
        function in 0..128u8, immediate: bool, lun in lun(), itt in task(), referenced: u32, cmd_sn: u32,
        exp_stat_sn: u32, ref_cmd_sn: u32, exp_data_sn: u32,
    ) -> TaskManagementRequest {
        TaskManagementRequest {
            function: TaskManagementFunction::from_wire(function), immediate, lun, itt,
            referenced_task: Itt(referenced), cmd_sn: CmdSn(cmd_sn), exp_stat_sn: StatSn(exp_stat_sn),
            ref_cmd_sn: CmdSn(ref_cmd_sn), exp_data_sn: DataSn(exp_data_sn),
        }
    }
}

prop_compose! {
    fn task_management_response()(
        outcome: u8, itt in task(), stat_sn: u32, window in window(),
    ) -> TaskManagementResponse {
        TaskManagementResponse {
            outcome: TaskManagementOutcome::from_wire(outcome), itt, stat_sn: StatSn(stat_sn), window,
        }
    }
}

prop_compose! {
    fn text_request()(
        immediate: bool, (final_, continued) in final_or_continued(), lun in lun(), itt in task(),
        ttt in any_transfer(), cmd_sn: u32, exp_stat_sn: u32, data_segment_bytes in data_bytes(),
    ) -> TextRequest {
        TextRequest {
            immediate, final_, continued, lun, itt, ttt, cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: StatSn(exp_stat_sn), data_segment_bytes,
        }
    }
}

prop_compose! {
    fn text_response()(
        (final_, continued) in final_or_continued(), lun in lun(), itt in task(), ttt in transfer(),
        stat_sn: u32, window in window(), data_segment_bytes in data_bytes(),
    ) -> TextResponse {
        TextResponse {
            final_, continued, lun, itt, ttt: if final_ { Ttt::NONE } else { ttt },
            stat_sn: StatSn(stat_sn), window, data_segment_bytes,
        }
    }
}

prop_compose! {
    fn login_request()(
        current_stage in stage(), next_stage in prop::option::of(stage()), continued: bool,
        versions: (u8, u8), isid: [u8; 6], tsih: u16, itt in task(), cid: u16, cmd_sn: u32,
        exp_stat_sn: u32, data_segment_bytes in data_bytes(),
    ) -> LoginRequest {
        LoginRequest {
            current_stage, next_stage, continued: continued && next_stage.is_none(),
            version_max: versions.0, version_min: versions.1, isid: Isid(isid), tsih: Tsih(tsih), itt,
            cid: Cid(cid), cmd_sn: CmdSn(cmd_sn), exp_stat_sn: StatSn(exp_stat_sn), data_segment_bytes,
        }
    }
}

prop_compose! {
    fn login_response()(
        (class, detail) in prop_oneof![Just((0, 0)), (0..5u8, 0..16u8)], current_stage in stage(),
        next_stage in prop::option::of(stage()), continued: bool, versions: (u8, u8), isid: [u8; 6],
        tsih: u16, itt in task(), stat_sn: u32, window in window(), data_segment_bytes in data_bytes(),
    ) -> LoginResponse {
        let status = LoginStatus::from_wire(class, detail);
        LoginResponse {
            status, current_stage, next_stage,
            continued: continued && next_stage.is_none() && status.is_success(),
            version_max: versions.0, version_active: versions.1, isid: Isid(isid), tsih: Tsih(tsih), itt,
            stat_sn: StatSn(stat_sn), window, data_segment_bytes,
        }
    }
}

prop_compose! {
    fn logout_request()(
        reason in prop::sample::select(vec![
            LogoutReason::CloseSession,
            LogoutReason::CloseConnection,
            LogoutReason::RemoveConnectionForRecovery,
        ]), immediate: bool, itt in task(), cid: u16, cmd_sn: u32, exp_stat_sn: u32,
    ) -> LogoutRequest {
        LogoutRequest {
            reason, immediate, itt, cid: Cid(cid), cmd_sn: CmdSn(cmd_sn), exp_stat_sn: StatSn(exp_stat_sn),
        }
    }
}

prop_compose! {
    fn logout_response()(
        outcome: u8, itt in task(), stat_sn: u32, window in window(), wait_seconds: u16, retain_seconds: u16,
    ) -> LogoutResponse {
        LogoutResponse {
            outcome: LogoutOutcome::from_wire(outcome), itt, stat_sn: StatSn(stat_sn), window,
            wait_seconds, retain_seconds,
        }
    }
}

fn async_event() -> impl Strategy<Value = AsyncEvent> {
    prop_oneof![
        Just(AsyncEvent::Scsi),
        any::<u16>().prop_map(|seconds_max| AsyncEvent::LogoutRequest { seconds_max }),
        any::<(u16, u16, u16)>().prop_map(|(cid, wait_seconds, retain_seconds)| AsyncEvent::ConnectionDrop {
            cid: Cid(cid),
            wait_seconds,
            retain_seconds
        }),
        any::<(u16, u16)>().prop_map(|(wait_seconds, retain_seconds)| AsyncEvent::SessionDrop {
            wait_seconds,
            retain_seconds
        }),
        any::<u16>().prop_map(|seconds_max| AsyncEvent::NegotiationRequest { seconds_max }),
        Just(AsyncEvent::TaskTermination),
        (6..=u8::MAX, any::<u8>(), any::<[u16; 3]>()).prop_map(|(event, vendor_code, parameters)| {
            AsyncEvent::Other { event, vendor_code, parameters }
        }),
    ]
}

prop_compose! {
    fn async_message()(
        event in async_event(), lun in lun(), stat_sn: u32, window in window(),
        data_segment_bytes in data_bytes(),
    ) -> AsyncMessage {
        AsyncMessage { event, lun, stat_sn: StatSn(stat_sn), window, data_segment_bytes }
    }
}

prop_compose! {
    fn reject()(
        reason: u8, stat_sn: u32, window in window(), next_data_or_r2t_sn: u32,
        data_segment_bytes in data_bytes(),
    ) -> Reject {
        Reject {
            reason: RejectReason::from_wire(reason), stat_sn: StatSn(stat_sn), window, next_data_or_r2t_sn,
            data_segment_bytes,
        }
    }
}

fn snack_kind() -> impl Strategy<Value = SnackKind> {
    prop_oneof![
        (task(), any::<u32>(), any::<u32>()).prop_map(|(itt, begin, count)| SnackKind::DataOrR2t {
            itt,
            begin,
            count
        }),
        any::<(u32, u32)>().prop_map(|(begin, count)| SnackKind::Status { begin: StatSn(begin), count }),
        (transfer(), any::<u32>()).prop_map(|(ttt, next)| SnackKind::DataAck { ttt, next: DataSn(next) }),
        (task(), 1..u32::MAX).prop_map(|(itt, tag)| SnackKind::ResegmentedData { itt, tag }),
    ]
}

prop_compose! {
    fn snack()(kind in snack_kind(), lun in lun(), exp_stat_sn: u32) -> Snack {
        Snack { kind, lun, exp_stat_sn: StatSn(exp_stat_sn) }
    }
}

macro_rules! survives_the_wire {
    ($($name:ident: $strategy:ident, $role:ident::$pdu:ident;)*) => {
        proptest! {
            $(
                #[test]
                fn $name(sent in $strategy()) {
                    let header = over_the_wire(&sent.emit());
                    let received = $pdu::parse(&header);
                    prop_assert_eq!(received.as_ref(), Ok(&sent));
                    let wrapped = $role::$pdu(sent);
                    prop_assert_eq!(wrapped.emit(), header.clone());
                    prop_assert_eq!($role::parse(&header), Ok(wrapped));
                }
            )*
        }
    };
}

survives_the_wire! {
    a_nop_out_survives_the_wire: nop_out, InitiatorPdu::NopOut;
    a_scsi_command_survives_the_wire: scsi_command, InitiatorPdu::ScsiCommand;
    a_task_management_request_survives_the_wire: task_management_request, InitiatorPdu::TaskManagementRequest;
    a_login_request_survives_the_wire: login_request, InitiatorPdu::LoginRequest;
    a_text_request_survives_the_wire: text_request, InitiatorPdu::TextRequest;
    a_data_out_survives_the_wire: data_out, InitiatorPdu::DataOut;
    a_logout_request_survives_the_wire: logout_request, InitiatorPdu::LogoutRequest;
    a_snack_survives_the_wire: snack, InitiatorPdu::Snack;
    a_nop_in_survives_the_wire: nop_in, TargetPdu::NopIn;
    a_scsi_response_survives_the_wire: scsi_response, TargetPdu::ScsiResponse;
    a_task_management_response_survives_the_wire: task_management_response, TargetPdu::TaskManagementResponse;
    a_login_response_survives_the_wire: login_response, TargetPdu::LoginResponse;
    a_text_response_survives_the_wire: text_response, TargetPdu::TextResponse;
    a_data_in_survives_the_wire: data_in, TargetPdu::DataIn;
    a_logout_response_survives_the_wire: logout_response, TargetPdu::LogoutResponse;
    an_r2t_survives_the_wire: r2t, TargetPdu::R2t;
    an_async_message_survives_the_wire: async_message, TargetPdu::AsyncMessage;
    a_reject_survives_the_wire: reject, TargetPdu::Reject;
}

proptest! {
    #[test]
    fn a_rejected_header_is_read_back_out_of_the_reject(sent in scsi_command(), vendor_data: Vec<u8>) {
        let header = sent.emit();
        let mut data = Vec::new();
        header.write_to(&mut data);
        prop_assert_eq!(Reject::rejected_header(&data[..data.len() - 1]), None);
        data.extend(vendor_data);
        prop_assert_eq!(Reject::rejected_header(&data), Some(header));
    }

    #[test]
    fn sense_data_is_read_back_out_of_its_segment(sense: Vec<u8>, rest: Vec<u8>) {
        let sent = SenseSegment { sense: &sense, rest: &rest };
        let data = sent.emit();
        prop_assert_eq!(SenseSegment::parse(Opcode::ScsiResponse, &data), Ok(sent));
    }
}
