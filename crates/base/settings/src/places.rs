//! Finds settings by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::setting::Setting;
use crate::table::TABLE;

/// The entry of a name or alias and its place in the table. `-` counts as `_`; case is ignored.
pub fn find(name: &str) -> Option<(usize, &'static Setting)> {
    let place = match PLACES.get(name) {
        Some(place) => *place,
        None => *PLACES.get(as_in_table(name).as_str())?,
    };
    Some((place, TABLE.get(place)?))
}

/// A name as the table has it.
pub(crate) fn as_in_table(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// The place of each name and alias in the table: programs ask for settings at each call.
static PLACES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let mut places = HashMap::new();
    for (place, setting) in TABLE.iter().enumerate() {
        for name in std::iter::once(&setting.name).chain(setting.aliases) {
            places.entry(*name).or_insert(place);
        }
    }
    places
});
