//! The functions, each once, whatever its names.

/// A function or operator of the function library. Its number is its place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Function {
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `DIV`.
    IntegerDivide,
    /// `MOD`, `%`.
    Modulo,
    /// `=`.
    Equal,
    /// `<=>`.
    NullSafeEqual,
    /// `<>`, `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `BETWEEN`.
    Between,
    /// `IN`.
    In,
    /// `LIKE`.
    Like,
    /// `REGEXP`, `RLIKE`.
    Regexp,
    /// `REGEXP_INSTR`.
    RegexpInstr,
    /// `REGEXP_REPLACE`.
    RegexpReplace,
    /// `REGEXP_SUBSTR`.
    RegexpSubstr,
    /// `AND`, `&&`.
    And,
    /// `OR`.
    Or,
    /// `XOR`.
    Xor,
    /// `NOT`, `!`.
    Not,
    /// `ISNULL`, `IS NULL`.
    IsNull,
    /// `IS NOT NULL`.
    IsNotNull,
    /// `IS TRUE`.
    IsTrue,
    /// `IS NOT TRUE`.
    IsNotTrue,
    /// `IS FALSE`.
    IsFalse,
    /// `IS NOT FALSE`.
    IsNotFalse,
    /// `&`.
    BitAnd,
    /// `|`.
    BitOr,
    /// `^`.
    BitXor,
    /// `~`.
    BitNot,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
    /// `BIT_COUNT`.
    BitCount,
    /// `IF`.
    If,
    /// `IFNULL`, `NVL`.
    IfNull,
    /// `NVL2`.
    Nvl2,
    /// `NULLIF`.
    NullIf,
    /// `COALESCE`.
    Coalesce,
    /// `CASE`.
    Case,
    /// `GREATEST`.
    Greatest,
    /// `LEAST`.
    Least,
    /// `INTERVAL`.
    Interval,
    /// `BINARY`.
    Binary,
    /// `CAST`.
    Cast,
    /// `ABS`.
    Abs,
    /// `CEILING`, `CEIL`.
    Ceiling,
    /// `FLOOR`.
    Floor,
    /// `ROUND`.
    Round,
    /// `TRUNCATE`.
    Truncate,
    /// `SIGN`.
    Sign,
    /// `POW`, `POWER`.
    Power,
    /// `SQRT`.
    Sqrt,
    /// `EXP`.
    Exp,
    /// `LN`.
    Ln,
    /// `LOG`.
    Log,
    /// `LOG2`.
    Log2,
    /// `LOG10`.
    Log10,
    /// `SIN`.
    Sin,
    /// `COS`.
    Cos,
    /// `TAN`.
    Tan,
    /// `COT`.
    Cot,
    /// `ASIN`.
    Asin,
    /// `ACOS`.
    Acos,
    /// `ATAN`, `ATAN2`.
    Atan,
    /// `DEGREES`.
    Degrees,
    /// `RADIANS`.
    Radians,
    /// `PI`.
    Pi,
    /// `RAND`.
    Rand,
    /// `CRC32`.
    Crc32,
    /// `CRC32C`.
    Crc32c,
    /// `CONV`.
    Conv,
    /// `CONCAT`.
    Concat,
    /// `CONCAT_WS`.
    ConcatWs,
    /// `LENGTH`, `OCTET_LENGTH`, `LENGTHB`.
    Length,
    /// `BIT_LENGTH`.
    BitLength,
    /// `CHAR_LENGTH`, `CHARACTER_LENGTH`.
    CharLength,
    /// `UPPER`, `UCASE`.
    Upper,
    /// `LOWER`, `LCASE`.
    Lower,
    /// `REVERSE`.
    Reverse,
    /// `REPEAT`.
    Repeat,
    /// `SPACE`.
    Space,
    /// `REPLACE`.
    Replace,
    /// `INSERT`.
    Insert,
    /// `LPAD`.
    Lpad,
    /// `RPAD`.
    Rpad,
    /// `QUOTE`.
    Quote,
    /// `SOUNDEX`.
    Soundex,
    /// `LEFT`.
    Left,
    /// `RIGHT`.
    Right,
    /// `SUBSTRING`, `SUBSTR`, `MID`.
    Substring,
    /// `SUBSTRING_INDEX`.
    SubstringIndex,
    /// `TRIM`.
    Trim,
    /// `TRIM_LEADING`.
    TrimLeading,
    /// `TRIM_TRAILING`.
    TrimTrailing,
    /// `LTRIM`.
    Ltrim,
    /// `RTRIM`.
    Rtrim,
    /// `INSTR`.
    Instr,
    /// `LOCATE`, `POSITION`.
    Locate,
    /// `STRCMP`.
    Strcmp,
    /// `ELT`.
    Elt,
    /// `FIELD`.
    Field,
    /// `FIND_IN_SET`.
    FindInSet,
    /// `MAKE_SET`.
    MakeSet,
    /// `EXPORT_SET`.
    ExportSet,
    /// `ASCII`.
    Ascii,
    /// `ORD`.
    Ord,
    /// `CHAR`.
    Char,
    /// `HEX`.
    Hex,
    /// `UNHEX`.
    Unhex,
    /// `BIN`.
    Bin,
    /// `OCT`.
    Oct,
    /// `TO_BASE64`.
    ToBase64,
    /// `FROM_BASE64`.
    FromBase64,
    /// `FORMAT`.
    Format,
    /// `MD5`.
    Md5,
    /// `SHA1`, `SHA`.
    Sha1,
    /// `SHA2`.
    Sha2,
    /// `WEIGHT_STRING`.
    WeightString,
    /// `NOW`, `CURRENT_TIMESTAMP`, `LOCALTIME`, `LOCALTIMESTAMP`.
    Now,
    /// `SYSDATE`.
    Sysdate,
    /// `UTC_TIMESTAMP`.
    UtcTimestamp,
    /// `CURDATE`, `CURRENT_DATE`.
    CurrentDate,
    /// `UTC_DATE`.
    UtcDate,
    /// `CURTIME`, `CURRENT_TIME`.
    CurrentTime,
    /// `UTC_TIME`.
    UtcTime,
    /// `DATE`.
    Date,
    /// `TIME`.
    Time,
    /// `TIMESTAMP`.
    Timestamp,
    /// `YEAR`.
    Year,
    /// `QUARTER`.
    Quarter,
    /// `MONTH`.
    Month,
    /// `DAY`, `DAYOFMONTH`.
    Day,
    /// `HOUR`.
    Hour,
    /// `MINUTE`.
    Minute,
    /// `SECOND`.
    Second,
    /// `MICROSECOND`.
    Microsecond,
    /// `WEEK`.
    Week,
    /// `WEEKOFYEAR`.
    WeekOfYear,
    /// `YEARWEEK`.
    YearWeek,
    /// `WEEKDAY`.
    Weekday,
    /// `DAYOFWEEK`.
    DayOfWeek,
    /// `DAYOFYEAR`.
    DayOfYear,
    /// `DAYNAME`.
    DayName,
    /// `MONTHNAME`.
    MonthName,
    /// `LAST_DAY`.
    LastDay,
    /// `TO_DAYS`.
    ToDays,
    /// `FROM_DAYS`.
    FromDays,
    /// `TO_SECONDS`.
    ToSeconds,
    /// `TIME_TO_SEC`.
    TimeToSec,
    /// `SEC_TO_TIME`.
    SecToTime,
    /// `MAKEDATE`.
    MakeDate,
    /// `MAKETIME`.
    MakeTime,
    /// `PERIOD_ADD`.
    PeriodAdd,
    /// `PERIOD_DIFF`.
    PeriodDiff,
    /// `UNIX_TIMESTAMP`.
    UnixTimestamp,
    /// `FROM_UNIXTIME`.
    FromUnixtime,
    /// `CONVERT_TZ`.
    ConvertTz,
    /// `DATEDIFF`.
    DateDiff,
    /// `TIMEDIFF`.
    TimeDiff,
    /// `TIMESTAMPDIFF`.
    TimestampDiff,
    /// `DATE_ADD`, `ADDDATE`.
    DateAdd,
    /// `DATE_SUB`, `SUBDATE`.
    DateSub,
    /// `TIMESTAMPADD`.
    TimestampAdd,
    /// `ADD_MONTHS`.
    AddMonths,
    /// `ADDTIME`.
    AddTime,
    /// `SUBTIME`.
    SubTime,
    /// `EXTRACT`.
    Extract,
    /// `DATE_FORMAT`.
    DateFormat,
    /// `TIME_FORMAT`.
    TimeFormat,
    /// `STR_TO_DATE`.
    StrToDate,
    /// `DATABASE`, `SCHEMA`.
    Database,
    /// `USER`, `SESSION_USER`, `SYSTEM_USER`.
    User,
    /// `CURRENT_USER`.
    CurrentUser,
    /// `CURRENT_ROLE`.
    CurrentRole,
    /// `CONNECTION_ID`.
    ConnectionId,
    /// `VERSION`.
    Version,
    /// `LAST_INSERT_ID`.
    LastInsertId,
    /// `JSON_VALID`.
    JsonValid,
    /// `ROW_COUNT`.
    RowCount,
    /// `FOUND_ROWS`.
    FoundRows,
    /// `CHARSET`.
    Charset,
    /// `COLLATION`.
    Collation,
    /// `COERCIBILITY`.
    Coercibility,
    /// `UUID`.
    Uuid,
    /// `SYS_GUID`.
    SysGuid,
    /// `RANDOM_BYTES`.
    RandomBytes,
    /// `INET_ATON`.
    InetAton,
    /// `INET_NTOA`.
    InetNtoa,
    /// `INET6_ATON`.
    Inet6Aton,
    /// `INET6_NTOA`.
    Inet6Ntoa,
    /// `IS_IPV4`.
    IsIpv4,
    /// `IS_IPV6`.
    IsIpv6,
    /// `PASSWORD`.
    Password,
    /// `ST_GEOMETRYFROMTEXT`, `ST_GEOMFROMTEXT`, `ST_POINTFROMTEXT`, `ST_LINEFROMTEXT`, ....
    GeometryFromText,
    /// `ST_GEOMETRYFROMWKB`, `ST_GEOMFROMWKB`, `ST_POINTFROMWKB`, `ST_LINEFROMWKB`, ....
    GeometryFromWkb,
    /// `ST_ASTEXT`, `ST_ASWKT`, `ASTEXT`, `ASWKT`.
    AsText,
    /// `ST_ASWKB`, `ST_ASBINARY`, `ASWKB`, `ASBINARY`.
    AsWkb,
    /// `ST_SRID`, `SRID`.
    Srid,
    /// `ST_X`, `X`.
    X,
    /// `ST_Y`, `Y`.
    Y,
    /// `ST_GEOMETRYTYPE`, `GEOMETRYTYPE`.
    GeometryType,
    /// `POINT`.
    Point,
}

