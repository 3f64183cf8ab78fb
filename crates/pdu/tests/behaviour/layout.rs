//! Each field stands where the standard's figure puts it: one whole header per PDU, word by word (RFC 7143
//! §11.3 to §11.19). A round trip alone would not see a field that is wrong both ways.

use ropewalk_pdu::*;

const LUN: Lun = Lun(0x0801_0203_0405_0607);
const ITT: Itt = Itt(0x1611_1213);
const TTT: Ttt = Ttt(0x2021_2223);
const CMD_SN: CmdSn = CmdSn(0x2425_2627);
const STAT_SN: StatSn = StatSn(0x2425_2627);
const EXP_STAT_SN: StatSn = StatSn(0x2829_2a2b);
const WINDOW: Window = Window { exp_cmd_sn: CmdSn(0x2829_2a2b), max_cmd_sn: CmdSn(0x3233_3435) };
const DATA_BYTES: u32 = 0x0a_0b0c;

/// The twelve words of a BHS.
fn words(header: &Header) -> [u32; 12] {
    let bhs = header.bhs();
    std::array::from_fn(|word| u32::from_be_bytes(bhs[word * 4..][..4].try_into().unwrap()))
}

#[test]
fn nop_out() {
    let pdu = NopOut {
        immediate: true,
        lun: LUN,
        itt: ITT,
        ttt: TTT,
        cmd_sn: CMD_SN,
        exp_stat_sn: EXP_STAT_SN,
        data_segment_bytes: DATA_BYTES,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x4080_0000, 0x000a_0b0c, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0x2021_2223,
        0x2425_2627, 0x2829_2a2b, 0, 0, 0, 0,
    ]);
}

#[test]
fn nop_in() {
    let pdu = NopIn {
        lun: LUN,
        itt: ITT,
        ttt: Ttt::NONE,
        stat_sn: STAT_SN,
        window: WINDOW,
        data_segment_bytes: DATA_BYTES,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x2080_0000, 0x000a_0b0c, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0xffff_ffff,
        0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0, 0, 0,
    ]);
}

fn write_command(cdb: &[u8]) -> ScsiCommand {
    ScsiCommand {
        lun: LUN,
        itt: ITT,
        immediate: false,
        final_: true,
        read: false,
        write: true,
        attribute: TaskAttribute::Simple,
        expected_data_bytes: 0x2021_2223,
        bidirectional_read_bytes: None,
        cmd_sn: CMD_SN,
        exp_stat_sn: EXP_STAT_SN,
        cdb: Cdb::new(cdb).unwrap(),
        data_segment_bytes: DATA_BYTES,
    }
}

#[test]
fn scsi_command() {
    let header = write_command(&[0x2a, 0, 1, 2, 3, 4, 0, 5, 6, 0]).emit();
    #[rustfmt::skip]
    assert_eq!(words(&header), [
        0x01a1_0000, 0x000a_0b0c, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0x2021_2223,
        0x2425_2627, 0x2829_2a2b, 0x2a00_0102, 0x0304_0005, 0x0600_0000, 0,
    ]);
    assert_eq!(header.ahs(), []);
}

#[test]
fn scsi_command_with_a_long_cdb_and_both_directions() {
    let cdb: Vec<u8> = (1..=19).collect();
    let pdu = ScsiCommand {
        read: true,
        attribute: TaskAttribute::HeadOfQueue,
        bidirectional_read_bytes: Some(0x5152_5354),
        ..write_command(&cdb)
    };
    let header = pdu.emit();
    assert_eq!(words(&header)[..2], [0x01e3_0000, 0x040a_0b0c]);
    assert_eq!(words(&header)[8..], [0x0102_0304, 0x0506_0708, 0x090a_0b0c, 0x0d0e_0f10]);
    // AHSLength is CDBLength - 15, then type 1, a reserved byte, three bytes of CDB and one of padding.
    assert_eq!(header.ahs(), [0, 4, 1, 0, 17, 18, 19, 0, 0, 5, 2, 0, 0x51, 0x52, 0x53, 0x54]);
    let segments: Result<Vec<_>, _> = header.ahs_segments().collect();
    let expected = vec![Ahs::ExtendedCdb(&[17, 18, 19]), Ahs::BidirectionalReadLength(0x5152_5354)];
    assert_eq!(segments, Ok(expected));
}

