//! What the standard forbids is refused, and what it leaves open is not (RFC 7143 §7.7, §11).

use ropewalk_pdu::*;

/// A header of one opcode with these words set, each by its byte offset.
fn header(opcode: Opcode, words: &[(usize, u32)]) -> Header {
    let mut bhs = [0; Header::BHS_BYTES];
    for &(offset, word) in words {
        bhs[offset..offset + 4].copy_from_slice(&word.to_be_bytes());
    }
    bhs[0] |= opcode.wire();
    Header::new(bhs)
}

#[track_caller]
fn refused(field: Field, header: &Header) {
    let result = match header.opcode().unwrap().is_from_initiator() {
        true => InitiatorPdu::parse(header).map(drop),
        false => TargetPdu::parse(header).map(drop),
    };
    assert_eq!(result.map_err(|error| error.field), Err(field));
}

#[track_caller]
fn accepted(header: &Header) {
    match header.opcode().unwrap().is_from_initiator() {
        true => assert!(InitiatorPdu::parse(header).is_ok()),
        false => assert!(TargetPdu::parse(header).is_ok()),
    }
}

const FLAGS: usize = 0;
const LENGTHS: usize = 4;
const ITT: usize = 16;
const TTT: usize = 20;
const NONE: u32 = 0xffff_ffff;

const fn flags(byte: u32) -> (usize, u32) {
    (FLAGS, byte << 16)
}

#[test]
fn an_opcode_of_the_other_role_is_refused() {
    for opcode in Opcode::ALL {
        let header = header(opcode, &[]);
        let wrong_way = match opcode.is_from_initiator() {
            true => TargetPdu::parse(&header).map(drop),
            false => InitiatorPdu::parse(&header).map(drop),
        };
        assert_eq!(wrong_way.map_err(|error| error.field), Err(Field::Opcode), "{opcode:?}");
    }
}

#[test]
fn an_opcode_that_is_not_assigned_is_not_supported() {
    let error = InitiatorPdu::parse(&Header::new([0x1c; Header::BHS_BYTES])).unwrap_err();
    assert_eq!(error.field, Field::Opcode);
    assert_eq!(error.reject_reason(), RejectReason::CommandNotSupported);
}

#[test]
fn only_a_scsi_command_may_have_an_ahs() {
    for opcode in Opcode::ALL.into_iter().filter(|opcode| *opcode != Opcode::ScsiCommand) {
        refused(Field::TotalAhsLength, &header(opcode, &[(LENGTHS, 0x0200_0000)]));
    }
}

#[test]
fn a_pdu_that_has_no_data_must_not_claim_any() {
    use Opcode::{LogoutRequest, LogoutResponse, R2t, Snack, TaskManagementRequest, TaskManagementResponse};
    for opcode in [LogoutRequest, LogoutResponse, R2t, Snack, TaskManagementRequest, TaskManagementResponse] {
        refused(Field::DataSegmentLength, &header(opcode, &[(LENGTHS, 4)]));
    }
}

#[test]
fn the_reserved_task_tag_names_no_task() {
    for opcode in Opcode::ALL {
        let header = header(opcode, &[flags(0x80), (ITT, NONE), (TTT, 1), (LENGTHS, 0), (44, 1)]);
        match opcode {
            Opcode::NopIn | Opcode::AsyncMessage | Opcode::Reject => accepted(&header),
            Opcode::Snack => refused(Field::TargetTransferTag, &header),
            _ => refused(Field::InitiatorTaskTag, &header),
        }
    }
}

#[test]
fn a_nop_out_without_a_task_is_immediate() {
    accepted(&header(Opcode::NopOut, &[(FLAGS, 0x4080_0000), (ITT, NONE), (TTT, NONE)]));
}

#[test]
fn a_nop_in_is_not_answer_and_ping_at_once() {
    refused(Field::TargetTransferTag, &header(Opcode::NopIn, &[(ITT, 1), (TTT, 1)]));
    accepted(&header(Opcode::NopIn, &[(ITT, 1), (TTT, NONE), (LENGTHS, 8)]));
}

#[test]
fn a_nop_in_that_answers_nothing_returns_no_data() {
    refused(Field::DataSegmentLength, &header(Opcode::NopIn, &[(ITT, NONE), (TTT, 1), (LENGTHS, 8)]));
}

#[test]
fn a_command_is_final_or_a_write() {
    refused(Field::Flags, &header(Opcode::ScsiCommand, &[flags(0x40)]));
    accepted(&header(Opcode::ScsiCommand, &[flags(0x20)]));
    accepted(&header(Opcode::ScsiCommand, &[flags(0x80)]));
}

