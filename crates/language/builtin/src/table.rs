//! The table itself.

use crate::builtin::{
    ALL, ANY, Builtin, Dated, FIRST, Grammar, Meaning, Name, REST, SECOND, SECOND_AND_THIRD, THIRD,
    adjacent, aggregate, bare, counted, operator, own, plain,
};
use crate::function::{AggregateFunction as A, Function as F, SessionFunction as S};

/// A function of the library: fewest and most arguments, names.
const fn row(function: F, least: usize, most: usize, names: &'static [Name]) -> Builtin {
    Builtin::new(Meaning::Library(function), least, most, names)
}

/// A function of the session, which takes so many arguments.
const fn of_session(function: S, count: usize, names: &'static [Name]) -> Builtin {
    Builtin::new(Meaning::Session(function), count, count, names)
}

/// An aggregate. Its arguments belong to the grammar.
const fn of_group(function: A, names: &'static [Name]) -> Builtin {
    Builtin::new(Meaning::Aggregate(function), 0, ANY, names)
}

/// Families of functions that are missing but for those in the table, by their prefixes.
pub(crate) const MISSING_FAMILIES: [&str; 6] =
    ["JSON_", "ST_", "COLUMN_", "WSREP_", "MBR", "SPIDER_"];

/// All functions and operators: those of the library in the order of [`F`], then the others.
#[rustfmt::skip]
pub static TABLE: &[Builtin] = &[
    // Operators, comparisons, bits.
    row(F::Add, 2, 2, &[operator("+")]).arithmetic(),
    row(F::Subtract, 1, 2, &[operator("-")]).arithmetic(),
    row(F::Multiply, 2, 2, &[operator("*")]).arithmetic(),
    row(F::Divide, 2, 2, &[operator("/")]).arithmetic(),
    row(F::IntegerDivide, 2, 2, &[operator("DIV")]),
    row(F::Modulo, 2, 2, &[own("MOD", Grammar::Modulo), operator("%")]).arithmetic(),
    row(F::Equal, 2, 2, &[operator("=")]).compares(),
    row(F::NullSafeEqual, 2, 2, &[operator("<=>")]).compares(),
    row(F::NotEqual, 2, 2, &[operator("<>"), operator("!=")]).compares(),
    row(F::Less, 2, 2, &[operator("<")]).compares(),
    row(F::LessOrEqual, 2, 2, &[operator("<=")]).compares(),
    row(F::Greater, 2, 2, &[operator(">")]).compares(),
    row(F::GreaterOrEqual, 2, 2, &[operator(">=")]).compares(),
    row(F::Between, 3, 3, &[operator("BETWEEN")]).compares(),
    row(F::In, 2, ANY, &[operator("IN")]).compares(),
    row(F::Like, 2, 3, &[operator("LIKE")]),
    row(F::Regexp, 2, 2, &[operator("REGEXP"), operator("RLIKE")]),
    row(F::RegexpInstr, 2, 2, &[plain("REGEXP_INSTR")]),
    row(F::RegexpReplace, 3, 3, &[plain("REGEXP_REPLACE")]),
    row(F::RegexpSubstr, 2, 2, &[plain("REGEXP_SUBSTR")]),
    row(F::And, 2, ANY, &[operator("AND"), operator("&&")]),
    row(F::Or, 2, ANY, &[operator("OR")]),
    row(F::Xor, 2, 2, &[operator("XOR")]),
    row(F::Not, 1, 1, &[operator("NOT"), operator("!")]),
    row(F::IsNull, 1, 1, &[plain("ISNULL"), operator("IS NULL")]),
    row(F::IsNotNull, 1, 1, &[operator("IS NOT NULL")]),
    row(F::IsTrue, 1, 1, &[operator("IS TRUE")]),
    row(F::IsNotTrue, 1, 1, &[operator("IS NOT TRUE")]),
    row(F::IsFalse, 1, 1, &[operator("IS FALSE")]),
    row(F::IsNotFalse, 1, 1, &[operator("IS NOT FALSE")]),
    row(F::BitAnd, 2, 2, &[operator("&")]).refuses_geometries(),
    row(F::BitOr, 2, 2, &[operator("|")]).refuses_geometries(),
    row(F::BitXor, 2, 2, &[operator("^")]).refuses_geometries(),
    row(F::BitNot, 1, 1, &[operator("~")]).refuses_geometries(),
    row(F::ShiftLeft, 2, 2, &[operator("<<")]).refuses_geometries(),
    row(F::ShiftRight, 2, 2, &[operator(">>")]).refuses_geometries(),
    row(F::BitCount, 1, 1, &[plain("BIT_COUNT")]).numbers(ALL),

    // Control flow.
    row(F::If, 3, 3, &[counted("IF")]).numbers(FIRST),
    row(F::IfNull, 2, 2, &[plain("IFNULL"), plain("NVL")]).compares(),
    row(F::Nvl2, 3, 3, &[plain("NVL2")]),
    row(F::NullIf, 2, 2, &[plain("NULLIF")]).dated(Dated::NumbersBesideNumbers),
    row(F::Coalesce, 1, ANY, &[plain("COALESCE")]).compares(),
    row(F::Case, 2, ANY, &[operator("CASE")]),
    row(F::Greatest, 2, ANY, &[plain("GREATEST")]).compares().dated(Dated::NumbersBesideNumbers),
    row(F::Least, 2, ANY, &[plain("LEAST")]).compares().dated(Dated::NumbersBesideNumbers),
    row(F::Interval, 2, ANY, &[counted("INTERVAL")]).numbers(ALL),
    row(F::Binary, 1, 1, &[operator("BINARY")]),
    row(F::Cast, 1, 1, &[adjacent(own("CAST", Grammar::Cast))]),

    // Numbers.
    row(F::Abs, 1, 1, &[plain("ABS")]).numeric(),
    row(F::Ceiling, 1, 1, &[plain("CEILING"), plain("CEIL")]).numeric(),
    row(F::Floor, 1, 1, &[plain("FLOOR")]).numeric(),
    row(F::Round, 1, 2, &[plain("ROUND")]).numeric().pinned(),
    row(F::Truncate, 2, 2, &[counted("TRUNCATE")]).numeric().pinned(),
    row(F::Sign, 1, 1, &[plain("SIGN")]).numeric(),
    row(F::Power, 2, 2, &[plain("POW"), plain("POWER")]).numeric(),
    row(F::Sqrt, 1, 1, &[plain("SQRT")]).numeric(),
    row(F::Exp, 1, 1, &[plain("EXP")]).numeric(),
    row(F::Ln, 1, 1, &[plain("LN")]).numeric(),
    row(F::Log, 1, 2, &[plain("LOG")]).numeric(),
    row(F::Log2, 1, 1, &[plain("LOG2")]).numeric(),
    row(F::Log10, 1, 1, &[plain("LOG10")]).numeric(),
    row(F::Sin, 1, 1, &[plain("SIN")]).numeric(),
    row(F::Cos, 1, 1, &[plain("COS")]).numeric(),
    row(F::Tan, 1, 1, &[plain("TAN")]).numeric(),
    row(F::Cot, 1, 1, &[plain("COT")]).numeric(),
    row(F::Asin, 1, 1, &[plain("ASIN")]).numeric(),
    row(F::Acos, 1, 1, &[plain("ACOS")]).numeric(),
    row(F::Atan, 1, 2, &[plain("ATAN"), plain("ATAN2")]).numeric(),
    row(F::Degrees, 1, 1, &[plain("DEGREES")]).numeric(),
    row(F::Radians, 1, 1, &[plain("RADIANS")]).numeric(),
    row(F::Pi, 0, 0, &[plain("PI")]).numeric(),
    row(F::Rand, 0, 1, &[plain("RAND")]).numeric().volatile(),
    row(F::Crc32, 1, 2, &[plain("CRC32")]),
    row(F::Crc32c, 1, 2, &[plain("CRC32C")]).refuses_geometries(),
    row(F::Conv, 3, 3, &[plain("CONV")]).numbers(REST),

    // Texts.
    row(F::Concat, 1, ANY, &[plain("CONCAT")]),
    row(F::ConcatWs, 2, ANY, &[plain("CONCAT_WS")]),
    row(F::Length, 1, 1, &[plain("LENGTH"), plain("OCTET_LENGTH"), plain("LENGTHB")]),
    row(F::BitLength, 1, 1, &[plain("BIT_LENGTH")]),
    row(F::CharLength, 1, 1, &[plain("CHAR_LENGTH"), plain("CHARACTER_LENGTH")]),
    row(F::Upper, 1, 1, &[plain("UPPER"), plain("UCASE")]),
    row(F::Lower, 1, 1, &[plain("LOWER"), plain("LCASE")]),
    row(F::Reverse, 1, 1, &[plain("REVERSE")]),
    row(F::Repeat, 2, 2, &[counted("REPEAT")]).numbers(REST),
    row(F::Space, 1, 1, &[plain("SPACE")]).numbers(ALL),
    row(F::Replace, 3, 3, &[counted("REPLACE")]),
    row(F::Insert, 4, 4, &[counted("INSERT")]).numbers(SECOND_AND_THIRD),
    row(F::Lpad, 2, 3, &[plain("LPAD")]).numbers(SECOND),
    row(F::Rpad, 2, 3, &[plain("RPAD")]).numbers(SECOND),
    row(F::Quote, 1, 1, &[plain("QUOTE")]),
    row(F::Soundex, 1, 1, &[plain("SOUNDEX")]),
    row(F::Left, 2, 2, &[counted("LEFT")]).numbers(REST),
    row(F::Right, 2, 2, &[counted("RIGHT")]).numbers(REST),
    row(F::Substring, 2, 3, &[
        adjacent(own("SUBSTRING", Grammar::Substring)), adjacent(own("SUBSTR", Grammar::Substring)),
        adjacent(own("MID", Grammar::Substring)),
    ]).numbers(REST),
    row(F::SubstringIndex, 3, 3, &[plain("SUBSTRING_INDEX")]).numbers(THIRD),
    row(F::Trim, 1, 2, &[adjacent(own("TRIM", Grammar::Trim))]),
    row(F::TrimLeading, 2, 2, &[operator("TRIM_LEADING")]),
    row(F::TrimTrailing, 2, 2, &[operator("TRIM_TRAILING")]),
    row(F::Ltrim, 1, 1, &[plain("LTRIM")]),
    row(F::Rtrim, 1, 1, &[plain("RTRIM")]),
    row(F::Instr, 2, 2, &[plain("INSTR")]),
    row(F::Locate, 2, 3, &[
        plain("LOCATE"), adjacent(own("POSITION", Grammar::Position)),
    ]).numbers(THIRD),
    row(F::Strcmp, 2, 2, &[plain("STRCMP")]),
    row(F::Elt, 2, ANY, &[plain("ELT")]).numbers(FIRST),
    row(F::Field, 2, ANY, &[plain("FIELD")]).dated(Dated::DoublesBesideNumbers),
    row(F::FindInSet, 2, 2, &[plain("FIND_IN_SET")]),
    row(F::MakeSet, 2, ANY, &[plain("MAKE_SET")]).numbers(FIRST),
    row(F::ExportSet, 3, 5, &[plain("EXPORT_SET")]).numbers(FIRST),
    row(F::Ascii, 1, 1, &[counted("ASCII")]),
    row(F::Ord, 1, 1, &[plain("ORD")]),
    row(F::Char, 1, ANY, &[own("CHAR", Grammar::Char)]).numbers(ALL),
    row(F::Hex, 1, 1, &[plain("HEX")]),
    row(F::Unhex, 1, 1, &[plain("UNHEX")]),
    row(F::Bin, 1, 1, &[plain("BIN")]),
    row(F::Oct, 1, 1, &[plain("OCT")]),
    row(F::ToBase64, 1, 1, &[plain("TO_BASE64")]),
    row(F::FromBase64, 1, 1, &[plain("FROM_BASE64")]),
    row(F::Format, 2, 3, &[counted("FORMAT")]).numbers(REST).dated(Dated::Doubles).pinned(),
    row(F::Md5, 1, 1, &[plain("MD5")]),
    row(F::Sha1, 1, 1, &[plain("SHA1"), plain("SHA")]),
    row(F::Sha2, 2, 2, &[plain("SHA2")]),
    row(F::WeightString, 1, 1, &[own("WEIGHT_STRING", Grammar::WeightString)]).pinned(),

    // Dates and times.
    row(F::Now, 0, 1, &[
        adjacent(own("NOW", Grammar::Precision)), bare("CURRENT_TIMESTAMP"), bare("LOCALTIME"),
        bare("LOCALTIMESTAMP"),
    ]).of_dates().pinned(),
    row(F::Sysdate, 0, 1, &[
        adjacent(own("SYSDATE", Grammar::Precision)),
    ]).of_dates().pinned().volatile(),
    row(F::UtcTimestamp, 0, 1, &[bare("UTC_TIMESTAMP")]).of_dates().pinned(),
    row(F::CurrentDate, 0, 0, &[adjacent(plain("CURDATE")), bare("CURRENT_DATE")]).of_dates(),
    row(F::UtcDate, 0, 0, &[bare("UTC_DATE")]).of_dates(),
    row(F::CurrentTime, 0, 1, &[
        adjacent(own("CURTIME", Grammar::Precision)), bare("CURRENT_TIME"),
    ]).of_dates().pinned(),
    row(F::UtcTime, 0, 1, &[bare("UTC_TIME")]).of_dates().pinned(),
    row(F::Date, 1, 1, &[counted("DATE")]).of_dates().dated(Dated::Moments),
    row(F::Time, 1, 1, &[counted("TIME")]).of_dates().dated(Dated::Moments).pinned(),
    row(F::Timestamp, 1, 2, &[plain("TIMESTAMP")]).of_dates().pinned(),
    row(F::Year, 1, 1, &[counted("YEAR")]).of_dates().dated(Dated::Moments),
    row(F::Quarter, 1, 1, &[counted("QUARTER")]).of_dates(),
    row(F::Month, 1, 1, &[counted("MONTH")]).of_dates(),
    row(F::Day, 1, 1, &[counted("DAY"), plain("DAYOFMONTH")]).of_dates(),
    row(F::Hour, 1, 1, &[counted("HOUR")]).of_dates(),
    row(F::Minute, 1, 1, &[counted("MINUTE")]).of_dates(),
    row(F::Second, 1, 1, &[counted("SECOND")]).of_dates(),
    row(F::Microsecond, 1, 1, &[counted("MICROSECOND")]).of_dates(),
    row(F::Week, 1, 2, &[plain("WEEK")]).of_dates(),
    row(F::WeekOfYear, 1, 1, &[plain("WEEKOFYEAR")]).of_dates(),
    row(F::YearWeek, 1, 2, &[plain("YEARWEEK")]).of_dates(),
    row(F::Weekday, 1, 1, &[plain("WEEKDAY")]).of_dates(),
    row(F::DayOfWeek, 1, 1, &[plain("DAYOFWEEK")]).of_dates(),
    row(F::DayOfYear, 1, 1, &[plain("DAYOFYEAR")]).of_dates(),
    row(F::DayName, 1, 1, &[plain("DAYNAME")]).of_dates(),
    row(F::MonthName, 1, 1, &[plain("MONTHNAME")]).of_dates(),
    row(F::LastDay, 1, 1, &[plain("LAST_DAY")]).of_dates(),
    row(F::ToDays, 1, 1, &[plain("TO_DAYS")]).of_dates().dated(Dated::Moments),
    row(F::FromDays, 1, 1, &[plain("FROM_DAYS")]).numeric(),
    row(F::ToSeconds, 1, 1, &[plain("TO_SECONDS")]).of_dates(),
    row(F::TimeToSec, 1, 1, &[plain("TIME_TO_SEC")]).of_dates().dated(Dated::Moments),
    row(F::SecToTime, 1, 1, &[plain("SEC_TO_TIME")]).numeric().pinned(),
    row(F::MakeDate, 2, 2, &[plain("MAKEDATE")]).numeric(),
    row(F::MakeTime, 3, 3, &[plain("MAKETIME")]).numeric().pinned(),
    row(F::PeriodAdd, 2, 2, &[plain("PERIOD_ADD")]).numeric(),
    row(F::PeriodDiff, 2, 2, &[plain("PERIOD_DIFF")]).numeric(),
    row(F::UnixTimestamp, 0, 1, &[plain("UNIX_TIMESTAMP")]).of_dates().pinned(),
    row(F::FromUnixtime, 1, 2, &[plain("FROM_UNIXTIME")]).numeric().pinned(),
    row(F::ConvertTz, 3, 3, &[plain("CONVERT_TZ")]).of_dates(),
    row(F::DateDiff, 2, 2, &[plain("DATEDIFF")]).of_dates(),
    row(F::TimeDiff, 2, 2, &[plain("TIMEDIFF")]).of_dates().dated(Dated::Moments).pinned(),
    row(F::TimestampDiff, 3, 3, &[own("TIMESTAMPDIFF", Grammar::TimestampDiff)]).of_dates(),
    row(F::DateAdd, 2, 3, &[
        adjacent(own("DATE_ADD", Grammar::DateAdd)), adjacent(own("ADDDATE", Grammar::AddDays)),
    ]).adds_interval().pinned(),
    row(F::DateSub, 2, 3, &[
        adjacent(own("DATE_SUB", Grammar::DateSub)), adjacent(own("SUBDATE", Grammar::SubDays)),
    ]).adds_interval().pinned(),
    row(F::TimestampAdd, 3, 3, &[
        own("TIMESTAMPADD", Grammar::TimestampAdd),
    ]).of_dates().makes_dated_texts().pinned(),
    row(F::AddMonths, 2, 2, &[plain("ADD_MONTHS")]).of_dates().makes_dated_texts().pinned(),
    row(F::AddTime, 2, 2, &[
        plain("ADDTIME"),
    ]).of_dates().dated(Dated::Moments).makes_dated_texts().pinned(),
    row(F::SubTime, 2, 2, &[
        plain("SUBTIME"),
    ]).of_dates().dated(Dated::Moments).makes_dated_texts().pinned(),
    row(F::Extract, 2, 2, &[adjacent(own("EXTRACT", Grammar::Extract))]).of_dates(),
    row(F::DateFormat, 2, 3, &[plain("DATE_FORMAT")]).of_dates(),
    row(F::TimeFormat, 2, 2, &[plain("TIME_FORMAT")]).of_dates(),
    row(F::StrToDate, 2, 2, &[plain("STR_TO_DATE")]).of_dates().pinned(),

    // The session, addresses, and others.
    row(F::Database, 0, 0, &[counted("DATABASE"), counted("SCHEMA")]),
    row(F::User, 0, 0, &[counted("USER"), counted("SESSION_USER"), counted("SYSTEM_USER")]),
    row(F::CurrentUser, 0, 0, &[bare("CURRENT_USER")]),
    row(F::CurrentRole, 0, 0, &[bare("CURRENT_ROLE")]),
    row(F::ConnectionId, 0, 0, &[plain("CONNECTION_ID")]),
    row(F::Version, 0, 0, &[plain("VERSION")]),
    row(F::LastInsertId, 0, 1, &[plain("LAST_INSERT_ID")]),
    row(F::JsonValid, 1, 1, &[plain("JSON_VALID")]),
    row(F::RowCount, 0, 0, &[counted("ROW_COUNT")]),
    row(F::FoundRows, 0, 0, &[plain("FOUND_ROWS")]),
    row(F::Charset, 1, 1, &[counted("CHARSET")]),
    row(F::Collation, 1, 1, &[counted("COLLATION")]),
    row(F::Coercibility, 1, 1, &[plain("COERCIBILITY")]),
    row(F::Uuid, 0, 0, &[plain("UUID")]).volatile(),
    row(F::SysGuid, 0, 0, &[plain("SYS_GUID")]).volatile(),
    row(F::RandomBytes, 1, 1, &[plain("RANDOM_BYTES")]).pinned().volatile(),
    row(F::InetAton, 1, 1, &[plain("INET_ATON")]),
    row(F::InetNtoa, 1, 1, &[plain("INET_NTOA")]).numbers(ALL),
    row(F::Inet6Aton, 1, 1, &[plain("INET6_ATON")]),
    row(F::Inet6Ntoa, 1, 1, &[plain("INET6_NTOA")]),
    row(F::IsIpv4, 1, 1, &[plain("IS_IPV4")]),
    row(F::IsIpv6, 1, 1, &[plain("IS_IPV6")]),
    row(F::Password, 1, 1, &[counted("PASSWORD")]),

    // Geometries.
    row(F::GeometryFromText, 1, 2, &[
        plain("ST_GEOMETRYFROMTEXT"), plain("ST_GEOMFROMTEXT"), plain("ST_POINTFROMTEXT"),
        plain("ST_LINEFROMTEXT"), plain("ST_LINESTRINGFROMTEXT"), plain("ST_POLYFROMTEXT"),
        plain("ST_POLYGONFROMTEXT"), plain("ST_MPOINTFROMTEXT"), plain("ST_MULTIPOINTFROMTEXT"),
        plain("ST_MLINEFROMTEXT"), plain("ST_MULTILINESTRINGFROMTEXT"), plain("ST_MPOLYFROMTEXT"),
        plain("ST_MULTIPOLYGONFROMTEXT"), plain("ST_GEOMCOLLFROMTEXT"),
        plain("ST_GEOMETRYCOLLECTIONFROMTEXT"), plain("GEOMETRYFROMTEXT"), plain("GEOMFROMTEXT"),
        plain("POINTFROMTEXT"), plain("LINEFROMTEXT"), plain("LINESTRINGFROMTEXT"),
        plain("POLYFROMTEXT"), plain("POLYGONFROMTEXT"), plain("MPOINTFROMTEXT"),
        plain("MULTIPOINTFROMTEXT"), plain("MLINEFROMTEXT"), plain("MULTILINESTRINGFROMTEXT"),
        plain("MPOLYFROMTEXT"), plain("MULTIPOLYGONFROMTEXT"), plain("GEOMCOLLFROMTEXT"),
        plain("GEOMETRYCOLLECTIONFROMTEXT"),
    ]),
    row(F::GeometryFromWkb, 1, 2, &[
        plain("ST_GEOMETRYFROMWKB"), plain("ST_GEOMFROMWKB"), plain("ST_POINTFROMWKB"),
        plain("ST_LINEFROMWKB"), plain("ST_LINESTRINGFROMWKB"), plain("ST_POLYFROMWKB"),
        plain("ST_POLYGONFROMWKB"), plain("ST_MPOINTFROMWKB"), plain("ST_MULTIPOINTFROMWKB"),
        plain("ST_MLINEFROMWKB"), plain("ST_MULTILINESTRINGFROMWKB"), plain("ST_MPOLYFROMWKB"),
        plain("ST_MULTIPOLYGONFROMWKB"), plain("ST_GEOMCOLLFROMWKB"),
        plain("ST_GEOMETRYCOLLECTIONFROMWKB"), plain("GEOMETRYFROMWKB"), plain("GEOMFROMWKB"),
        plain("POINTFROMWKB"), plain("LINEFROMWKB"), plain("LINESTRINGFROMWKB"),
        plain("POLYFROMWKB"), plain("POLYGONFROMWKB"), plain("MPOINTFROMWKB"),
        plain("MULTIPOINTFROMWKB"), plain("MLINEFROMWKB"), plain("MULTILINESTRINGFROMWKB"),
        plain("MPOLYFROMWKB"), plain("MULTIPOLYGONFROMWKB"), plain("GEOMCOLLFROMWKB"),
        plain("GEOMETRYCOLLECTIONFROMWKB"),
    ]),
    row(F::AsText, 1, 1, &[plain("ST_ASTEXT"), plain("ST_ASWKT"), plain("ASTEXT"), plain("ASWKT")]),
    row(F::AsWkb, 1, 1, &[
        plain("ST_ASWKB"), plain("ST_ASBINARY"), plain("ASWKB"), plain("ASBINARY"),
    ]),
    row(F::Srid, 1, 1, &[plain("ST_SRID"), plain("SRID")]),
    row(F::X, 1, 1, &[plain("ST_X"), plain("X")]),
    row(F::Y, 1, 1, &[plain("ST_Y"), plain("Y")]),
    row(F::GeometryType, 1, 1, &[plain("ST_GEOMETRYTYPE"), plain("GEOMETRYTYPE")]),
    row(F::Point, 2, 2, &[plain("POINT")]),

    // Of the session.
    of_session(S::Sleep, 1, &[plain("SLEEP")]),
    of_session(S::GetLock, 2, &[plain("GET_LOCK")]),
    of_session(S::ReleaseLock, 1, &[plain("RELEASE_LOCK")]),
    of_session(S::ReleaseAllLocks, 0, &[plain("RELEASE_ALL_LOCKS")]),
    of_session(S::IsFreeLock, 1, &[plain("IS_FREE_LOCK")]),
    of_session(S::IsUsedLock, 1, &[plain("IS_USED_LOCK")]),

    // Aggregates.
    of_group(A::Avg, &[aggregate("AVG")]),
    of_group(A::BitAnd, &[adjacent(aggregate("BIT_AND"))]),
    of_group(A::BitOr, &[adjacent(aggregate("BIT_OR"))]),
    of_group(A::BitXor, &[adjacent(aggregate("BIT_XOR"))]),
    of_group(A::Count, &[adjacent(aggregate("COUNT"))]),
    of_group(A::GroupConcat, &[adjacent(aggregate("GROUP_CONCAT"))]).pinned(),
    of_group(A::JsonArrayAgg, &[aggregate("JSON_ARRAYAGG")]).pinned(),
    of_group(A::JsonObjectAgg, &[aggregate("JSON_OBJECTAGG")]),
    of_group(A::Max, &[adjacent(aggregate("MAX"))]),
    of_group(A::Min, &[adjacent(aggregate("MIN"))]),
    of_group(A::StddevPop, &[
        aggregate("STDDEV_POP"), adjacent(aggregate("STD")), adjacent(aggregate("STDDEV")),
    ]),
    of_group(A::StddevSamp, &[aggregate("STDDEV_SAMP")]),
    of_group(A::Sum, &[adjacent(aggregate("SUM"))]),
    of_group(A::VarPop, &[adjacent(aggregate("VAR_POP")), adjacent(aggregate("VARIANCE"))]),
    of_group(A::VarSamp, &[aggregate("VAR_SAMP")]),
    of_group(A::PercentileCont, &[aggregate("PERCENTILE_CONT")]),
    of_group(A::PercentileDisc, &[aggregate("PERCENTILE_DISC")]),
    of_group(A::Median, &[aggregate("MEDIAN")]),

    // Of the parser and the planner.
    Builtin::new(Meaning::NameConst, 2, 2, &[plain("NAME_CONST")]).pinned(),
    Builtin::new(Meaning::Syntax, 1, 2, &[own("CONVERT", Grammar::Convert)]).pinned(),
    Builtin::new(Meaning::Syntax, 2, 2, &[own("JSON_TABLE", Grammar::Table)]).pinned(),

    // Those that MariaDB has and this server lacks.
    Builtin::new(Meaning::Missing, 2, 2, &[own("GET_FORMAT", Grammar::GetFormat)]).pinned(),
    Builtin::new(Meaning::Missing, 0, ANY, &[
        plain("AES_DECRYPT"), plain("AES_ENCRYPT"), plain("BENCHMARK"), plain("BINLOG_GTID_POS"),
        plain("CHR"), plain("COMPRESS"), plain("CUME_DIST"), plain("DECODE"),
        plain("DECODE_HISTOGRAM"), plain("DENSE_RANK"), plain("DES_DECRYPT"), plain("DES_ENCRYPT"),
        plain("ENCODE"), plain("ENCRYPT"), plain("EXTRACTVALUE"), plain("FIRST_VALUE"),
        plain("GEOMETRYCOLLECTION"), plain("IS_IPV4_COMPAT"), plain("IS_IPV4_MAPPED"), plain("LAG"),
        own("LASTVAL", Grammar::PreviousValue), plain("LAST_VALUE"), plain("LEAD"),
        plain("LINESTRING"), plain("LOAD_FILE"), plain("MASTER_GTID_WAIT"),
        plain("MASTER_POS_WAIT"), plain("MULTILINESTRING"), plain("MULTIPOINT"),
        plain("MULTIPOLYGON"), plain("NATURAL_SORT_KEY"), own("NEXTVAL", Grammar::NextValue),
        plain("NTH_VALUE"), plain("NTILE"), plain("OLD_PASSWORD"), plain("PERCENT_RANK"),
        plain("POLYGON"), plain("RANK"), plain("ROWNUM"), plain("ROW_NUMBER"),
        own("SETVAL", Grammar::Sequence), plain("SFORMAT"), plain("TO_CHAR"), plain("UNCOMPRESS"),
        plain("UNCOMPRESSED_LENGTH"), plain("UPDATEXML"), plain("UUID_SHORT"),
    ]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::find;

    #[test]
    fn a_function_is_the_number_of_its_row() {
        let mut count = 0;
        for (place, builtin) in TABLE.iter().enumerate() {
            if let Meaning::Library(function) = builtin.meaning {
                assert_eq!(function as usize, place, "{}", builtin.name());
                count += 1;
            }
        }
        assert_eq!(
            count,
            F::Point as usize + 1,
            "the library's rows come first"
        );
    }

    #[test]
    fn every_aggregate_has_a_name() {
        let of = |builtin: &Builtin| match builtin.meaning {
            Meaning::Aggregate(function) => Some(function),
            _ => None,
        };
        let all: Vec<A> = TABLE.iter().filter_map(of).collect();
        assert_eq!(all.len(), A::Median as usize + 1);
        let names: BTreeSet<_> = all.iter().map(|function| function.name()).collect();
        assert_eq!(names.len(), all.len(), "no two have one name");
    }

    #[test]
    fn a_function_that_is_called_by_name_has_a_name_for_it() {
        for builtin in TABLE {
            let is_upper = |name: &Name| name.text.to_uppercase() == name.text;
            assert!(builtin.names.iter().all(is_upper), "{}", builtin.name());
            for name in builtin.names {
                let found = find(name.text.as_bytes()).expect("a name finds its row");
                assert!(std::ptr::eq(found.builtin, builtin), "{}", name.text);
                assert_eq!(found.name, name.text);
            }
        }
    }
}
