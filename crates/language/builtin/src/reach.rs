//! [`Reach`]: what a call does or reads beyond its arguments, by the function's name.
//!
//! The table of functions has what the server's own library needs. Who only routes statements has
//! to know of each function of MariaDB 10.11 and MySQL 8 whether it computes from its arguments
//! alone. A server looks for a built-in function first, so a stored one of the same name is never
//! called by its name alone. A stored function on MySQL may have the name of one that only MariaDB
//! has, or the other way; it is taken for that one. A function that is found nowhere is a stored or
//! loaded one, of which nothing is known.

/// What a call does or reads beyond its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Nothing.
    Arguments,
    /// Time, chance, account or server.
    Server,
    /// The connection's number.
    ConnectionId,
    /// Rows that the last query has found.
    FoundRows,
    /// Rows that the last statement has changed.
    RowCount,
    /// The value that the last INSERT has generated.
    LastInsertId,
    /// The value that the session took from a sequence.
    LastValue,
    /// Takes a value from a sequence, or sets it.
    Sequence,
    /// Takes a user lock.
    TakesLock,
    /// Frees one.
    FreesLock,
    /// Frees all of the session.
    FreesLocks,
    /// Asks who holds one.
    ReadsLock,
}

/// The reach of the function by this name; `None` if the name is not known.
#[must_use]
pub fn reach(name: &[u8]) -> Option<Reach> {
    if let Some(reach) = special(name) {
        return Some(reach);
    }
    let is_known = crate::find(name).is_some() || is_pure(name);
    is_known.then_some(Reach::Arguments)
}

/// Whether a name without parentheses may be a call. `SYSDATE` is one in sql_mode ORACLE, which a
/// session may have without having set it.
#[must_use]
pub fn is_called_bare(name: &[u8]) -> bool {
    let is_bare = |it: crate::Found| it.grammar == crate::Grammar::Bare;
    crate::find(name).is_some_and(is_bare) || name.eq_ignore_ascii_case(b"SYSDATE")
}

/// Whether a function makes a TIME, of texts, too. Where a date is wanted, a TIME becomes one of
/// the present day: `CAST(MAKETIME(1, 2, 3) AS DATETIME)`.
#[must_use]
pub fn makes_time(name: &[u8]) -> bool {
    position(&OF_TIME, name, |entry| entry).is_some()
}

/// A search in a table of names that is sorted, in any case.
fn position<T>(table: &[T], name: &[u8], text: impl Fn(&T) -> &'static str) -> Option<usize> {
    let upper = |byte: &u8| byte.to_ascii_uppercase();
    let found = table.binary_search_by(|entry| {
        let entry = text(entry).as_bytes().iter().copied();
        entry.cmp(name.iter().map(upper))
    });
    found.ok()
}

fn special(name: &[u8]) -> Option<Reach> {
    let at = position(&SPECIAL, name, |entry| entry.0)?;
    SPECIAL.get(at).map(|entry| entry.1)
}

fn is_pure(name: &[u8]) -> bool {
    position(&PURE, name, |entry| entry).is_some()
}

/// Functions that do more than compute, or compute from more than their arguments.
const SPECIAL: [(&str, Reach); 62] = [
    ("BENCHMARK", Reach::Server),
    ("BINLOG_GTID_POS", Reach::Server),
    ("CONNECTION_ID", Reach::ConnectionId),
    ("CONVERT_TZ", Reach::Server),
    ("CURDATE", Reach::Server),
    ("CURRENT_DATE", Reach::Server),
    ("CURRENT_ROLE", Reach::Server),
    ("CURRENT_TIME", Reach::Server),
    ("CURRENT_TIMESTAMP", Reach::Server),
    ("CURRENT_USER", Reach::Server),
    ("CURTIME", Reach::Server),
    ("DATABASE", Reach::Server),
    // The default of a column may be an expression: `DEFAULT (UUID())`.
    ("DEFAULT", Reach::Server),
    // By the keys in a file of the server.
    ("DES_DECRYPT", Reach::Server),
    ("DES_ENCRYPT", Reach::Server),
    ("ENCRYPT", Reach::Server),
    ("FOUND_ROWS", Reach::FoundRows),
    ("GET_LOCK", Reach::TakesLock),
    ("ICU_VERSION", Reach::Server),
    ("IS_FREE_LOCK", Reach::ReadsLock),
    ("IS_USED_LOCK", Reach::ReadsLock),
    ("LASTVAL", Reach::LastValue),
    ("LAST_INSERT_ID", Reach::LastInsertId),
    ("LOAD_FILE", Reach::Server),
    ("LOCALTIME", Reach::Server),
    ("LOCALTIMESTAMP", Reach::Server),
    ("MASTER_GTID_WAIT", Reach::Server),
    ("MASTER_POS_WAIT", Reach::Server),
    ("NEXTVAL", Reach::Sequence),
    ("NOW", Reach::Server),
    ("PS_CURRENT_THREAD_ID", Reach::ConnectionId),
    ("PS_THREAD_ID", Reach::ConnectionId),
    ("RAND", Reach::Server),
    ("RANDOM_BYTES", Reach::Server),
    ("RELEASE_ALL_LOCKS", Reach::FreesLocks),
    ("RELEASE_LOCK", Reach::FreesLock),
    ("ROLES_GRAPHML", Reach::Server),
    ("ROWNUM", Reach::Server),
    ("ROW_COUNT", Reach::RowCount),
    ("SCHEMA", Reach::Server),
    ("SESSION_USER", Reach::Server),
    ("SETVAL", Reach::Sequence),
    ("SLEEP", Reach::Server),
    ("SOURCE_POS_WAIT", Reach::Server),
    ("SYSDATE", Reach::Server),
    ("SYSTEM_USER", Reach::Server),
    ("SYS_GUID", Reach::Server),
    ("UNIX_TIMESTAMP", Reach::Server),
    ("USER", Reach::Server),
    ("UTC_DATE", Reach::Server),
    ("UTC_TIME", Reach::Server),
    ("UTC_TIMESTAMP", Reach::Server),
    ("UUID", Reach::Server),
    ("UUID_SHORT", Reach::Server),
    ("UUID_V4", Reach::Server),
    ("UUID_V7", Reach::Server),
    // By the dictionary and the rules of the server.
    ("VALIDATE_PASSWORD_STRENGTH", Reach::Server),
    ("VERSION", Reach::Server),
    ("WAIT_FOR_EXECUTED_GTID_SET", Reach::Server),
    ("WSREP_LAST_SEEN_GTID", Reach::Server),
    ("WSREP_LAST_WRITTEN_GTID", Reach::Server),
    ("WSREP_SYNC_WAIT_UPTO_GTID", Reach::Server),
];

