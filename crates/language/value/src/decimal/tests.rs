//! DECIMAL compared with cases from a real server and with integers.

use proptest::prelude::*;

use super::*;

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn text_leads_back() {
    for text in [
        "0",
        "1",
        "-1",
        "0.5",
        "-0.050",
        "123456789.123456789",
        "1000000000",
        "0.000",
        "12345678901234567890123456789012345.123456789012345678901234567890",
    ] {
        assert_eq!(decimal(text).to_string(), text);
    }
    assert_eq!(decimal("1e3").to_string(), "1000");
    assert_eq!(decimal("1.25e1").to_string(), "12.5");
    assert_eq!(decimal("125e-2").to_string(), "1.25");
    assert_eq!(decimal("-.5").to_string(), "-0.5");
    assert_eq!(decimal("-0").to_string(), "0");
    assert_eq!(Decimal::parse_prefix(b" 12abc").used, 3);
    assert_eq!(Decimal::parse_prefix(b"1e").used, 1);
    assert_eq!(Decimal::parse_prefix(b"abc").used, 0);
    assert!(Decimal::parse_prefix(b"1e99").overflow);
}

#[test]
fn arithmetic_gives_mysqls_scales() {
    let calculate = |result: Calculated| result.unwrap().to_string();
    assert_eq!(calculate(decimal("1.5").add(&decimal("2.25"))), "3.75");
    assert_eq!(
        calculate(decimal("1.5").subtract(&decimal("2.25"))),
        "-0.75"
    );
    assert_eq!(
        calculate(decimal("999999999.9").add(&decimal("0.1"))),
        "1000000000.0"
    );
    assert_eq!(
        calculate(decimal("1.5").multiply(&decimal("-2.25"))),
        "-3.375"
    );
    assert_eq!(
        calculate(decimal("1").divide(&decimal("3"), 4).unwrap()),
        "0.333333333"
    );
    assert_eq!(
        calculate(decimal("10").remainder(&decimal("-3.5")).unwrap()),
        "3.0"
    );
    assert_eq!(
        calculate(decimal("-10").remainder(&decimal("3")).unwrap()),
        "-1"
    );
    assert_eq!(
        calculate(decimal("-10").divide_integer(&decimal("0.3")).unwrap()),
        "-33"
    );
    assert!(decimal("1").divide(&decimal("0.00"), 4).is_none());
}

type Calculated = Result<Decimal, DecimalOverflow>;

#[test]
fn rounding() {
    let round = |text: &str, scale, how| decimal(text).round(scale, how).unwrap().to_string();
    assert_eq!(round("1.005", 2, Rounding::HalfUp), "1.01");
    assert_eq!(round("-1.005", 2, Rounding::HalfUp), "-1.01");
    assert_eq!(round("1.005", 2, Rounding::Truncate), "1.00");
    assert_eq!(round("999999999.5", 0, Rounding::HalfUp), "1000000000");
    assert_eq!(round("0.5", 0, Rounding::HalfUp), "1");
    assert_eq!(round("15", -1, Rounding::HalfUp), "20");
    assert_eq!(round("149", -3, Rounding::HalfUp), "0");
    assert_eq!(
        round("500000000000", -12, Rounding::HalfUp),
        "1000000000000"
    );
    assert_eq!(round("-1.2", 0, Rounding::Floor), "-2");
    assert_eq!(round("-1.2", 0, Rounding::Ceiling), "-1");
    assert_eq!(round("1.2", 0, Rounding::Ceiling), "2");
    assert_eq!(round("1.2", 4, Rounding::HalfUp), "1.2000");
    assert_eq!(
        round("0.000000000000000000001", 10, Rounding::Ceiling),
        "0.0000000001"
    );
}

#[test]
fn integers_and_doubles() {
    assert_eq!(Decimal::from(i64::MIN).to_string(), "-9223372036854775808");
    assert_eq!(Decimal::from(u64::MAX).to_u64(), Ok(u64::MAX));
    assert_eq!(decimal("-9223372036854775808.4").to_i64(), Ok(i64::MIN));
    assert_eq!(decimal("9223372036854775807.5").to_i64(), Err(i64::MAX));
    assert_eq!(decimal("-0.4").to_u64(), Ok(0));
    assert_eq!(decimal("-1").to_u64(), Err(0));
    assert_eq!(Decimal::from_f64(0.1).unwrap().value.to_string(), "0.1");
    assert_eq!(decimal("0.1").to_f64(), 0.1);
    assert_eq!(Decimal::greatest(5, 2).to_string(), "999.99");
}

