//! A double as text in a column that is too short for all its digits: rounded as in MariaDB.

/// Below this a number that does not fit is shown with an exponent.
const PLAIN_MIN: f64 = 1e-4;
/// After this many digits a double's text repeats itself.
const DIGITS_MAX: usize = 16;

/// The number in at most `width` characters, and whether more than digits after the point was lost.
pub(super) fn fitted(number: f64, width: usize) -> (String, bool) {
    if let Some(text) = plain(number, width) {
        return (text, false);
    }
    let texts = (0..=DIGITS_MAX).rev();
    let texts = texts.map(|digits| scientific(number, digits));
    let fitting = texts.into_iter().find(|text| text.len() <= width);
    let mut text = fitting.unwrap_or_else(|| scientific(number, 0));
    let is_lost = width < text.len() || text.parse() != Ok(number);
    text.truncate(width);
    (text, is_lost)
}

/// Without an exponent, if the part before the point fits and a digit of the number is visible.
fn plain(number: f64, width: usize) -> Option<String> {
    if number != 0.0 && number.abs() < PLAIN_MIN {
        return None;
    }
    let before = format!("{:.0}", number.trunc()).len();
    // The sign of a number between -1 and 0 is lost together with its digits.
    let sign = usize::from(number < 0.0 && number > -1.0 && before < 2);
    let behind = width.saturating_sub(before + sign + 1);
    let mut text = format!("{number:.behind$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if text == "-0" {
        text.remove(0);
    }
    let shows = text != "0" || number == 0.0 || width < scientific(number, 0).len();
    (text.len() <= width && shows).then_some(text)
}

/// With an exponent and at most this many digits after the point.
fn scientific(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    format!("{mantissa}e{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What MariaDB 10.11 stores in a VARCHAR of 1, 2, 3, 4, 5 and 7 characters.
    const STORED: &[(f64, [&str; 6])] = &[
        (-1.5, ["-", "-2", "-2", "-1.5", "-1.5", "-1.5"]),
        (1.25, ["1", "1", "1.2", "1.25", "1.25", "1.25"]),
        (2.0240229e7, ["2", "2e", "2e7", "2e7", "2e7", "2.024e7"]),
        (0.001234, ["0", "0", "0", "1e-3", "0.001", "0.00123"]),
        (0.00001234, ["1", "1e", "1e-", "1e-5", "1e-5", "1.23e-5"]),
        (123_456.789, ["1", "1e", "1e5", "1e5", "1.2e5", "123457"]),
        (9.99, ["1", "10", "10", "9.99", "9.99", "9.99"]),
        (99.96, ["1", "1e", "100", "100", "99.96", "99.96"]),
        (-0.05, ["0", "0", "0", "-0.1", "-0.05", "-0.05"]),
        (-0.5, ["0", "0", "0", "-0.5", "-0.5", "-0.5"]),
        (1.5e20, ["2", "2e", "2e2", "2e20", "2e20", "1.5e20"]),
        (-1e100, ["-", "-1", "-1e", "-1e1", "-1e10", "-1e100"]),
        (1.23456e-10, ["1", "1e", "1e-", "1e-1", "1e-10", "1.2e-10"]),
        (12_345_678.0, ["1", "1e", "1e7", "1e7", "1.2e7", "1.235e7"]),
        (0.125, ["0", "0", "0.1", "0.12", "0.125", "0.125"]),
        (-1000.0, ["-", "-1", "-1e", "-1e3", "-1000", "-1000"]),
        (f64::MAX, ["2", "2e", "2e3", "2e30", "2e308", "1.8e308"]),
        (0.06, ["0", "0", "0.1", "0.06", "0.06", "0.06"]),
        (1.23e14, ["1", "1e", "1e1", "1e14", "1e14", "1.23e14"]),
    ];

    #[test]
    fn numbers_are_rounded_to_the_width() {
        for (number, stored) in STORED {
            for (width, expected) in [1, 2, 3, 4, 5, 7].into_iter().zip(stored) {
                let text = fitted(*number, width).0;
                assert_eq!(&text, expected, "{number} in {width}");
            }
        }
    }

    #[test]
    fn what_is_lost_is_told() {
        assert_eq!(fitted(1.25, 3), ("1.2".to_owned(), false));
        assert_eq!(fitted(1e20, 4), ("1e20".to_owned(), false));
        assert_eq!(fitted(1.5e20, 4), ("2e20".to_owned(), true));
        assert_eq!(fitted(-1e100, 5), ("-1e10".to_owned(), true));
    }
}
