//! The tables of the torture: the ledger, and the data with its indexes.

use store::{SchemaStore, Uniqueness};
use value::{ColumnType, TypeKind};

use crate::rows::{self, big, blob, index};
use crate::world::World;

/// Makes the tables in an empty data directory. The data has `more_index_count` indexes more than
/// the two that are always there.
pub(crate) fn set_up(world: &World, more_index_count: u64) -> Result<(), String> {
    let opening = world.clone();
    let made = world.run(async move {
        let database = opening.open().await?;
        let ledger = vec![index("PRIMARY", Uniqueness::Primary, &[0])];
        database
            .engine
            .create_table(rows::table("ledger", vec![big("id")], ledger))
            .await?;
        let unique = rows::column("u", ColumnType::new(TypeKind::BigInt), true);
        let columns = vec![big("id"), big("a"), unique, blob("note")];
        let mut indexes = vec![
            index("PRIMARY", Uniqueness::Primary, &[0]),
            index("by_a", Uniqueness::None, &[1]),
            index("by_u", Uniqueness::Unique, &[2]),
        ];
        indexes.extend((0..more_index_count).map(|number| {
            let columns: &[usize] = if number % 2 == 0 { &[1, 2] } else { &[2, 1] };
            index(&format!("more_{number}"), Uniqueness::None, columns)
        }));
        database
            .engine
            .create_table(rows::table("data", columns, indexes))
            .await?;
        database.close().await
    });
    world.executor.clear();
    made.map_err(|error| format!("set-up: {error}"))
}
