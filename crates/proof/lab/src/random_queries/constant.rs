//! The constants of random statements, and the values of random rows.
//!
//! Pools are small, so that keys equal constants often. They contain the ends of the types' ranges,
//! values between two keys, and texts that collations treat as equal.

use crate::random::Random;

/// The kind of a column, for the choice of constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Number,
    Bit,
    Year,
    Date,
    Time,
    DateTime,
    Text,
    Enum,
    Set,
}

const FAMILIES: &[Family] = &[
    Family::Number,
    Family::Bit,
    Family::Year,
    Family::Date,
    Family::Time,
    Family::DateTime,
    Family::Text,
    Family::Enum,
    Family::Set,
];

const NUMBERS: &[&str] = &[
    "0", "1", "-1", "2", "3", "5", "7", "10", "42", "100", "127", "128", "-128", "255", "1.5",
    "-1.5", "0.5", "2.50", "99.99", "0.001", "1e0", "1.5e0", "-0.0",
];
const EXTREMES: &[&str] = &[
    "32767",
    "2147483647",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "9.5e18",
    "1e20",
    "-1e20",
    "99999999999999999999.5",
    "1e-5",
    "3000000000",
];
const BITS: &[&str] = &[
    "0", "1", "2", "5", "7", "128", "255", "b'101'", "b'0'", "x'05'", "256",
];
const YEARS: &[&str] = &[
    "0", "1901", "1970", "1999", "2000", "2020", "2024", "2155", "'2020'", "1", "70",
];
const DATES: &[&str] = &[
    "'2020-01-01'",
    "'2020-02-29'",
    "'1999-12-31'",
    "'0000-00-00'",
    "'2000-00-00'",
    "'1970-01-01'",
    "'2038-01-19'",
    "'9999-12-31'",
    "'1000-01-01'",
    "'2024-05-06'",
    "20200101",
];
const TIMES: &[&str] = &[
    "'00:00:00'",
    "'12:00:00'",
    "'-01:00:00'",
    "'-01:00:00.5'",
    "'838:59:59'",
    "'23:59:59.999999'",
    "'01:02:03'",
    "'01:02:03.4'",
    "'-838:59:59'",
    "'12:00:00.000001'",
    "120000",
];
const DATE_TIMES: &[&str] = &[
    "'2020-01-01 00:00:00'",
    "'2020-01-01 12:00:00'",
    "'2020-01-01 12:00:00.5'",
    "'1999-12-31 23:59:59'",
    "'1999-12-31 23:59:59.999999'",
    "'2024-05-06 01:02:03'",
    "'2000-01-01 00:00:00'",
    "'1970-01-02 00:00:01'",
    "'2037-12-31 23:59:59'",
    "'2020-02-29'",
    "'2020-01-01 12:00:00.000001'",
    "20200101120000",
];
const TEXTS: &[&str] = &[
    "''",
    "' '",
    "'a'",
    "'A'",
    "'a '",
    "'\u{e1}'",
    "'\u{c1}'",
    "'ab'",
    "'abc'",
    "'AB'",
    "'b'",
    "'\u{df}'",
    "'ss'",
    "'s'",
    "'ae'",
    "'\u{e6}'",
    "'1'",
    "'1.0'",
    "'01'",
    "'10'",
    "'1a'",
    "' 1'",
    "'2020-01-01'",
    "'red'",
    "'z'",
    "'Z'",
    "'\u{f1}'",
    "'\u{ff}'",
    "'a\\t'",
    "'a_b'",
    "'a%b'",
    "'abcdef'",
    "'abcdeg'",
];
/// Texts that latin1 lacks.
const WIDE_TEXTS: &[&str] = &[
    "'\u{65e5}\u{672c}'",
    "'\u{1f600}'",
    "'\u{3b1}'",
    "'a\u{1f601}'",
    "'\u{17f}'",
];
const ENUMS: &[&str] = &[
    "'red'", "'green'", "'blue'", "'Red'", "''", "1", "2", "3", "'2'",
];
const SETS: &[&str] = &[
    "''", "'a'", "'b'", "'a,b'", "'c'", "'a,c'", "'a,b,c'", "1", "3", "'A'",
];

/// Constants with an explicit type.
const TYPED: &[&str] = &[
    "DATE'2020-01-01'",
    "TIME'12:00:00'",
    "TIMESTAMP'2020-01-01 12:00:00'",
    "TIME'-01:00:00.5'",
    "x'61'",
    "0x41",
    "b'101'",
    "TRUE",
    "FALSE",
    "_latin1 x'E1'",
    "'a' COLLATE utf8mb4_bin",
    "'A' COLLATE utf8mb4_general_ci",
    "'\u{e1}' COLLATE utf8mb4_unicode_ci",
    "CAST(1 AS UNSIGNED)",
    "CAST(-1 AS SIGNED)",
    "CAST('2020-01-01' AS DATE)",
    "CAST('12:00:00' AS TIME)",
    "CAST('2020-01-01' AS DATETIME)",
    "CAST('a' AS BINARY)",
    "CAST('1.5' AS DECIMAL(10,2))",
    "CONCAT('a', 'b')",
    "1 + 1",
    "1 / 3",
    "CONVERT('\u{e1}' USING latin1)",
    "CAST('ab' AS CHAR)",
];

impl Family {
    /// A literal that a column of this family can store, or nearly; never NULL.
    pub(super) fn value(self, random: &mut Random) -> String {
        let pool = match self {
            Family::Number if random.below(4) == 0 => EXTREMES,
            Family::Number => NUMBERS,
            Family::Bit => BITS,
            Family::Year => YEARS,
            Family::Date => DATES,
            Family::Time => TIMES,
            Family::DateTime => DATE_TIMES,
            Family::Text if random.below(6) == 0 => WIDE_TEXTS,
            Family::Text => TEXTS,
            Family::Enum => ENUMS,
            Family::Set => SETS,
        };
        random.of(pool).to_owned()
    }

    /// A constant for comparison with a column of this family: mostly of its own kind.
    pub(super) fn constant(self, random: &mut Random) -> String {
        match random.below(20) {
            // In MariaDB a BIT compared with texts and dates depends on the other operands.
            1..=6 if self == Family::Bit => self.value(random),
            0 => "NULL".to_owned(),
            // MariaDB treats a dated text beside a TIME differently in each clause.
            1..=3 if self != Family::Time => random.of(FAMILIES).value(random),
            4 | 5 => random.of(TYPED).to_owned(),
            6 => {
                let value = self.value(random);
                match value.starts_with(['\'', 'b', 'x']) {
                    true => value,
                    false => format!("'{value}'"),
                }
            }
            _ => self.value(random),
        }
    }

    /// The pattern of a LIKE.
    pub(super) fn pattern(random: &mut Random) -> &'static str {
        random.of(&[
            "'a%'",
            "'A%'",
            "'ab%'",
            "'\u{e1}%'",
            "'a_'",
            "'a_c%'",
            "'%b'",
            "'%'",
            "''",
            "'a\\_%'",
            "'a'",
            "'1%'",
            "'2020%'",
            "'s%'",
            "'\u{df}%'",
            "'abcde%'",
            "'a %'",
            "' %'",
            "'r%d'",
            "'\u{65e5}%'",
            "'a\\%%'",
            "'0%'",
        ])
    }
}
