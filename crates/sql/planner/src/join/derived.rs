//! Queries used as tables: derived tables, and those of WITH.

use std::rc::Rc;

use errcode::{
    ER_DUP_FIELDNAME, ER_NOT_STANDARD_COMPLIANT_RECURSIVE, ER_RECURSIVE_WITHOUT_ANCHORS,
    ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT, ER_VIEW_WRONG_LIST,
    ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
};
use expression::{ColumnPlace, Expression};
use syntax::ast;

use super::merged::Derived;
use crate::bind::{Binder, CommonTable, Recursion, Relation, RelationColumn, error, plain_output};
use crate::from::{From, Item, Source};
use crate::output::derived_output;
use crate::plan::{
    DerivedOrigin, JoinKind, Latest, Node, OutputColumn, Query, Recursive, SlotShape,
};
use crate::query::{BoundQuery, NO_TAIL, union_members};
use crate::{PlanError, not_supported};

/// How many references to WITH queries a statement may have; one within another WITH query counts
/// each time it is bound. Statements written by people stay below 100.
const REFERENCES_MAX: usize = 4096;
/// The total text of all WITH queries that are bound: the default length of a packet.
const REFERENCE_BYTES_MAX: usize = 16 << 20;

impl Binder<'_> {
    pub(super) fn derived_table(
        &mut self,
        query: &ast::Query,
        alias: &str,
        names: &[ast::Ident],
    ) -> Result<From, PlanError> {
        let (derived, varies) = self.derived_query(query)?;
        self.derived((derived, varies), alias, names)
    }

    /// Binds or plans a table that does not see those beside it, and tells whether it varies. If
    /// so, the query that reads it needs no second run all the same.
    pub(super) fn apart<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let around = std::mem::take(&mut self.blocks);
        let has_varied = std::mem::replace(&mut self.has_varied, false);
        let is_apart = std::mem::replace(&mut self.is_apart, true);
        let stops_early = std::mem::replace(&mut self.stops_early, false);
        let exists_depth = self.exists_depth.take();
        let exists_set = self.exists_set.take();
        let bound = self.with_inner_lock(bind);
        self.exists_set = exists_set;
        self.exists_depth = exists_depth;
        self.stops_early = stops_early;
        self.is_apart = is_apart;
        self.blocks = around;
        let varies = std::mem::replace(&mut self.has_varied, has_varied);
        (bound, varies)
    }

    /// The WITH query of that name, or within itself its latest rows.
    pub(super) fn common_table(
        &mut self,
        name: &str,
        alias: &str,
    ) -> Option<Result<From, PlanError>> {
        let is_named = |table: &CommonTable| table.table.name.text == name;
        if let Some(place) = self.recursions.iter().rposition(|it| it.name == name) {
            return Some(self.latest(place, alias));
        }
        let place = self.common_tables.iter().rposition(|it| is_named(it))?;
        // A WITH query sees only those before it.
        let hidden = self.common_tables.split_off(place);
        let CommonTable {
            table,
            is_recursive,
        } = &*hidden[0];
        let bound = self.count_reference(table).and_then(|()| {
            if *is_recursive {
                self.recursive_table(table, alias)
            } else {
                self.derived_table(&table.query, alias, &table.columns)
            }
        });
        assert!(
            self.common_tables.len() == place,
            "each query takes its own tables away"
        );
        self.common_tables.extend(hidden);
        Some(bound)
    }

    /// Error 1473 if WITH queries would need too much memory and time: each is bound again wherever
    /// it is named. If each names the former twice, the work doubles each time.
    fn count_reference(&mut self, table: &ast::CommonTable) -> Result<(), PlanError> {
        let span = table.query.span;
        self.reference_count += 1;
        self.reference_bytes += stdx::to_usize(span.end.saturating_sub(span.start));
        if REFERENCES_MAX < self.reference_count || REFERENCE_BYTES_MAX < self.reference_bytes {
            return Err(error(ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT, &[]));
        }
        Ok(())
    }

    /// A table that may read itself: the members of its UNION before the first that does return the
    /// first rows, and set the column types.
    fn recursive_table(
        &mut self,
        table: &ast::CommonTable,
        alias: &str,
    ) -> Result<From, PlanError> {
        let (bound, varies) = self.apart(|binder| binder.recursive_query(table));
        match bound? {
            Some(bound) => self.derived((Derived::planned(bound), varies), alias, &table.columns),
            None => self.derived_table(&table.query, alias, &table.columns),
        }
    }

    /// The query of a recursive table; `None` if it does not read itself.
    fn recursive_query(
        &mut self,
        table: &ast::CommonTable,
    ) -> Result<Option<BoundQuery>, PlanError> {
        let (query, name) = (&table.query, &table.name.text);
        let members = union_members(&query.body);
        let mut anchors = Vec::new();
        for (member, _) in &members {
            self.recursions.push(Recursion::closed(name));
            let bound = self.body(member, &NO_TAIL);
            let recursion = self.recursions.pop().expect("pushed above");
            if recursion.is_read {
                break;
            }
            anchors.push(bound?.0);
        }
        let anchor_count = anchors.len();
        if anchor_count == members.len() {
            return Ok(None);
        }
        if anchors.is_empty() {
            return Err(error(ER_RECURSIVE_WITHOUT_ANCHORS, &[name]));
        }
        if !query.order_by.is_empty() || query.limit.is_some() {
            return Err(not_supported("ORDER BY and LIMIT of a recursive table"));
        }
        let columns = self.recursive_columns(&mut anchors, table)?;
        let types: Vec<_> = columns.iter().map(|it| it.column_type.clone()).collect();
        let latest_slot = self.add_slot(SlotShape::Computed(types.clone()));
        let mut queries: Vec<_> = anchors.into_iter().map(|it| Rc::new(it.query)).collect();
        for (member, _) in &members[anchor_count..] {
            self.recursions.push(Recursion {
                name: name.clone(),
                open: Some((latest_slot, columns.clone())),
                is_read: false,
            });
            let bound = self.body(member, &NO_TAIL);
            self.recursions.pop();
            let (bound, _) = bound?;
            if bound.columns.len() != columns.len() {
                return Err(error(ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
            }
            queries.push(Rc::new(bound.query));
        }
        let slot = self.add_slot(SlotShape::Computed(types));
        let output = columns.iter().enumerate().map(|(column, described)| {
            let place = ColumnPlace { slot, column };
            Expression::column(place, described.column_type.clone(), true)
        });
        let output = output.collect();
        let recursive = Recursive {
            name: name.clone(),
            slot,
            latest_slot,
            anchor_count,
            is_distinct: members.iter().any(|(_, distinct)| *distinct),
            columns: columns
                .iter()
                .map(|it| (it.name.clone(), it.column_type.clone()))
                .collect(),
        };
        let query = Query {
            root: Node::Recursive(queries, Rc::new(recursive)),
            output,
            dependent: Vec::new(),
        };
        Ok(Some(BoundQuery { query, columns }))
    }

    /// The columns of a recursive table: those of its first rows.
    fn recursive_columns(
        &mut self,
        anchors: &mut [BoundQuery],
        table: &ast::CommonTable,
    ) -> Result<Vec<OutputColumn>, PlanError> {
        let mut columns = std::mem::take(&mut anchors[0].columns);
        for (place, column) in columns.iter_mut().enumerate() {
            let values = anchors.iter().map(|it| it.query.output.get(place));
            let values: Option<Vec<_>> = values.collect();
            let values = values.ok_or_else(|| error(ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]))?;
            let (column_type, _) = self.union_type(values)?;
            let name = table.columns.get(place).map_or(&column.name, |it| &it.text);
            *column = plain_output(name.clone(), column_type, true);
        }
        Ok(columns)
    }

    /// The latest rows of a table that is being defined.
    fn latest(&mut self, place: usize, alias: &str) -> Result<From, PlanError> {
        let is_alone = self.blocks.len() == 1;
        let recursion = &mut self.recursions[place];
        let is_first = !std::mem::replace(&mut recursion.is_read, true);
        let refused = error(ER_NOT_STANDARD_COMPLIANT_RECURSIVE, &[&recursion.name]);
        let (latest_slot, columns) = match recursion.open.clone() {
            Some(open) if is_first && is_alone => open,
            _ => return Err(refused),
        };
        let types = columns.iter().map(|it| it.column_type.clone()).collect();
        let slot = self.add_slot(SlotShape::Computed(types));
        self.show_derived(&columns, &[], alias, slot)?;
        let source = Source::Latest(Rc::new(Latest { slot, latest_slot }));
        Ok(only_item(source, slot))
    }

    /// Adds a query in FROM, which may vary, to the scope of the current block.
    fn derived(
        &mut self,
        (derived, varies): (Derived, bool),
        alias: &str,
        names: &[ast::Ident],
    ) -> Result<From, PlanError> {
        let (rows, columns) = match derived {
            Derived::Merged(merged) => return self.show_merged(merged, alias, names),
            Derived::Apart(rows, columns) => (rows, columns),
        };
        let slot = self.computed_slot(rows.output());
        self.show_derived(&columns, names, alias, slot)?;
        let source = Source::Derived {
            slot,
            rows,
            origin: DerivedOrigin::Table,
            varies,
        };
        Ok(only_item(source, slot))
    }

    /// Adds the columns of a query to the scope of the current block.
    pub(super) fn show_derived(
        &mut self,
        described: &[OutputColumn],
        names: &[ast::Ident],
        alias: &str,
        slot: usize,
    ) -> Result<(), PlanError> {
        if !names.is_empty() && names.len() != described.len() {
            return Err(error(ER_VIEW_WRONG_LIST, &[]));
        }
        let columns: Vec<RelationColumn> = described
            .iter()
            .enumerate()
            .map(|(place, column)| {
                let name = names
                    .get(place)
                    .map_or(&column.name, |name| &name.text)
                    .clone();
                RelationColumn {
                    column_type: column.column_type.clone().bounded(),
                    nullable: column.nullable,
                    invisible: false,
                    output: derived_output(column, &name, alias),
                    name,
                }
            })
            .collect();
        let relation = Relation::new(alias, Default::default(), slot, columns);
        for (place, RelationColumn { name, .. }) in relation.columns.iter().enumerate() {
            if relation.column_named(name) != Some(place) {
                return Err(error(ER_DUP_FIELDNAME, &[name]));
            }
        }
        self.block().scope.add(relation);
        Ok(())
    }
}

fn only_item(source: Source, slot: usize) -> From {
    let item = Item {
        kind: JoinKind::Inner,
        source,
        on: Vec::new(),
        slots: vec![slot],
    };
    From {
        items: vec![item],
        ..From::default()
    }
}
