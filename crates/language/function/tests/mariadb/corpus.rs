//! The expressions of the comparison: written ones, and generated ones by a fixed sequence.

/// Arguments that are put into every place of every function.
const LITERALS: &[&str] = &[
    "NULL",
    "0",
    "1",
    "-1",
    "2",
    "7",
    "100",
    "255",
    "65536",
    "-12345",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1.5",
    "-1.5",
    "0.05",
    "-0.005",
    "99.995",
    "12345.6789",
    "-7.25",
    "1e0",
    "2.5e0",
    "-3.5e0",
    "1e15",
    "1.25e-5",
    "1e300",
    "''",
    "'a'",
    "'abc'",
    "'ABC'",
    "'Hello, World'",
    "' x '",
    "'12'",
    "'12abc'",
    "'-3.7'",
    "'1e2'",
    "'abcabc'",
    "'a,b,c'",
    "'\u{e9}t\u{e9}'",
    "'\u{df}'",
    "'\u{65e5}\u{672c}'",
    "'\u{1F600}x'",
    "'2024-02-29'",
    "'2023-12-31 23:59:59'",
    "'2024-02-30'",
    "'10:11:12'",
    "'-01:30:00.5'",
    "DATE'2024-02-29'",
    "DATE'1999-12-31'",
    "TIME'10:11:12'",
    "TIME'-25:00:01.250'",
    "TIMESTAMP'2024-02-29 10:11:12'",
    "TIMESTAMP'2001-01-01 00:00:00.123456'",
    "20240229",
    "20231231235959",
    "101112",
    "TRUE",
    "FALSE",
];

const UNARY: &[&str] = &[
    "ABS",
    "CEIL",
    "FLOOR",
    "ROUND",
    "SIGN",
    "SQRT",
    "EXP",
    "LN",
    "LOG2",
    "LOG10",
    "SIN",
    "COS",
    "ATAN",
    "DEGREES",
    "RADIANS",
    "CRC32",
    "LENGTH",
    "CHAR_LENGTH",
    "BIT_LENGTH",
    "UPPER",
    "LOWER",
    "REVERSE",
    "QUOTE",
    "SOUNDEX",
    "TRIM",
    "LTRIM",
    "RTRIM",
    "ASCII",
    "ORD",
    "HEX",
    "UNHEX",
    "BIN",
    "OCT",
    "TO_BASE64",
    "FROM_BASE64",
    "MD5",
    "SHA1",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "YEAR",
    "MONTH",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MICROSECOND",
    "QUARTER",
    "WEEK",
    "WEEKDAY",
    "DAYOFWEEK",
    "DAYOFYEAR",
    "WEEKOFYEAR",
    "YEARWEEK",
    "DAYNAME",
    "MONTHNAME",
    "LAST_DAY",
    "TO_DAYS",
    "FROM_DAYS",
    "TO_SECONDS",
    "TIME_TO_SEC",
    "SEC_TO_TIME",
    "UNIX_TIMESTAMP",
    "FROM_UNIXTIME",
    "BIT_COUNT",
    "ISNULL",
    "CHARSET",
    "COLLATION",
    "COERCIBILITY",
    "-",
    "~",
    "NOT ",
    "CHAR",
];

const BINARY: &[&str] = &[
    "ROUND",
    "TRUNCATE",
    "MOD",
    "POW",
    "LOG",
    "ATAN2",
    "CONCAT",
    "CONCAT_WS",
    "LEFT",
    "RIGHT",
    "SUBSTRING",
    "REPEAT",
    "INSTR",
    "LOCATE",
    "STRCMP",
    "FIND_IN_SET",
    "NULLIF",
    "IFNULL",
    "COALESCE",
    "GREATEST",
    "LEAST",
    "FORMAT",
    "SHA2",
    "DATEDIFF",
    "TIMEDIFF",
    "ADDTIME",
    "SUBTIME",
    "MAKEDATE",
    "FIELD",
    "WEEK",
    "LPAD",
    "RPAD",
    "ELT",
    "MAKE_SET",
    "TIMESTAMP",
    "INTERVAL",
];

const INFIX: &[&str] = &[
    "+", "-", "*", "/", "DIV", "%", "=", "<=>", "<>", "<", "<=", ">", ">=", "AND", "OR", "XOR",
    "&", "|", "^", "<<", ">>", "LIKE",
];

const TERNARY: &[&str] = &[
    "IF",
    "SUBSTRING",
    "REPLACE",
    "LPAD",
    "RPAD",
    "CONCAT",
    "CONCAT_WS",
    "LOCATE",
    "CONV",
    "COALESCE",
    "GREATEST",
    "LEAST",
    "SUBSTRING_INDEX",
    "MAKETIME",
    "ELT",
    "FIELD",
    "EXPORT_SET",
    "MAKE_SET",
];

const TARGETS: &[&str] = &[
    "SIGNED",
    "UNSIGNED",
    "CHAR",
    "CHAR(3)",
    "BINARY(4)",
    "DATE",
    "TIME",
    "TIME(3)",
    "DATETIME",
    "DATETIME(6)",
    "DOUBLE",
    "DECIMAL(10,2)",
    "DECIMAL(30,10)",
];