/// Functions that make a TIME of a constant, a number or a text, by MariaDB 10.11 and MySQL 8.
/// CURTIME and UTC_TIME are of the server.
const OF_TIME: [&str; 7] = [
    "ADDTIME",
    "MAKETIME",
    "SEC_TO_TIME",
    "STR_TO_DATE",
    "SUBTIME",
    "TIME",
    "TIMEDIFF",
];

/// Built-in functions that crate `builtin` does not have and that only compute.
#[rustfmt::skip]
const PURE: [&str; 175] = [
    "ANY_VALUE", "AREA", "BIN_TO_UUID", "BOUNDARY", "BUFFER", "CENTROID", "COLUMN_ADD",
    "COLUMN_CHECK", "COLUMN_CREATE", "COLUMN_DELETE", "COLUMN_EXISTS", "COLUMN_GET", "COLUMN_JSON",
    "COLUMN_LIST", "CONCAT_OPERATOR_ORACLE", "CONTAINS", "CONVEXHULL", "CROSSES", "DECODE_ORACLE",
    "DIMENSION", "DISJOINT", "ENDPOINT", "ENVELOPE", "EQUALS", "EXTERIORRING", "FORMAT_BYTES",
    "FORMAT_PICO_TIME", "GEOMETRYN", "GLENGTH", "GROUPING", "GTID_SUBSET", "GTID_SUBTRACT",
    "INTERIORRINGN", "INTERSECTS", "ISCLOSED", "ISEMPTY", "ISRING", "ISSIMPLE", "IS_UUID",
    "JSON_ARRAY", "JSON_ARRAY_APPEND", "JSON_ARRAY_INSERT", "JSON_ARRAY_INTERSECT", "JSON_COMPACT",
    "JSON_CONTAINS", "JSON_CONTAINS_PATH", "JSON_DEPTH", "JSON_DETAILED", "JSON_EQUALS",
    "JSON_EXISTS", "JSON_EXTRACT", "JSON_INSERT", "JSON_KEYS", "JSON_KEY_VALUE", "JSON_LENGTH",
    "JSON_LOOSE", "JSON_MERGE", "JSON_MERGE_PATCH", "JSON_MERGE_PRESERVE", "JSON_NORMALIZE",
    "JSON_OBJECT", "JSON_OBJECT_FILTER_KEYS", "JSON_OBJECT_TO_ARRAY", "JSON_OVERLAPS",
    "JSON_PRETTY", "JSON_QUERY", "JSON_QUOTE", "JSON_REMOVE", "JSON_REPLACE", "JSON_SCHEMA_VALID",
    "JSON_SCHEMA_VALIDATION_REPORT", "JSON_SEARCH", "JSON_SET", "JSON_STORAGE_FREE",
    "JSON_STORAGE_SIZE", "JSON_TYPE", "JSON_UNQUOTE", "JSON_VALUE", "KDF", "LPAD_ORACLE",
    "LTRIM_ORACLE", "MBRCONTAINS", "MBRCOVEREDBY", "MBRCOVERS", "MBRDISJOINT", "MBREQUAL",
    "MBREQUALS", "MBRINTERSECTS", "MBROVERLAPS", "MBRTOUCHES", "MBRWITHIN", "NUMGEOMETRIES",
    "NUMINTERIORRINGS", "NUMPOINTS", "OVERLAPS", "POINTN", "POINTONSURFACE", "REGEXP_LIKE",
    "REPLACE_ORACLE", "RPAD_ORACLE", "RTRIM_ORACLE", "STARTPOINT", "STATEMENT_DIGEST",
    "STATEMENT_DIGEST_TEXT", "ST_AREA", "ST_ASGEOJSON", "ST_BOUNDARY", "ST_BUFFER",
    "ST_BUFFER_STRATEGY", "ST_CENTROID", "ST_COLLECT", "ST_CONTAINS", "ST_CONVEXHULL", "ST_CROSSES",
    "ST_DIFFERENCE", "ST_DIMENSION", "ST_DISJOINT", "ST_DISTANCE", "ST_DISTANCE_SPHERE",
    "ST_ENDPOINT", "ST_ENVELOPE", "ST_EQUALS", "ST_EXTERIORRING", "ST_FRECHETDISTANCE",
    "ST_GEOHASH", "ST_GEOMCOLLFROMTXT", "ST_GEOMETRYN", "ST_GEOMFROMGEOJSON",
    "ST_HAUSDORFFDISTANCE", "ST_INTERIORRINGN", "ST_INTERSECTION", "ST_INTERSECTS", "ST_ISCLOSED",
    "ST_ISEMPTY", "ST_ISRING", "ST_ISSIMPLE", "ST_ISVALID", "ST_LATFROMGEOHASH", "ST_LATITUDE",
    "ST_LENGTH", "ST_LINEINTERPOLATEPOINT", "ST_LINEINTERPOLATEPOINTS", "ST_LONGFROMGEOHASH",
    "ST_LONGITUDE", "ST_MAKEENVELOPE", "ST_NUMGEOMETRIES", "ST_NUMINTERIORRING",
    "ST_NUMINTERIORRINGS", "ST_NUMPOINTS", "ST_OVERLAPS", "ST_POINTFROMGEOHASH", "ST_POINTN",
    "ST_POINTONSURFACE", "ST_RELATE", "ST_SIMPLIFY", "ST_STARTPOINT", "ST_SWAPXY",
    "ST_SYMDIFFERENCE", "ST_TOUCHES", "ST_TRANSFORM", "ST_UNION", "ST_VALIDATE", "ST_WITHIN",
    "SUBSTR_ORACLE", "TOUCHES", "TO_NUMBER", "TRIM_ORACLE", "TRUNC", "UUID_TO_BIN",
    "VEC_DISTANCE", "VEC_DISTANCE_COSINE", "VEC_DISTANCE_EUCLIDEAN",
    "VEC_FROMTEXT", "VEC_TOTEXT", "WITHIN",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_in_capitals() {
        assert!(SPECIAL.is_sorted_by(|left, right| left.0 < right.0));
        assert!(PURE.is_sorted_by(|left, right| left < right));
        assert!(OF_TIME.is_sorted_by(|left, right| left < right));
        let names = SPECIAL.iter().map(|entry| entry.0).chain(PURE);
        for name in names {
            assert_eq!(name, name.to_ascii_uppercase());
            assert!(reach(name.to_ascii_lowercase().as_bytes()).is_some());
        }
    }

    #[test]
    fn the_table_of_pure_functions_repeats_nothing() {
        for name in PURE {
            assert!(crate::find(name.as_bytes()).is_none(), "{name}");
            assert!(special(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn a_volatile_function_is_not_deterministic() {
        for builtin in crate::TABLE.iter().filter(|builtin| builtin.is_volatile) {
            for name in builtin.names {
                let reach = reach(name.text.as_bytes()).expect("it is built in");
                assert_ne!(reach, Reach::Arguments, "{}", name.text);
            }
        }
    }

    #[test]
    fn functions_have_their_reach() {
        assert_eq!(reach(b"concat"), Some(Reach::Arguments));
        assert_eq!(reach(b"json_extract"), Some(Reach::Arguments));
        assert_eq!(reach(b"Now"), Some(Reach::Server));
        assert_eq!(reach(b"get_lock"), Some(Reach::TakesLock));
        assert_eq!(reach(b"default"), Some(Reach::Server));
        assert_eq!(reach(b"my_function"), None);
        assert_eq!(reach(b"json_mine"), None);
        assert_eq!(reach(b"spider_direct_sql"), None);
        assert_eq!(reach(b""), None);
    }

    #[test]
    fn some_functions_need_no_parentheses() {
        for (name, expected) in [
            ("current_timestamp", true),
            ("UTC_DATE", true),
            ("SysDate", true),
            ("NOW", false),
            ("user", false),
            ("a", false),
        ] {
            assert_eq!(is_called_bare(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn functions_of_time_are_built_in() {
        for name in OF_TIME {
            assert!(makes_time(name.to_ascii_lowercase().as_bytes()));
            assert!(crate::find(name.as_bytes()).is_some(), "{name}");
        }
        assert!(!makes_time(b"TIME_FORMAT") && !makes_time(b"DATE_ADD"));
    }
}