#[test]
fn a_command_that_expects_data_says_in_which_direction() {
    refused(Field::ExpectedDataTransferLength, &header(Opcode::ScsiCommand, &[flags(0x80), (20, 512)]));
    accepted(&header(Opcode::ScsiCommand, &[flags(0xc0), (20, 512)]));
}

#[test]
fn a_reserved_task_attribute_is_refused() {
    refused(Field::TaskAttribute, &header(Opcode::ScsiCommand, &[flags(0x85)]));
}

fn command_with_ahs(flags: u32, ahs: &[u8]) -> Header {
    let mut header = header(Opcode::ScsiCommand, &[(FLAGS, flags << 16)]);
    header.set_ahs(ahs.to_vec()).unwrap();
    header
}

#[test]
fn a_bidirectional_command_tells_its_read_length() {
    refused(Field::Ahs, &command_with_ahs(0xe0, &[]));
    refused(Field::Ahs, &command_with_ahs(0xc0, &[0, 5, 2, 0, 0, 0, 2, 0]));
    accepted(&command_with_ahs(0xe0, &[0, 5, 2, 0, 0, 0, 2, 0]));
}

#[test]
fn an_ahs_that_does_not_fit_is_refused() {
    refused(Field::Ahs, &command_with_ahs(0x80, &[0, 9, 1, 0, 1, 2, 3, 4]));
    refused(Field::Ahs, &command_with_ahs(0xe0, &[0, 4, 2, 0, 0, 0, 2, 0]));
}

#[test]
fn an_extended_cdb_holds_at_least_one_byte() {
    refused(Field::Ahs, &command_with_ahs(0x80, &[0, 1, 1, 0]));
    accepted(&command_with_ahs(0x80, &[0, 2, 1, 0, 7, 0, 0, 0]));
}

#[test]
fn an_ahs_comes_once() {
    let once = [0, 2, 1, 0, 7, 0, 0, 0];
    refused(Field::Ahs, &command_with_ahs(0x80, &[once, once].concat()));
}

#[test]
fn a_cdb_longer_than_any_is_refused() {
    let extended = |cdb_bytes: u16| {
        let mut ahs = (cdb_bytes - 15).to_be_bytes().to_vec();
        ahs.extend([1, 0]);
        ahs.resize((usize::from(cdb_bytes) - 12).next_multiple_of(4), 0);
        command_with_ahs(0x80, &ahs)
    };
    accepted(&extended(260));
    refused(Field::Ahs, &extended(261));
}

#[test]
fn an_ahs_of_a_reserved_type_is_passed_over() {
    let header = command_with_ahs(0x80, &[0, 3, 9, 1, 2, 3, 0, 0]);
    accepted(&header);
    let unknown = Ahs::Unknown { code: 9, content: &[1, 2, 3] };
    assert_eq!(header.ahs_segments().collect::<Vec<_>>(), [Ok(unknown)]);
}

#[test]
fn an_ahs_that_was_announced_must_be_there() {
    refused(Field::TotalAhsLength, &header(Opcode::ScsiCommand, &[flags(0x80), (LENGTHS, 0x0200_0000)]));
}

#[test]
fn an_ahs_has_whole_words_and_at_most_1020_bytes() {
    let mut header = header(Opcode::ScsiCommand, &[]);
    assert!(header.set_ahs(vec![0; 1020]).is_ok());
    assert_eq!(header.ahs_bytes(), Header::AHS_BYTES_MAX);
    assert!(header.set_ahs(vec![0; 1024]).is_err());
    assert!(header.set_ahs(vec![0; 3]).is_err());
    assert_eq!(header.ahs().len(), 1020);
}

#[test]
fn overflow_and_underflow_exclude_each_other() {
    refused(Field::Flags, &header(Opcode::ScsiResponse, &[flags(0x86)]));
    refused(Field::Flags, &header(Opcode::ScsiResponse, &[flags(0x98)]));
    refused(Field::Flags, &header(Opcode::DataIn, &[flags(0x87)]));
}

#[test]
fn what_a_failed_service_says_of_status_and_residual_is_not_read() {
    let header = header(Opcode::ScsiResponse, &[(FLAGS, 0x009e_0102), (44, 9)]);
    let response = ScsiResponse::parse(&header).unwrap();
    assert_eq!(response.response, ServiceResponse::TargetFailure);
    assert_eq!((response.status, response.residual), (0, Residual::None));
}

#[test]
fn check_condition_may_lack_the_sense_data_it_should_have() {
    accepted(&header(Opcode::ScsiResponse, &[(FLAGS, 0x0080_0002)]));
    accepted(&header(Opcode::ScsiResponse, &[(FLAGS, 0x0080_0002), (LENGTHS, 20)]));
}