#[test]
fn the_storage_form_is_mysqls() {
    // The manual of the format gives this example for DECIMAL(14,4).
    let mut bytes = Vec::new();
    append_binary(&decimal("1234567890.1234"), 14, 4, &mut bytes).unwrap();
    assert_eq!(bytes, [0x81, 0x0D, 0xFB, 0x38, 0xD2, 0x04, 0xD2]);
    bytes.clear();
    append_binary(&decimal("-1234567890.1234"), 14, 4, &mut bytes).unwrap();
    assert_eq!(bytes, [0x7E, 0xF2, 0x04, 0xC7, 0x2D, 0xFB, 0x2D]);
    assert_eq!(
        from_binary(&bytes, 14, 4).unwrap().to_string(),
        "-1234567890.1234"
    );
    assert!(append_binary(&decimal("100"), 4, 2, &mut bytes).is_err());
    assert_eq!(from_binary(&bytes[..6], 14, 4), None);
    assert_eq!(from_binary(&[0xFF; 7], 14, 4), None);
}

/// A decimal as scaled integer and scale, small enough for `i128` to check the operations.
fn numbers() -> impl Strategy<Value = (i64, u8)> {
    prop_oneof![
        (any::<i64>(), 0..19u8),
        (-1000..1000i64, 0..4u8),
        (any::<i32>().prop_map(i64::from), 0..30u8),
    ]
}

fn made((number, scale): (i64, u8)) -> Decimal {
    let digits = format!(
        "{:0>width$}",
        number.unsigned_abs(),
        width = usize::from(scale) + 1
    );
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let sign = if number < 0 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    decimal(&format!("{sign}{whole}{point}{fraction}"))
}

fn shown(number: i128, scale: u32) -> String {
    let width = usize::try_from(scale).unwrap();
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = width + 1);
    let (whole, fraction) = digits.split_at(digits.len() - width);
    let sign = if number < 0 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    format!("{sign}{whole}{point}{fraction}")
}

proptest! {
    #[test]
    fn sums_and_products_are_those_of_integers(left in numbers(), right in numbers()) {
        let product = made(left).multiply(&made(right)).unwrap();
        let exact = i128::from(left.0) * i128::from(right.0);
        prop_assert_eq!(product.to_string(), shown(exact, u32::from(left.1) + u32::from(right.1)));

        if left.1.abs_diff(right.1) < 19 {
            let scale = left.1.max(right.1);
            let wide = |(number, own): (i64, u8)| {
                i128::from(number) * 10i128.pow(u32::from(scale - own))
            };
            let sum = made(left).add(&made(right)).unwrap();
            prop_assert_eq!(sum.to_string(), shown(wide(left) + wide(right), u32::from(scale)));
            prop_assert_eq!(made(left).cmp(&made(right)), wide(left).cmp(&wide(right)));
            if right.0 != 0 {
                let rest = made(left).remainder(&made(right)).unwrap().unwrap();
                let exact = wide(left) % wide(right);
                prop_assert_eq!(rest.to_string(), shown(exact, u32::from(scale)));
                let whole = made(left).divide_integer(&made(right)).unwrap().unwrap();
                prop_assert_eq!(whole.to_string(), shown(wide(left) / wide(right), 0));
            }
        }
    }

    #[test]
    fn long_division_multiplies_back(
        dividend in prop::collection::vec(0..BASE, 1..9),
        divisor in prop::collection::vec(prop_oneof![0..BASE, Just(BASE - 1), Just(0)], 1..5),
    ) {
        let make = |words: &[u32]| {
            let kept = &words[..words.len().min(WORDS_MAX)];
            Decimal::from_words(false, kept, &[], 0).unwrap()
        };
        let (left, right) = (make(&dividend), make(&divisor));
        if let Some(quotient) = left.divide_integer(&right) {
            let rest = left.remainder(&right).unwrap().unwrap();
            prop_assert!(rest < right);
            let back = quotient.unwrap().multiply(&right).unwrap().add(&rest).unwrap();
            prop_assert_eq!(back, left);
        }
    }

    #[test]
    fn the_storage_form_keeps_values_and_order(left in numbers(), right in numbers()) {
        let packed = |number: Decimal| {
            let mut bytes = Vec::new();
            append_binary(&number, 60, 30, &mut bytes).unwrap();
            bytes
        };
        let (left, right) = (made(left), made(right));
        prop_assert_eq!(packed(left).len(), binary_bytes(60, 30));
        prop_assert_eq!(from_binary(&packed(left), 60, 30).unwrap(), left);
        prop_assert_eq!(packed(left).cmp(&packed(right)), left.cmp(&right));
    }
}
