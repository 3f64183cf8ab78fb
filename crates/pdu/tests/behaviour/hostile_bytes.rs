//! No bytes make a parser panic, and whatever it accepts it can say again.

use proptest::prelude::*;
use ropewalk_pdu::*;

/// Headers of any bytes, mostly with an opcode that exists and an AHS of the length they claim.
fn header() -> impl Strategy<Value = Header> {
    let opcode = prop_oneof![
        9 => prop::sample::select(Opcode::ALL.to_vec()).prop_map(Opcode::wire),
        1 => any::<u8>(),
    ];
    let ahs_words = prop_oneof![6 => Just(0u8), 3 => 1..8u8, 1 => any::<u8>()];
    // Tags and runs that are reserved must come up often enough to be seen.
    let word = prop_oneof![any::<[u8; 4]>(), Just([0; 4]), Just([0xff; 4])];
    (
        opcode,
        any::<bool>(),
        ahs_words,
        prop::collection::vec(word, 12),
        prop::collection::vec(any::<u8>(), 1020),
    )
        .prop_map(|(opcode, immediate, ahs_words, words, mut ahs)| {
            let mut bhs: [u8; Header::BHS_BYTES] = words.concat().try_into().unwrap();
            bhs[0] = opcode | u8::from(immediate) << 6;
            bhs[4] = ahs_words;
            let mut header = Header::new(bhs);
            ahs.truncate(header.ahs_bytes());
            header.set_ahs(ahs).unwrap();
            header
        })
}

/// Headers of SCSI Commands with AHSs that are nearly right.
fn command_with_ahs() -> impl Strategy<Value = Header> {
    let segment =
        (0..24u16, 0..5u8, prop::collection::vec(any::<u8>(), 0..28)).prop_map(|(length, code, content)| {
            let mut segment = length.to_be_bytes().to_vec();
            segment.push(code);
            segment.extend(content);
            segment.resize(segment.len().next_multiple_of(4), 0);
            segment
        });
    (any::<u8>(), prop::collection::vec(segment, 0..4)).prop_map(|(flags, segments)| {
        let mut bhs = [0; Header::BHS_BYTES];
        (bhs[0], bhs[1]) = (Opcode::ScsiCommand.wire(), flags);
        let mut header = Header::new(bhs);
        header.set_ahs(segments.concat()).unwrap();
        header
    })
}

fn check(header: &Header) -> Result<(), TestCaseError> {
    // Reserved bits need not come back, but the meaning must.
    if let Ok(pdu) = InitiatorPdu::parse(header) {
        prop_assert_eq!(InitiatorPdu::parse(&pdu.emit()), Ok(pdu));
        prop_assert!(TargetPdu::parse(header).is_err());
    }
    if let Ok(pdu) = TargetPdu::parse(header) {
        prop_assert_eq!(TargetPdu::parse(&pdu.emit()), Ok(pdu));
    }
    prop_assert!(header.ahs_segments().count() <= Header::AHS_BYTES_MAX);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_header_is_parsed_or_refused(header in header()) {
        check(&header)?;
    }

    #[test]
    fn any_additional_header_segments_are_parsed_or_refused(header in command_with_ahs()) {
        check(&header)?;
    }

    #[test]
    fn a_header_whose_ahs_has_not_come_is_parsed_or_refused(bhs: [[u8; 24]; 2]) {
        check(&Header::new(bhs.concat().try_into().unwrap()))?;
    }

    #[test]
    fn any_data_segment_is_taken_apart_or_refused(data: Vec<u8>) {
        let _ = Reject::rejected_header(&data);
        if let Ok(segment) = SenseSegment::parse(Opcode::AsyncMessage, &data) {
            prop_assert!(segment.sense.len() + segment.rest.len() <= data.len());
        }
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(b'='), Just(b'A')], 0..200),
    ) {
        for (key, value) in text_keys::pairs(&text).flatten() {
            prop_assert!(!key.is_empty() && !value.contains('\0'));
        }
    }

    #[test]
    fn any_value_is_read_or_refused(value in "(0x|0b|)[0-9a-fA-F+/=~,YesNo-]{0,24}", any in ".*") {
        for value in [value, any] {
            let _ = text_value::numerical(&value, 0..=u64::MAX);
            let _ = text_value::range(&value, 0..=u64::MAX);
            let _ = text_value::boolean(&value);
            let _ = text_value::list(&value).map(Iterator::count);
            let _ = text_value::binary(&value, 1024);
        }
    }
}