const UNITS: &[&str] = &[
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MICROSECOND",
    "YEAR_MONTH",
    "DAY_HOUR",
    "DAY_MINUTE",
    "DAY_SECOND",
    "HOUR_MINUTE",
    "HOUR_SECOND",
    "MINUTE_SECOND",
    "DAY_MICROSECOND",
    "HOUR_MICROSECOND",
    "MINUTE_MICROSECOND",
    "SECOND_MICROSECOND",
];

const AMOUNTS: &[&str] = &[
    "1",
    "-1",
    "13",
    "1.5",
    "'1'",
    "'1:30'",
    "'1 2:3:4.5'",
    "'-2 10'",
    "NULL",
];

const MOMENTS: &[&str] = &[
    "'2024-02-29'",
    "'2024-01-31 23:59:59'",
    "DATE'2024-01-31'",
    "DATE'9999-12-31'",
    "TIMESTAMP'2024-02-29 10:11:12.345'",
    "TIME'10:11:12'",
    "20240229",
    "'0000-00-00'",
    "'abc'",
];

/// Every expression, in a fixed order.
pub(crate) fn expressions() -> Vec<String> {
    let mut all: Vec<String> = include_str!("written.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    for name in UNARY {
        for literal in LITERALS {
            all.push(format!("{name}({literal})"));
        }
    }
    for target in TARGETS {
        for literal in LITERALS {
            all.push(format!("CAST({literal} AS {target})"));
        }
    }
    for unit in UNITS {
        for moment in MOMENTS {
            all.push(format!("EXTRACT({unit} FROM {moment})"));
            for amount in AMOUNTS {
                all.push(format!("DATE_ADD({moment}, INTERVAL {amount} {unit})"));
            }
        }
    }
    for unit in &UNITS[..9] {
        for from in MOMENTS {
            for to in MOMENTS {
                all.push(format!("TIMESTAMPDIFF({unit}, {from}, {to})"));
            }
        }
    }
    generated(&mut all);
    all
}

fn generated(all: &mut Vec<String>) {
    let mut random = Random(0x5EED);
    for name in BINARY {
        for _ in 0..50 {
            let (left, right) = (random.literal(), random.literal());
            all.push(format!("{name}({left}, {right})"));
        }
    }
    for name in INFIX {
        for _ in 0..80 {
            let (left, right) = (random.literal(), random.literal());
            all.push(format!("({left}) {name} ({right})"));
        }
    }
    for name in TERNARY {
        for _ in 0..50 {
            let (first, second, third) = (random.literal(), random.literal(), random.literal());
            all.push(format!("{name}({first}, {second}, {third})"));
        }
    }
    for _ in 0..200 {
        let (first, second, third) = (random.literal(), random.literal(), random.literal());
        all.push(format!("({first}) BETWEEN ({second}) AND ({third})"));
        all.push(format!("({first}) IN ({second}, {third})"));
        all.push(format!("CASE WHEN {first} THEN {second} ELSE {third} END"));
    }
}

/// A linear congruential sequence: the same expressions in every run.
struct Random(u64);

impl Random {
    fn literal(&mut self) -> &'static str {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let index = usize::try_from(self.0 >> 33).expect("31 bits") % LITERALS.len();
        LITERALS[index]
    }
}

/// Columns that stand for every type; their names end in an underscore and hide no function.
pub(crate) const COLUMNS: &[&str] = &[
    "tiny_", "int_", "uint_", "big_", "ubig_", "float_", "double_", "dec_", "bit_", "year_",
    "date_", "time_", "dt_", "dt3_", "char_", "var_", "lat_", "bin_", "text_", "blob_", "enum_",
    "set_",
];

/// Every expression over columns, in a fixed order.
pub(crate) fn over_columns() -> Vec<String> {
    let mut all = Vec::new();
    for column in COLUMNS {
        for name in UNARY {
            all.push(format!("{name}({column})"));
        }
        for target in TARGETS {
            all.push(format!("CAST({column} AS {target})"));
        }
        for other in COLUMNS {
            for name in INFIX {
                all.push(format!("({column}) {name} ({other})"));
            }
            for name in [
                "IFNULL", "CONCAT", "GREATEST", "COALESCE", "NULLIF", "STRCMP", "LEAST",
            ] {
                all.push(format!("{name}({column}, {other})"));
            }
            all.push(format!("CASE WHEN 1 THEN {column} ELSE {other} END"));
            all.push(format!("{column} IN ({other}, 1)"));
        }
        for name in [
            "ROUND",
            "TRUNCATE",
            "LEFT",
            "RIGHT",
            "SUBSTRING",
            "REPEAT",
            "FORMAT",
            "MOD",
        ] {
            all.push(format!("{name}({column}, 2)"));
        }
        for literal in ["1", "1.5", "'1'", "'a'", "NULL", "DATE'2024-02-29'"] {
            for name in ["=", "<", "+", "*", "/"] {
                all.push(format!("({column}) {name} ({literal})"));
            }
        }
        for unit in &UNITS[..9] {
            all.push(format!("DATE_ADD({column}, INTERVAL 1 {unit})"));
            all.push(format!("EXTRACT({unit} FROM {column})"));
        }
    }
    all
}
