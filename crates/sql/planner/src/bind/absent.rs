//! Functions that MariaDB has and this server lacks. They fail with error 1235, which names them;
//! an unknown name is a function that does not exist (1305).

/// Families that are missing as a whole, by their prefixes.
const FAMILIES: [&str; 6] = ["JSON_", "ST_", "COLUMN_", "WSREP_", "MBR", "SPIDER_"];

/// The others, in alphabetical order.
const NAMES: [&str; 43] = [
    "AES_DECRYPT",
    "AES_ENCRYPT",
    "BINLOG_GTID_POS",
    "CHR",
    "COMPRESS",
    "CUME_DIST",
    "DECODE",
    "DECODE_HISTOGRAM",
    "DENSE_RANK",
    "DES_DECRYPT",
    "DES_ENCRYPT",
    "ENCODE",
    "ENCRYPT",
    "EXTRACTVALUE",
    "FIRST_VALUE",
    "GEOMETRYCOLLECTION",
    "IS_IPV4_COMPAT",
    "IS_IPV4_MAPPED",
    "LAG",
    "LASTVAL",
    "LAST_VALUE",
    "LEAD",
    "LINESTRING",
    "MASTER_GTID_WAIT",
    "MULTILINESTRING",
    "MULTIPOINT",
    "MULTIPOLYGON",
    "NATURAL_SORT_KEY",
    "NEXTVAL",
    "NTH_VALUE",
    "NTILE",
    "OLD_PASSWORD",
    "PERCENT_RANK",
    "POLYGON",
    "RANK",
    "ROWNUM",
    "SETVAL",
    "SFORMAT",
    "TO_CHAR",
    "UNCOMPRESS",
    "UNCOMPRESSED_LENGTH",
    "UPDATEXML",
    "UUID_SHORT",
];

/// True if the name, in any case, is a function of MariaDB.
pub(super) fn is_of_reference(name: &str) -> bool {
    let name = name.to_uppercase();
    NAMES.binary_search(&name.as_str()).is_ok()
        || FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found_in_any_case() {
        assert!(NAMES.is_sorted());
        assert!(is_of_reference("aes_encrypt") && is_of_reference("Json_Extract"));
        assert!(!is_of_reference("CONCAT") && !is_of_reference("my_own"));
    }
}
