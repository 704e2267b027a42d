//! Options of tables that are stored and shown, and have no effect here.

use store::TableDefinition;

/// Their names: first those with a place in MariaDB's order, then the others.
const NAMES: [&str; 21] = [
    "MIN_ROWS",
    "MAX_ROWS",
    "AVG_ROW_LENGTH",
    "PACK_KEYS",
    "STATS_PERSISTENT",
    "STATS_AUTO_RECALC",
    "STATS_SAMPLE_PAGES",
    "CHECKSUM",
    "PAGE_CHECKSUM",
    "DELAY_KEY_WRITE",
    "ROW_FORMAT",
    "TRANSACTIONAL",
    "KEY_BLOCK_SIZE",
    "CONNECTION",
    "ENCRYPTED",
    "ENCRYPTION",
    "ENCRYPTION_KEY_ID",
    "INSERT_METHOD",
    "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_LEVEL",
    "TABLE_CHECKSUM",
];
/// How many have a place; the others are shown in the order in which they were given.
const PLACED_COUNT: usize = 13;

/// True if an option of this name, in capitals, is stored.
pub fn is_stored(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The options of a table in the order in which they are shown.
pub(crate) fn in_order(table: &TableDefinition) -> Vec<&(String, String)> {
    let place = |name: &str| NAMES.iter().position(|known| *known == name);
    let mut shown: Vec<_> = table.options.iter().collect();
    shown.sort_by_key(|(name, _)| place(name).map_or(PLACED_COUNT, |at| at.min(PLACED_COUNT)));
    shown
}