/// A function that the session answers: it waits, or needs other sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFunction {
    /// `SLEEP(seconds)`.
    Sleep,
    /// `GET_LOCK(name, seconds)`.
    GetLock,
    /// `RELEASE_LOCK(name)`.
    ReleaseLock,
    /// `RELEASE_ALL_LOCKS()`.
    ReleaseAllLocks,
    /// `IS_FREE_LOCK(name)`.
    IsFreeLock,
    /// `IS_USED_LOCK(name)`.
    IsUsedLock,
}

/// The built-in aggregates of MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// `AVG`.
    Avg,
    /// `BIT_AND`.
    BitAnd,
    /// `BIT_OR`.
    BitOr,
    /// `BIT_XOR`.
    BitXor,
    /// `COUNT`.
    Count,
    /// `GROUP_CONCAT`.
    GroupConcat,
    /// `JSON_ARRAYAGG`.
    JsonArrayAgg,
    /// `JSON_OBJECTAGG`.
    JsonObjectAgg,
    /// `MAX`.
    Max,
    /// `MIN`.
    Min,
    /// `STD`, `STDDEV`, `STDDEV_POP`.
    StddevPop,
    /// `STDDEV_SAMP`.
    StddevSamp,
    /// `SUM`.
    Sum,
    /// `VARIANCE`, `VAR_POP`.
    VarPop,
    /// `VAR_SAMP`.
    VarSamp,
    /// `PERCENTILE_CONT(..) WITHIN GROUP (..)`.
    PercentileCont,
    /// `PERCENTILE_DISC(..) WITHIN GROUP (..)`.
    PercentileDisc,
    /// `MEDIAN`.
    Median,
}