#[test]
fn scsi_response() {
    let pdu = ScsiResponse {
        itt: ITT,
        response: ServiceResponse::CompletedAtTarget,
        status: 0x02,
        residual: Residual::Underflow(0x4445_4647),
        bidirectional_read_residual: Residual::Overflow(0x4041_4243),
        snack_tag: 0x2021_2223,
        stat_sn: STAT_SN,
        window: WINDOW,
        exp_data_sn: DataSn(0x3637_3839),
        data_segment_bytes: DATA_BYTES,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x2192_0002, 0x000a_0b0c, 0, 0, 0x1611_1213, 0x2021_2223,
        0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0x3637_3839, 0x4041_4243, 0x4445_4647,
    ]);
}

#[test]
fn task_management_request() {
    let pdu = TaskManagementRequest {
        function: TaskManagementFunction::AbortTask,
        immediate: true,
        lun: LUN,
        itt: ITT,
        referenced_task: Itt(0x2021_2223),
        cmd_sn: CMD_SN,
        exp_stat_sn: EXP_STAT_SN,
        ref_cmd_sn: CmdSn(0x3233_3435),
        exp_data_sn: DataSn(0x3637_3839),
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x4281_0000, 0, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0x2021_2223,
        0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0x3637_3839, 0, 0,
    ]);
}

#[test]
fn task_management_response() {
    let pdu = TaskManagementResponse {
        outcome: TaskManagementOutcome::FunctionRejected,
        itt: ITT,
        stat_sn: STAT_SN,
        window: WINDOW,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x2280_ff00, 0, 0, 0, 0x1611_1213, 0, 0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0, 0, 0,
    ]);
}

#[test]
fn data_out() {
    let pdu = DataOut {
        lun: LUN,
        itt: ITT,
        ttt: TTT,
        final_: true,
        exp_stat_sn: EXP_STAT_SN,
        data_sn: DataSn(0x3637_3839),
        buffer_offset: 0x4041_4243,
        data_segment_bytes: DATA_BYTES,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x0580_0000, 0x000a_0b0c, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0x2021_2223,
        0, 0x2829_2a2b, 0, 0x3637_3839, 0x4041_4243, 0,
    ]);
}

#[test]
fn data_in() {
    let residual = Residual::Overflow(0x4445_4647);
    let pdu = DataIn {
        lun: LUN,
        itt: ITT,
        ttt: TTT,
        final_: true,
        acknowledge: true,
        status: Some(CollapsedStatus { stat_sn: STAT_SN, status: 0x04, residual }),
        window: WINDOW,
        data_sn: DataSn(0x3637_3839),
        buffer_offset: 0x4041_4243,
        data_segment_bytes: DATA_BYTES,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x25c5_0004, 0x000a_0b0c, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0x2021_2223,
        0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0x3637_3839, 0x4041_4243, 0x4445_4647,
    ]);
}

#[test]
fn r2t() {
    let pdu = R2t {
        lun: LUN,
        itt: ITT,
        ttt: TTT,
        stat_sn: STAT_SN,
        window: WINDOW,
        r2t_sn: R2tSn(0x3637_3839),
        buffer_offset: 0x4041_4243,
        desired_bytes: 0x4445_4647,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x3180_0000, 0, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0x2021_2223,
        0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0x3637_3839, 0x4041_4243, 0x4445_4647,
    ]);
}

#[test]
fn async_message() {
    let event = AsyncEvent::ConnectionDrop { cid: Cid(0x3839), wait_seconds: 0x4041, retain_seconds: 0x4243 };
    let pdu =
        AsyncMessage { event, lun: LUN, stat_sn: STAT_SN, window: WINDOW, data_segment_bytes: DATA_BYTES };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x3280_0000, 0x000a_0b0c, 0x0801_0203, 0x0405_0607, 0xffff_ffff, 0,
        0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0x0200_3839, 0x4041_4243, 0,
    ]);
}

#[test]
fn text_request() {
    let pdu = TextRequest {
        immediate: true,
        final_: false,
        continued: true,
        lun: LUN,
        itt: ITT,
        ttt: TTT,
        cmd_sn: CMD_SN,
        exp_stat_sn: EXP_STAT_SN,
        data_segment_bytes: DATA_BYTES,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x4440_0000, 0x000a_0b0c, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0x2021_2223,
        0x2425_2627, 0x2829_2a2b, 0, 0, 0, 0,
    ]);
}

#[test]
fn text_response() {
    let pdu = TextResponse {
        final_: true,
        continued: false,
        lun: LUN,
        itt: ITT,
        ttt: Ttt::NONE,
        stat_sn: STAT_SN,
        window: WINDOW,
        data_segment_bytes: DATA_BYTES,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x2480_0000, 0x000a_0b0c, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0xffff_ffff,
        0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0, 0, 0,
    ]);
}

