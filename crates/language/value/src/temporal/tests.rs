//! Temporal values: packing, calendar, conversion to and from text.

use proptest::prelude::*;

use super::*;

fn datetime(text: &str) -> DateTime {
    parse_datetime(text.as_bytes()).unwrap().value
}

fn shown(value: DateTime, fsp: u8) -> String {
    let mut out = Vec::new();
    append_datetime(value, fsp, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn text_of_many_forms_is_read() {
    for (text, value) in [
        ("2024-02-29 12:34:56.123456", "2024-02-29 12:34:56.123456"),
        ("2024-2-9 1:2:3", "2024-02-09 01:02:03.000000"),
        ("24-02-29", "2024-02-29 00:00:00.000000"),
        ("99/12/31T23:59:59.9", "1999-12-31 23:59:59.900000"),
        ("20240229123456", "2024-02-29 12:34:56.000000"),
        ("240229", "2024-02-29 00:00:00.000000"),
        ("20240229", "2024-02-29 00:00:00.000000"),
        ("0000-00-00", "0000-00-00 00:00:00.000000"),
    ] {
        assert_eq!(shown(datetime(text), 6), value, "{text}");
    }
    for bad in ["", "abc", "2024-13-01", "2024-01-32", "2024-01-01 24:00:00"] {
        assert_eq!(parse_datetime(bad.as_bytes()), None, "{bad}");
    }
}

#[test]
fn durations_are_read() {
    for (text, micros) in [
        ("10:11:12", 36_672_000_000),
        ("-1 01:00:00", -90_000_000_000),
        ("101112", 36_672_000_000),
        ("12", 12_000_000),
        ("11:12", 40_320_000_000),
        ("00:00:00.5", 500_000),
        ("2024-02-29 01:00:00", 3_600_000_000),
    ] {
        assert_eq!(
            parse_time(text.as_bytes()).unwrap().value.micros(),
            micros,
            "{text}"
        );
    }
    assert!(parse_time(b"900:00:00").unwrap().out_of_range);
    assert_eq!(parse_time(b"00:60:00"), None);
}

#[test]
fn days_are_counted_as_mysql_counts_them() {
    assert_eq!(day_number(Date::new(1970, 1, 1)), 719_528);
    assert_eq!(day_number(Date::new(2024, 2, 29)), 739_310);
    assert_eq!(day_number(Date::MAX), calendar::DAY_NUMBER_MAX);
    assert_eq!(Date::new(2024, 2, 29).weekday(), 3);
    assert_eq!(Date::new(2024, 12, 31).day_of_year(), 366);
    for days in (366..=calendar::DAY_NUMBER_MAX).step_by(97) {
        assert_eq!(day_number(Date::from_day_number(days).unwrap()), days);
    }
}

#[test]
fn rounding_carries() {
    assert_eq!(
        shown(
            datetime("2024-12-31 23:59:59.9999995").rounded(3).unwrap(),
            3
        ),
        "2025-01-01 00:00:00.000"
    );
    assert_eq!(
        shown(datetime("2024-12-31 23:59:59.499").rounded(0).unwrap(), 0),
        "2024-12-31 23:59:59"
    );
    assert_eq!(
        Time::from_micros(-1_500_000).rounded(0).micros(),
        -2_000_000
    );
    assert_eq!(
        Time::from_micros(-1_500_000).truncated(0).micros(),
        -1_000_000
    );
}

#[test]
fn zones_lead_to_utc_and_back() {
    let rules = jiff::tz::TimeZone::posix("EET-2EEST,M3.5.0/3,M10.5.0/4").unwrap();
    let zone = Zone::Named(Box::new(rules));
    for (wall, utc) in [
        ("2024-01-15 12:00:00", "2024-01-15 10:00:00"),
        ("2024-07-15 12:00:00.5", "2024-07-15 09:00:00.5"),
        // The clock is set from 03:00 to 04:00: times in between count as 04:00.
        ("2024-03-31 03:30:00", "2024-03-31 01:00:00"),
        // 03:30 occurs twice: the first is used.
        ("2024-10-27 03:30:00", "2024-10-27 00:30:00"),
    ] {
        assert_eq!(zone.to_utc(datetime(wall)), Some(datetime(utc)), "{wall}");
    }
    assert_eq!(
        zone.from_utc(datetime("2024-07-15 09:00:00")),
        Some(datetime("2024-07-15 12:00:00"))
    );
    assert_eq!(Zone::from_name("+05:30"), Some(Zone::Fixed(19_800)));
    for (name, shown) in [
        ("+5:30", "+05:30"),
        ("-00:00", "+00:00"),
        ("-2:05", "-02:05"),
    ] {
        assert_eq!(Zone::from_name(name).unwrap().name_of(name), shown);
    }
    assert_eq!(Zone::Utc.name_of("system"), "SYSTEM");
    assert_eq!(Zone::Utc.name_of("utc"), "UTC");
    for bad in ["+13:01", "+25:00", "+1", "nowhere/none", "-13:00"] {
        assert_eq!(Zone::from_name(bad), None, "{bad}");
    }
    assert!(is_timestamp(datetime("2038-01-19 03:14:07.9")));
    assert!(!is_timestamp(datetime("2038-01-19 03:14:08")));
}

proptest! {
    #[test]
    fn packed_values_keep_order_and_parts(left in 366i64..3_652_424, right in 366i64..3_652_424,
        micros in 0..DAY_MICROS)
    {
        let make = |days| DateTime::new(Date::from_day_number(days).unwrap(), Time(micros));
        prop_assert_eq!(make(left).cmp(&make(right)), left.cmp(&right));
        prop_assert_eq!(make(left).time().micros(), micros);
        prop_assert_eq!(DateTime::from_micros(make(left).to_micros()), Some(make(left)));
        prop_assert_eq!(DateTime::from_packed(make(left).packed()), Some(make(left)));
        prop_assert_eq!(datetime(&shown(make(left), 6)), make(left));
    }
}