#[test]
fn a_status_comes_only_with_the_final_data() {
    refused(Field::Flags, &header(Opcode::DataIn, &[flags(0x01)]));
    accepted(&header(Opcode::DataIn, &[flags(0x81)]));
}

#[test]
fn residual_flags_without_a_status_mean_nothing() {
    accepted(&header(Opcode::DataIn, &[flags(0x06)]));
}

#[test]
fn data_that_wants_an_acknowledgement_gives_a_tag_for_it() {
    refused(Field::TargetTransferTag, &header(Opcode::DataIn, &[flags(0x40), (TTT, NONE)]));
}

#[test]
fn an_r2t_asks_for_data_and_gives_a_tag() {
    refused(Field::DesiredDataTransferLength, &header(Opcode::R2t, &[(TTT, 1)]));
    refused(Field::TargetTransferTag, &header(Opcode::R2t, &[(TTT, NONE), (44, 512)]));
    accepted(&header(Opcode::R2t, &[(TTT, 1), (44, 512)]));
}

#[test]
fn text_that_goes_on_is_not_final() {
    use Opcode::{LoginRequest, LoginResponse, TextRequest, TextResponse};
    for opcode in [LoginRequest, LoginResponse, TextRequest, TextResponse] {
        refused(Field::Flags, &header(opcode, &[flags(0xc0)]));
        accepted(&header(opcode, &[flags(0x40)]));
    }
}

#[test]
fn a_text_response_that_is_not_final_gives_a_tag_to_go_on_with() {
    refused(Field::TargetTransferTag, &header(Opcode::TextResponse, &[(TTT, NONE)]));
    accepted(&header(Opcode::TextResponse, &[flags(0x80), (TTT, 5)]));
}

#[test]
fn a_reserved_login_stage_is_refused() {
    for opcode in [Opcode::LoginRequest, Opcode::LoginResponse] {
        refused(Field::Stage, &header(opcode, &[flags(0x08)]));
        refused(Field::Stage, &header(opcode, &[flags(0x82)]));
        // Without the T bit the next stage is reserved.
        accepted(&header(opcode, &[flags(0x02)]));
    }
}

#[test]
fn a_failed_login_is_understood_whatever_its_stages_say() {
    let header = header(Opcode::LoginResponse, &[flags(0xca), (36, 0x0201_0000)]);
    let response = LoginResponse::parse(&header).unwrap();
    assert_eq!(response.status, LoginStatus::AuthenticationFailure);
    assert_eq!(response.next_stage, None);
}

#[test]
fn a_reserved_logout_reason_is_refused() {
    refused(Field::LogoutReason, &header(Opcode::LogoutRequest, &[flags(0x83)]));
}

#[test]
fn a_snack_has_the_tags_and_the_run_of_its_type() {
    let snack =
        |kind: u32, words: &[(usize, u32)]| header(Opcode::Snack, &[&[flags(0x80 | kind)], words].concat());
    refused(Field::SnackType, &snack(4, &[]));
    refused(Field::TargetTransferTag, &snack(0, &[(ITT, 1), (TTT, 1)]));
    refused(Field::InitiatorTaskTag, &snack(0, &[(ITT, NONE), (TTT, NONE)]));
    refused(Field::InitiatorTaskTag, &snack(1, &[(ITT, 1), (TTT, NONE)]));
    refused(Field::TargetTransferTag, &snack(2, &[(ITT, NONE), (TTT, NONE)]));
    refused(Field::Run, &snack(2, &[(ITT, NONE), (TTT, 1), (44, 1)]));
    refused(Field::SnackTag, &snack(3, &[(ITT, 1), (TTT, 0)]));
    refused(Field::SnackTag, &snack(3, &[(ITT, 1), (TTT, NONE)]));
    refused(Field::Run, &snack(3, &[(ITT, 1), (TTT, 1), (40, 1)]));
    accepted(&snack(3, &[(ITT, 1), (TTT, 1)]));
}

#[test]
fn a_sense_length_beyond_its_segment_is_refused() {
    for data in [&[0][..], &[0, 1], &[0xff, 0xff, 1]] {
        let error = SenseSegment::parse(Opcode::ScsiResponse, data).unwrap_err();
        assert_eq!(error.field, Field::SenseLength);
    }
    assert_eq!(SenseSegment::parse(Opcode::ScsiResponse, &[]), Ok(SenseSegment::default()));
}

#[test]
fn a_segment_is_padded_to_whole_words() {
    assert_eq!([0, 1, 2, 3, 4, DATA_SEGMENT_BYTES_MAX].map(padding), [0, 3, 2, 1, 0, 1]);
}