#[test]
fn login_request() {
    let pdu = LoginRequest {
        current_stage: Stage::OperationalNegotiation,
        next_stage: Some(Stage::FullFeaturePhase),
        continued: false,
        version_max: 0x02,
        version_min: 0x01,
        isid: Isid([0x80, 1, 2, 3, 4, 5]),
        tsih: Tsih(0x1415),
        itt: ITT,
        cid: Cid(0x2021),
        cmd_sn: CMD_SN,
        exp_stat_sn: EXP_STAT_SN,
        data_segment_bytes: DATA_BYTES,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x4387_0201, 0x000a_0b0c, 0x8001_0203, 0x0405_1415, 0x1611_1213, 0x2021_0000,
        0x2425_2627, 0x2829_2a2b, 0, 0, 0, 0,
    ]);
}

#[test]
fn login_response() {
    let pdu = LoginResponse {
        status: LoginStatus::SessionDoesNotExist,
        current_stage: Stage::SecurityNegotiation,
        next_stage: Some(Stage::OperationalNegotiation),
        continued: false,
        version_max: 0x02,
        version_active: 0x01,
        isid: Isid([0x80, 1, 2, 3, 4, 5]),
        tsih: Tsih(0x1415),
        itt: ITT,
        stat_sn: STAT_SN,
        window: WINDOW,
        data_segment_bytes: DATA_BYTES,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x2381_0201, 0x000a_0b0c, 0x8001_0203, 0x0405_1415, 0x1611_1213, 0,
        0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0x020a_0000, 0, 0,
    ]);
}

#[test]
fn logout_request() {
    let pdu = LogoutRequest {
        reason: LogoutReason::RemoveConnectionForRecovery,
        immediate: true,
        itt: ITT,
        cid: Cid(0x2021),
        cmd_sn: CMD_SN,
        exp_stat_sn: EXP_STAT_SN,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x4682_0000, 0, 0, 0, 0x1611_1213, 0x2021_0000, 0x2425_2627, 0x2829_2a2b, 0, 0, 0, 0,
    ]);
}

#[test]
fn logout_response() {
    let pdu = LogoutResponse {
        outcome: LogoutOutcome::CleanupFailed,
        itt: ITT,
        stat_sn: STAT_SN,
        window: WINDOW,
        wait_seconds: 0x4041,
        retain_seconds: 0x4243,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x2680_0300, 0, 0, 0, 0x1611_1213, 0, 0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0, 0x4041_4243, 0,
    ]);
}

#[test]
fn snack() {
    let kind = SnackKind::DataOrR2t { itt: ITT, begin: 0x4041_4243, count: 0x4445_4647 };
    let pdu = Snack { kind, lun: LUN, exp_stat_sn: EXP_STAT_SN };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x1080_0000, 0, 0x0801_0203, 0x0405_0607, 0x1611_1213, 0xffff_ffff,
        0, 0x2829_2a2b, 0, 0, 0x4041_4243, 0x4445_4647,
    ]);
    let kind = SnackKind::DataAck { ttt: TTT, next: DataSn(0x4041_4243) };
    #[rustfmt::skip]
    assert_eq!(words(&Snack { kind, ..pdu }.emit()), [
        0x1082_0000, 0, 0x0801_0203, 0x0405_0607, 0xffff_ffff, 0x2021_2223,
        0, 0x2829_2a2b, 0, 0, 0x4041_4243, 0,
    ]);
}

#[test]
fn reject() {
    let pdu = Reject {
        reason: RejectReason::ImmediateCommandReject,
        stat_sn: STAT_SN,
        window: WINDOW,
        next_data_or_r2t_sn: 0x3637_3839,
        data_segment_bytes: 48,
    };
    #[rustfmt::skip]
    assert_eq!(words(&pdu.emit()), [
        0x3f80_0600, 48, 0, 0, 0xffff_ffff, 0, 0x2425_2627, 0x2829_2a2b, 0x3233_3435, 0x3637_3839, 0, 0,
    ]);
}

#[test]
fn sense_data_stands_behind_its_length() {
    let segment = SenseSegment { sense: &[0x70, 0, 5], rest: &[9] };
    assert_eq!(segment.emit(), [0, 3, 0x70, 0, 5, 9]);
    assert_eq!(SenseSegment::default().emit(), []);
}
