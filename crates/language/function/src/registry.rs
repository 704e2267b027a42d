//! The table of functions and operators.

use value::{SqlCondition, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::number::{arithmetic, bits, numeric, random};
use crate::text::{digest, encode, pattern, position, sets, strings, substring};
use crate::time::{interval, temporal, time_format, time_parse};
use crate::{cast, comparison, control, geometry, infer, info, json, logic, network};

/// Infers a result's type.
pub(crate) type Infer = fn(&mut Binding<'_>) -> Result<(), SqlCondition>;
/// Computes a value.
pub(crate) type Eval = fn(&Bound, &[ValueRef<'_>], &mut Context<'_>) -> Result<Value, SqlCondition>;

/// One function or operator.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Fewest arguments.
    pub(crate) least: usize,
    /// Most arguments.
    pub(crate) most: usize,
    pub(crate) infer: Infer,
    pub(crate) eval: Eval,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// CAST, which is bound with a target type.
pub(crate) static CAST: Function = entry("CAST", 1, 1, cast::infer, cast::eval);

pub(crate) const fn entry(
    name: &'static str,
    least: usize,
    most: usize,
    infer: Infer,
    eval: Eval,
) -> Function {
    Function {
        name,
        least,
        most,
        infer,
        eval,
    }
}

/// No limit except the parser's.
const ANY: usize = usize::MAX;

/// The function with that name, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    GROUPS
        .iter()
        .flat_map(|group| group.iter())
        .find(|function| function.name.eq_ignore_ascii_case(name))
}

/// True for functions that take dates and times.
pub(crate) fn is_temporal(function: &Function) -> bool {
    let numeric = [
        "FROM_UNIXTIME",
        "SEC_TO_TIME",
        "FROM_DAYS",
        "MAKEDATE",
        "MAKETIME",
    ];
    !numeric.contains(&function.name)
        && !function.name.starts_with("PERIOD_")
        && TEMPORAL.iter().any(|known| std::ptr::eq(known, function))
}

/// True for functions of dates and times whose result is a text if the argument is one.
pub(crate) fn makes_dated_texts(function: &Function) -> bool {
    matches!(
        function.name,
        "DATE_ADD"
            | "DATE_SUB"
            | "ADDDATE"
            | "SUBDATE"
            | "ADD_MONTHS"
            | "TIMESTAMPADD"
            | "ADDTIME"
            | "SUBTIME"
    )
}

/// True for arithmetic, which takes no geometries.
pub(crate) fn is_of_numbers(function: &Function) -> bool {
    let is_operator = matches!(function.name, "-" | "&" | "|" | "^" | "~" | "<<" | ">>");
    let is_among = |group: &[Function]| group.iter().any(|known| std::ptr::eq(known, function));
    is_operator || is_among(NUMERIC) || is_among(TEMPORAL)
}

/// True if there is a function or operator of that name.
pub fn exists(name: &str) -> bool {
    find(name).is_some()
}

/// True if an argument is used as a number, so that `0x41` is 65 there and not `A`. `name` is in
/// upper case.
pub fn wants_number(name: &str, index: usize) -> bool {
    match name {
        "IF" | "ELT" | "MAKE_SET" | "EXPORT_SET" => index == 0,
        "CRC32" | "CRC32C" => false,
        "CONV" | "SUBSTRING" | "SUBSTR" | "MID" | "FORMAT" | "LEFT" | "RIGHT" | "REPEAT" => {
            index > 0
        }
        "LPAD" | "RPAD" => index == 1,
        "SUBSTRING_INDEX" | "LOCATE" | "POSITION" => index == 2,
        "INSERT" => index == 1 || index == 2,
        "SPACE" | "CHAR" | "INTERVAL" | "BIT_COUNT" | "INET_NTOA" | "FROM_DAYS" | "MAKEDATE"
        | "MAKETIME" | "PERIOD_ADD" | "PERIOD_DIFF" | "SEC_TO_TIME" | "FROM_UNIXTIME" => true,
        _ => NUMERIC.iter().any(|known| known.name == name),
    }
}

/// The names of all functions and operators.
pub fn names() -> impl Iterator<Item = &'static str> {
    GROUPS
        .iter()
        .flat_map(|group| group.iter())
        .map(|function| function.name)
}

static GROUPS: [&[Function]; 7] = [
    OPERATORS,
    CONTROL,
    NUMERIC,
    TEXT,
    TEMPORAL,
    INFORMATION,
    geometry::FUNCTIONS,
];

static OPERATORS: &[Function] = &[
    entry("+", 2, 2, arithmetic::infer_add, arithmetic::add),
    entry("-", 1, 2, arithmetic::infer_subtract, arithmetic::subtract),
    entry("*", 2, 2, arithmetic::infer_multiply, arithmetic::multiply),
    entry("/", 2, 2, arithmetic::infer_divide, arithmetic::divide),
    entry("DIV", 2, 2, arithmetic::infer_div, arithmetic::div),
    entry("%", 2, 2, arithmetic::infer_modulo, arithmetic::modulo),
    entry("MOD", 2, 2, arithmetic::infer_modulo, arithmetic::modulo),
    entry("=", 2, 2, comparison::infer, comparison::equal),
    entry(
        "<=>",
        2,
        2,
        comparison::infer_safe,
        comparison::equal_or_both_null,
    ),
    entry("<>", 2, 2, comparison::infer, comparison::unequal),
    entry("!=", 2, 2, comparison::infer, comparison::unequal),
    entry("<", 2, 2, comparison::infer, comparison::less),
    entry("<=", 2, 2, comparison::infer, comparison::less_or_equal),
    entry(">", 2, 2, comparison::infer, comparison::greater),
    entry(">=", 2, 2, comparison::infer, comparison::greater_or_equal),
    entry("BETWEEN", 3, 3, comparison::infer, comparison::between),
    entry("IN", 2, ANY, comparison::infer_in, comparison::is_in),
    entry("LIKE", 2, 3, pattern::infer, pattern::like),
    entry("REGEXP", 2, 2, pattern::infer, pattern::regexp),
    entry("RLIKE", 2, 2, pattern::infer, pattern::regexp),
    entry(
        "REGEXP_INSTR",
        2,
        2,
        pattern::infer_instr,
        pattern::regexp_instr,
    ),
    entry(
        "REGEXP_REPLACE",
        3,
        3,
        pattern::infer_replace,
        pattern::regexp_replace,
    ),
    entry(
        "REGEXP_SUBSTR",
        2,
        2,
        pattern::infer_substr,
        pattern::regexp_substr,
    ),
    entry("AND", 2, ANY, infer::boolean, logic::and),
    entry("&&", 2, ANY, infer::boolean, logic::and),
    entry("OR", 2, ANY, infer::boolean, logic::or),
    entry("XOR", 2, 2, infer::boolean, logic::xor),
    entry("NOT", 1, 1, infer::boolean, logic::not),
    entry("!", 1, 1, infer::boolean, logic::not),
    entry("IS NULL", 1, 1, infer::certain, logic::is_null),
    entry("ISNULL", 1, 1, infer::certain, logic::is_null),
    entry("IS NOT NULL", 1, 1, infer::certain, logic::is_not_null),
    entry("IS TRUE", 1, 1, infer::certain, logic::is_true),
    entry("IS NOT TRUE", 1, 1, infer::certain, logic::is_not_true),
    entry("IS FALSE", 1, 1, infer::certain, logic::is_false),
    entry("IS NOT FALSE", 1, 1, infer::certain, logic::is_not_false),
    entry("&", 2, 2, bits::infer, bits::and),
    entry("|", 2, 2, bits::infer, bits::or),
    entry("^", 2, 2, bits::infer, bits::xor),
    entry("~", 1, 1, bits::infer, bits::not),
    entry("<<", 2, 2, bits::infer, bits::shift_left),
    entry(">>", 2, 2, bits::infer, bits::shift_right),
    entry("BIT_COUNT", 1, 1, infer::integer::<2>, bits::count),
];

static CONTROL: &[Function] = &[
    entry("IF", 3, 3, control::infer_if, control::if_else),
    entry("IFNULL", 2, 2, control::infer_ifnull, control::coalesce),
    entry("NVL", 2, 2, control::infer_ifnull, control::coalesce),
    entry("NVL2", 3, 3, control::infer_if, control::nvl2),
    entry("NULLIF", 2, 2, control::infer_nullif, control::nullif),
    entry(
        "COALESCE",
        1,
        ANY,
        control::infer_coalesce,
        control::coalesce,
    ),
    entry("CASE", 2, ANY, control::infer_case, control::case),
    entry(
        "GREATEST",
        2,
        ANY,
        control::infer_extreme,
        control::greatest,
    ),
    entry("LEAST", 2, ANY, control::infer_extreme, control::least),
    entry("INTERVAL", 2, ANY, infer::certain, control::interval),
    entry("BINARY", 1, 1, cast::infer_binary, cast::eval),
];

static NUMERIC: &[Function] = &[
    entry("ABS", 1, 1, numeric::infer_abs, numeric::abs),
    entry("CEIL", 1, 1, numeric::infer_whole, numeric::ceiling),
    entry("CEILING", 1, 1, numeric::infer_whole, numeric::ceiling),
    entry("FLOOR", 1, 1, numeric::infer_whole, numeric::floor),
    entry("ROUND", 1, 2, numeric::infer_round, numeric::round),
    entry("TRUNCATE", 2, 2, numeric::infer_truncate, numeric::truncate),
    entry("SIGN", 1, 1, infer::integer::<2>, numeric::sign),
    entry("POW", 2, 2, infer::double, numeric::power),
    entry("POWER", 2, 2, infer::double, numeric::power),
    entry("SQRT", 1, 1, infer::partial_double, numeric::sqrt),
    entry("EXP", 1, 1, infer::double, numeric::exp),
    entry("LN", 1, 1, infer::partial_double, numeric::ln),
    entry("LOG", 1, 2, infer::partial_double, numeric::log),
    entry("LOG2", 1, 1, infer::partial_double, numeric::log2),
    entry("LOG10", 1, 1, infer::partial_double, numeric::log10),
    entry("SIN", 1, 1, infer::double, numeric::sin),
    entry("COS", 1, 1, infer::double, numeric::cos),
    entry("TAN", 1, 1, infer::double, numeric::tan),
    entry("COT", 1, 1, infer::partial_double, numeric::cot),
    entry("ASIN", 1, 1, infer::partial_double, numeric::asin),
    entry("ACOS", 1, 1, infer::partial_double, numeric::acos),
    entry("ATAN", 1, 2, infer::double, numeric::atan),
    entry("ATAN2", 1, 2, infer::double, numeric::atan),
    entry("DEGREES", 1, 1, infer::double, numeric::degrees),
    entry("RADIANS", 1, 1, infer::double, numeric::radians),
    entry("PI", 0, 0, numeric::infer_pi, numeric::pi),
    entry("RAND", 0, 1, random::infer, random::rand),
    entry("CRC32", 1, 2, digest::infer_crc32, digest::crc32),
    entry("CRC32C", 1, 2, digest::infer_crc32, digest::crc32c),
    entry("CONV", 3, 3, encode::infer_conv, encode::conv),
];

static TEXT: &[Function] = &[
    entry("CONCAT", 1, ANY, strings::infer_concat, strings::concat),
    entry(
        "CONCAT_WS",
        2,
        ANY,
        strings::infer_concat_ws,
        strings::concat_ws,
    ),
    entry(
        "LENGTH",
        1,
        1,
        infer::integer_of_texts::<10>,
        strings::length,
    ),
    entry(
        "OCTET_LENGTH",
        1,
        1,
        infer::integer_of_texts::<10>,
        strings::length,
    ),
    entry(
        "LENGTHB",
        1,
        1,
        infer::integer_of_texts::<10>,
        strings::length,
    ),
    entry(
        "BIT_LENGTH",
        1,
        1,
        infer::integer_of_texts::<11>,
        strings::bit_length,
    ),
    entry(
        "CHAR_LENGTH",
        1,
        1,
        infer::integer_of_texts::<10>,
        strings::char_length,
    ),
    entry(
        "CHARACTER_LENGTH",
        1,
        1,
        infer::integer_of_texts::<10>,
        strings::char_length,
    ),
    entry("UPPER", 1, 1, strings::infer_same, strings::upper),
    entry("UCASE", 1, 1, strings::infer_same, strings::upper),
    entry("LOWER", 1, 1, strings::infer_same, strings::lower),
    entry("LCASE", 1, 1, strings::infer_same, strings::lower),
    entry("REVERSE", 1, 1, strings::infer_same, strings::reverse),
    entry("REPEAT", 2, 2, strings::infer_repeat, strings::repeat),
    entry("SPACE", 1, 1, strings::infer_space, strings::space),
    entry("REPLACE", 3, 3, strings::infer_replace, strings::replace),
    entry("INSERT", 4, 4, strings::infer_insert, strings::insert),
    entry("LPAD", 2, 3, strings::infer_pad, strings::lpad),
    entry("RPAD", 2, 3, strings::infer_pad, strings::rpad),
    entry("QUOTE", 1, 1, strings::infer_quote, strings::quote),
    entry("SOUNDEX", 1, 1, strings::infer_same, strings::soundex),
    entry("LEFT", 2, 2, substring::infer_side, substring::left),
    entry("RIGHT", 2, 2, substring::infer_side, substring::right),
    entry("SUBSTRING", 2, 3, substring::infer, substring::substring),
    entry("SUBSTR", 2, 3, substring::infer, substring::substring),
    entry("MID", 2, 3, substring::infer, substring::substring),
    entry(
        "SUBSTRING_INDEX",
        3,
        3,
        substring::infer_index,
        substring::substring_index,
    ),
    entry("TRIM", 1, 2, substring::infer_trim, substring::trim),
    entry(
        "TRIM_LEADING",
        2,
        2,
        substring::infer_trim,
        substring::trim_leading,
    ),
    entry(
        "TRIM_TRAILING",
        2,
        2,
        substring::infer_trim,
        substring::trim_trailing,
    ),
    entry(
        "LTRIM",
        1,
        1,
        substring::infer_trim,
        substring::trim_leading,
    ),
    entry(
        "RTRIM",
        1,
        1,
        substring::infer_trim,
        substring::trim_trailing,
    ),
    entry(
        "INSTR",
        2,
        2,
        infer::integer_of_texts::<11>,
        position::instr,
    ),
    entry("LOCATE", 2, 3, position::infer_locate, position::locate),
    entry("POSITION", 2, 2, position::infer_locate, position::locate),
    entry(
        "STRCMP",
        2,
        2,
        infer::integer_of_texts::<2>,
        position::strcmp,
    ),
    entry("ELT", 2, ANY, sets::infer_elt, sets::elt),
    entry("FIELD", 2, ANY, sets::infer_field, sets::field),
    entry(
        "FIND_IN_SET",
        2,
        2,
        infer::integer_of_texts::<3>,
        sets::find_in_set,
    ),
    entry("MAKE_SET", 2, ANY, sets::infer_make_set, sets::make_set),
    entry("EXPORT_SET", 3, 5, sets::infer_export_set, sets::export_set),
    entry("ASCII", 1, 1, infer::integer_of_texts::<3>, encode::ascii),
    entry("ORD", 1, 1, infer::integer_of_texts::<11>, encode::ord),
    entry("CHAR", 1, ANY, encode::infer_char, encode::char),
    entry("HEX", 1, 1, encode::infer_hex, encode::hex),
    entry("UNHEX", 1, 1, encode::infer_unhex, encode::unhex),
    entry("BIN", 1, 1, encode::infer_conv, encode::bin),
    entry("OCT", 1, 1, encode::infer_conv, encode::oct),
    entry(
        "TO_BASE64",
        1,
        1,
        encode::infer_to_base64,
        encode::to_base64,
    ),
    entry(
        "FROM_BASE64",
        1,
        1,
        encode::infer_from_base64,
        encode::from_base64,
    ),
    entry("FORMAT", 2, 3, numeric::infer_format, numeric::format),
    entry("MD5", 1, 1, digest::infer_md5, digest::md5),
    entry("SHA", 1, 1, digest::infer_sha1, digest::sha1),
    entry("SHA1", 1, 1, digest::infer_sha1, digest::sha1),
    entry("SHA2", 2, 2, digest::infer_sha2, digest::sha2),
    entry(
        "WEIGHT_STRING",
        1,
        1,
        encode::infer_weights,
        encode::weight_string,
    ),
];

static TEMPORAL: &[Function] = &[
    entry("NOW", 0, 1, temporal::infer_now, temporal::now),
    entry(
        "CURRENT_TIMESTAMP",
        0,
        1,
        temporal::infer_now,
        temporal::now,
    ),
    entry("LOCALTIME", 0, 1, temporal::infer_now, temporal::now),
    entry("LOCALTIMESTAMP", 0, 1, temporal::infer_now, temporal::now),
    entry("SYSDATE", 0, 1, temporal::infer_now, temporal::sysdate),
    entry(
        "UTC_TIMESTAMP",
        0,
        1,
        temporal::infer_now,
        temporal::utc_now,
    ),
    entry("CURDATE", 0, 0, temporal::infer_today, temporal::today),
    entry("CURRENT_DATE", 0, 0, temporal::infer_today, temporal::today),
    entry("UTC_DATE", 0, 0, temporal::infer_today, temporal::utc_today),
    entry("CURTIME", 0, 1, temporal::infer_clock, temporal::clock),
    entry("CURRENT_TIME", 0, 1, temporal::infer_clock, temporal::clock),
    entry("UTC_TIME", 0, 1, temporal::infer_clock, temporal::utc_clock),
    entry("DATE", 1, 1, temporal::infer_date, temporal::date),
    entry("TIME", 1, 1, temporal::infer_time, temporal::time),
    entry(
        "TIMESTAMP",
        1,
        2,
        temporal::infer_timestamp,
        temporal::timestamp,
    ),
    entry("YEAR", 1, 1, infer::partial_integer::<4>, temporal::year),
    entry(
        "QUARTER",
        1,
        1,
        infer::partial_integer::<2>,
        temporal::quarter,
    ),
    entry("MONTH", 1, 1, infer::partial_integer::<2>, temporal::month),
    entry("DAY", 1, 1, infer::partial_integer::<2>, temporal::day),
    entry(
        "DAYOFMONTH",
        1,
        1,
        infer::partial_integer::<2>,
        temporal::day,
    ),
    entry("HOUR", 1, 1, infer::partial_integer::<3>, temporal::hour),
    entry(
        "MINUTE",
        1,
        1,
        infer::partial_integer::<2>,
        temporal::minute,
    ),
    entry(
        "SECOND",
        1,
        1,
        infer::partial_integer::<2>,
        temporal::second,
    ),
    entry(
        "MICROSECOND",
        1,
        1,
        infer::partial_integer::<6>,
        temporal::microsecond,
    ),
    entry("WEEK", 1, 2, infer::partial_integer::<2>, temporal::week),
    entry(
        "WEEKOFYEAR",
        1,
        1,
        infer::partial_integer::<2>,
        temporal::week_of_year,
    ),
    entry(
        "YEARWEEK",
        1,
        2,
        infer::partial_integer::<6>,
        temporal::year_week,
    ),
    entry(
        "WEEKDAY",
        1,
        1,
        infer::partial_integer::<1>,
        temporal::weekday,
    ),
    entry(
        "DAYOFWEEK",
        1,
        1,
        infer::partial_integer::<1>,
        temporal::day_of_week,
    ),
    entry(
        "DAYOFYEAR",
        1,
        1,
        infer::partial_integer::<3>,
        temporal::day_of_year,
    ),
    entry("DAYNAME", 1, 1, temporal::infer_name, temporal::day_name),
    entry(
        "MONTHNAME",
        1,
        1,
        temporal::infer_name,
        temporal::month_name,
    ),
    entry("LAST_DAY", 1, 1, temporal::infer_date, temporal::last_day),
    entry(
        "TO_DAYS",
        1,
        1,
        infer::partial_integer::<7>,
        temporal::to_days,
    ),
    entry("FROM_DAYS", 1, 1, temporal::infer_date, temporal::from_days),
    entry(
        "TO_SECONDS",
        1,
        1,
        temporal::infer_to_seconds,
        temporal::to_seconds,
    ),
    entry(
        "TIME_TO_SEC",
        1,
        1,
        temporal::infer_time_to_sec,
        temporal::time_to_sec,
    ),
    entry(
        "SEC_TO_TIME",
        1,
        1,
        temporal::infer_time,
        temporal::sec_to_time,
    ),
    entry("MAKEDATE", 2, 2, temporal::infer_date, temporal::make_date),
    entry(
        "MAKETIME",
        3,
        3,
        temporal::infer_make_time,
        temporal::make_time,
    ),
    entry(
        "PERIOD_ADD",
        2,
        2,
        infer::integer::<6>,
        temporal::period_add,
    ),
    entry(
        "PERIOD_DIFF",
        2,
        2,
        infer::integer::<6>,
        temporal::period_diff,
    ),
    entry(
        "UNIX_TIMESTAMP",
        0,
        1,
        temporal::infer_unix,
        temporal::unix_timestamp,
    ),
    entry(
        "FROM_UNIXTIME",
        1,
        2,
        time_format::infer_from_unixtime,
        time_format::from_unixtime,
    ),
    entry(
        "CONVERT_TZ",
        3,
        3,
        temporal::infer_convert_tz,
        temporal::convert_tz,
    ),
    entry(
        "DATEDIFF",
        2,
        2,
        infer::partial_integer::<7>,
        interval::date_diff,
    ),
    entry(
        "TIMEDIFF",
        2,
        2,
        interval::infer_time_diff,
        interval::time_diff,
    ),
    entry(
        "TIMESTAMPDIFF",
        3,
        3,
        interval::infer_timestamp_diff,
        interval::timestamp_diff,
    ),
    entry("DATE_ADD", 3, 3, interval::infer_add, interval::date_add),
    entry("DATE_SUB", 3, 3, interval::infer_add, interval::date_sub),
    entry(
        "TIMESTAMPADD",
        3,
        3,
        interval::infer_timestamp_add,
        interval::timestamp_add,
    ),
    entry("ADDDATE", 2, 3, interval::infer_add, interval::date_add),
    entry(
        "ADD_MONTHS",
        2,
        2,
        interval::infer_add_months,
        interval::date_add,
    ),
    entry("SUBDATE", 2, 3, interval::infer_add, interval::date_sub),
    entry(
        "ADDTIME",
        2,
        2,
        interval::infer_add_time,
        interval::add_time,
    ),
    entry(
        "SUBTIME",
        2,
        2,
        interval::infer_add_time,
        interval::sub_time,
    ),
    entry("EXTRACT", 2, 2, interval::infer_extract, interval::extract),
    entry(
        "DATE_FORMAT",
        2,
        3,
        time_format::infer,
        time_format::date_format,
    ),
    entry(
        "TIME_FORMAT",
        2,
        2,
        time_format::infer,
        time_format::time_format,
    ),
    entry(
        "STR_TO_DATE",
        2,
        2,
        time_parse::infer,
        time_parse::str_to_date,
    ),
];

static INFORMATION: &[Function] = &[
    entry("DATABASE", 0, 0, info::infer_name, info::database),
    entry("SCHEMA", 0, 0, info::infer_name, info::database),
    entry("USER", 0, 0, info::infer_user, info::user),
    entry("SESSION_USER", 0, 0, info::infer_user, info::user),
    entry("SYSTEM_USER", 0, 0, info::infer_user, info::user),
    entry("CURRENT_USER", 0, 0, info::infer_user, info::current_user),
    entry("CURRENT_ROLE", 0, 0, info::infer_role, info::current_role),
    entry(
        "CONNECTION_ID",
        0,
        0,
        info::infer_connection,
        info::connection_id,
    ),
    entry("VERSION", 0, 0, info::infer_version, info::version),
    entry(
        "LAST_INSERT_ID",
        0,
        1,
        info::infer_big,
        info::last_insert_id,
    ),
    entry("JSON_VALID", 1, 1, json::infer_valid, json::json_valid),
    entry("ROW_COUNT", 0, 0, info::infer_big, info::row_count),
    entry("FOUND_ROWS", 0, 0, info::infer_big, info::found_rows),
    entry("CHARSET", 1, 1, info::infer_name, info::charset),
    entry("COLLATION", 1, 1, info::infer_name, info::collation),
    entry(
        "COERCIBILITY",
        1,
        1,
        info::infer_coercibility,
        info::coercibility,
    ),
    entry("UUID", 0, 0, random::infer_uuid, random::uuid),
    entry("SYS_GUID", 0, 0, random::infer_guid, random::guid),
    entry(
        "RANDOM_BYTES",
        1,
        1,
        random::infer_bytes,
        random::random_bytes,
    ),
    entry("INET_ATON", 1, 1, network::infer_number, network::inet_aton),
    entry(
        "INET_NTOA",
        1,
        1,
        network::infer_address,
        network::inet_ntoa,
    ),
    entry(
        "INET6_ATON",
        1,
        1,
        network::infer_bytes,
        network::inet6_aton,
    ),
    entry(
        "INET6_NTOA",
        1,
        1,
        network::infer_address,
        network::inet6_ntoa,
    ),
    entry("IS_IPV4", 1, 1, infer::certain, network::is_ipv4),
    entry("IS_IPV6", 1, 1, infer::certain, network::is_ipv6),
    entry("PASSWORD", 1, 1, network::infer_password, network::password),
];
