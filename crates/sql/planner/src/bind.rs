//! Binding: from names to places in the frame, from syntax to typed expressions.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use errcode::{ClientError, ER_BAD_FIELD_ERROR};
use expression::{AggregateCall, ColumnPlace, Expression, StoredFunction};
use syntax::ast::{self, Expr, ExprKind, Literal, UnaryOperator};

use crate::numbered::Numbered;
use crate::plan::{SlotShape, Subquery, TableUse, TextCheck};
use crate::{Names, PlanError, Settings};

mod call;
mod cast;
mod compare;
mod constants;
mod dated;
mod dependents;
mod literal;
mod row_list;
mod scope;
mod stored;
mod subquery;
mod term;
mod variable;
mod with;

pub(crate) use scope::{Aliases, MERGED_COUNT_MAX, Relation, RelationColumn, Scope, plain_output};
pub(crate) use subquery::{ExistsSet, required_exists};
pub(crate) use variable::UserVariableUses;
pub(crate) use with::{CommonTable, Recursion};

/// A plan under construction.
pub(crate) struct Binder<'a> {
    /// The text, for names of result columns and messages.
    pub(crate) source: &'a [u8],
    pub(crate) names: &'a dyn Names,
    pub(crate) settings: &'a Settings,
    pub(crate) tables: Vec<TableUse>,
    pub(crate) slots: Vec<SlotShape>,
    /// Finished subqueries by number. `None` while one is being bound, and for calls of stored
    /// functions, which share the numbers.
    pub(crate) subqueries: Vec<Option<Rc<Subquery>>>,
    /// The sets of EXISTS queries by their numbers.
    pub(crate) exists_sets: HashMap<usize, ExistsSet>,
    /// The set of the block that was bound last, and the depth of a block whose set is wanted.
    pub(crate) exists_set: Option<ExistsSet>,
    pub(crate) exists_depth: Option<usize>,
    /// For each subquery the outer slots that it reads.
    pub(crate) subquery_slots: Vec<Vec<usize>>,
    /// Something was bound that varies (see [`Binder::varies`]) since this was last set to false.
    pub(crate) has_varied: bool,
    /// How many calls and variables have a number, since equal ones may differ in their values.
    pub(crate) occurrence_count: usize,
    /// The stored functions that are called.
    pub(crate) functions: Vec<Rc<StoredFunction>>,
    /// The query blocks around the current place, the innermost last.
    pub(crate) blocks: Vec<Block>,
    /// `WITH` queries in scope, later ones before earlier ones.
    pub(crate) common_tables: Vec<Rc<CommonTable>>,
    /// How many references to `WITH` queries were bound, and the total length of their texts.
    pub(crate) reference_count: usize,
    pub(crate) reference_bytes: usize,
    /// How many expressions have been visited; see [`Binder::spend`].
    pub(crate) looked_count: Cell<u32>,
    /// The stack position when binding began.
    pub(crate) stack_start: usize,
    /// Recursive tables whose queries are being bound, the innermost last.
    pub(crate) recursions: Vec<Recursion>,
    pub(crate) parameter_count: usize,
    /// How many long lists have a number.
    pub(crate) list_count: usize,
    /// Columns that are read anywhere, and where.
    pub(crate) used_columns: BTreeMap<ColumnPlace, Reader>,
    /// The table that is planned, if all conditions of its SELECT's WHERE are its own: it is the
    /// only one.
    pub(crate) sole_slot: Option<usize>,
    /// The statement changes rows, so they are read whole.
    pub(crate) reads_whole_rows: bool,
    /// `INSERT .. ON DUPLICATE KEY UPDATE`: the slot of the new row, for `VALUES(c)`.
    pub(crate) new_row: Option<(usize, usize)>,
    /// Checks of parameter values.
    pub(crate) text_checks: RefCell<Vec<TextCheck>>,
    /// The user variables that the statement reads and assigns.
    pub(crate) user_variables: UserVariableUses<'a>,
    /// How the tables of the current query are locked.
    pub(crate) lock: (store::RowLock, store::LockWait),
    /// How the tables of queries in expressions, and of derived tables, are locked: those of a
    /// change stay as they were read until it is committed.
    pub(crate) inner_lock: store::RowLock,
    /// A table is read for update.
    pub(crate) reads_for_update: bool,
    /// Some rows are locked when they are read.
    pub(crate) locks_rows: bool,
    /// The join that is being planned locks rows, and may end before all are read.
    pub(crate) stops_early: bool,
    /// A derived table is being bound.
    pub(crate) is_apart: bool,
    /// An estimate has used the value of a parameter since this was last set to false.
    pub(crate) asked_values: Cell<bool>,
    /// See [`Plan::is_for_values`](crate::Plan::is_for_values).
    pub(crate) is_for_values: bool,
}

/// After this many expressions planning checks whether to yield: some 100 us of work.
const EXPRESSIONS_PER_LOOK: u32 = 256;

/// A query block that is being bound.
#[derive(Debug, Default, Clone)]
pub(crate) struct Block {
    /// The names in scope.
    pub(crate) scope: Scope,
    /// The aggregate calls found so far; `ExpressionKind::Aggregate` names them.
    pub(crate) calls: Numbered<AggregateCall>,
    /// Aggregates are allowed at the current place.
    pub(crate) allows_aggregates: bool,
    /// The clause that is being bound, for messages.
    pub(crate) clause: Clause,
    /// Select items by alias, for HAVING, GROUP BY and ORDER BY.
    pub(crate) aliases: Aliases,
    /// The terms of GROUP BY, for HAVING.
    pub(crate) group_keys: Vec<Expression>,
    /// Where the EXISTS queries begin that WHERE requires.
    pub(crate) required_exists: Vec<u32>,
    /// Slots of sets that are read as tables of the block.
    pub(crate) set_slots: Vec<usize>,
    /// Outer slots that the block reads.
    pub(crate) outer_slots: Vec<usize>,
}

/// What reads a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reader {
    /// The WHERE clause of the SELECT that its table belongs to, and nothing else.
    OwnWhere,
    /// Anything else.
    Other,
}

/// A clause, as messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Clause {
    #[default]
    Fields,
    Where,
    On,
    Group,
    Having,
    Order,
    Set,
    Values,
    DuplicateUpdate,
    Returning,
}

/// An integer as a term of ORDER BY or GROUP BY, with its signs.
fn position_of(term: &Expr) -> Option<i128> {
    match &term.kind {
        ExprKind::Literal(Literal::Integer(number)) => Some(i128::from(*number)),
        ExprKind::Unary { operator, operand } => match operator {
            UnaryOperator::Negate => position_of(operand).map(|number| -number),
            UnaryOperator::Plus => position_of(operand),
            UnaryOperator::Not | UnaryOperator::BitNot => None,
        },
        _ => None,
    }
}

impl Clause {
    /// The expression that a number in this clause stands for, counted from 1; `None` if the term
    /// is no number.
    pub(crate) fn at_position(
        self,
        term: &Expr,
        output: &[Expression],
    ) -> Result<Option<Expression>, PlanError> {
        let Some(number) = position_of(term) else {
            return Ok(None);
        };
        let place = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        place
            .and_then(|place| output.get(place))
            .cloned()
            .map(Some)
            .ok_or_else(|| error(ER_BAD_FIELD_ERROR, &[&number, &self.text()]))
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Fields => "SELECT",
            Self::Where => "WHERE",
            Self::On => "ON",
            Self::Group => "GROUP BY",
            Self::Having => "HAVING",
            Self::Order => "ORDER BY",
            Self::Set => "SET",
            Self::Values => "VALUES",
            Self::DuplicateUpdate => "UPDATE",
            Self::Returning => "RETURNING",
        }
    }
}

impl<'a> Binder<'a> {
    pub(crate) fn new(source: &'a [u8], names: &'a dyn Names, settings: &'a Settings) -> Self {
        Self {
            source,
            names,
            settings,
            tables: Vec::new(),
            slots: Vec::new(),
            subqueries: Vec::new(),
            exists_sets: HashMap::new(),
            exists_set: None,
            exists_depth: None,
            subquery_slots: Vec::new(),
            has_varied: false,
            occurrence_count: 0,
            functions: Vec::new(),
            blocks: Vec::new(),
            common_tables: Vec::new(),
            reference_count: 0,
            reference_bytes: 0,
            looked_count: Cell::new(0),
            stack_start: stdx::stack_place(),
            recursions: Vec::new(),
            parameter_count: 0,
            list_count: 0,
            used_columns: BTreeMap::new(),
            sole_slot: None,
            reads_whole_rows: false,
            new_row: None,
            text_checks: RefCell::default(),
            user_variables: UserVariableUses::default(),
            lock: (store::RowLock::None, store::LockWait::Wait),
            inner_lock: store::RowLock::None,
            reads_for_update: false,
            locks_rows: false,
            stops_early: false,
            is_apart: false,
            asked_values: Cell::new(false),
            is_for_values: false,
        }
    }

    /// The current block.
    pub(crate) fn block(&mut self) -> &mut Block {
        self.blocks
            .last_mut()
            .expect("binding happens within a block")
    }

    /// Counts a visited expression; now and then it yields.
    ///
    /// # Errors
    /// If the statement has to end. Where this error cannot be returned, a later call returns it.
    pub(crate) fn spend(&self) -> Result<(), PlanError> {
        let count = self.looked_count.get().wrapping_add(1);
        self.looked_count.set(count);
        match count.is_multiple_of(EXPRESSIONS_PER_LOOK) {
            true => self.names.give_way(),
            false => Ok(()),
        }
    }

    /// A new slot.
    pub(crate) fn add_slot(&mut self, shape: SlotShape) -> usize {
        self.slots.push(shape);
        self.slots.len() - 1
    }

    /// A new slot for the values of these expressions.
    pub(crate) fn computed_slot(&mut self, expressions: &[Expression]) -> usize {
        let types = expressions
            .iter()
            .map(|expression| expression.column_type.clone())
            .collect();
        self.add_slot(SlotShape::Computed(types))
    }

    /// All slots that a condition reads: its own columns, and the outer slots of its subqueries.
    pub(crate) fn slots_of(&self, expression: &Expression) -> Vec<usize> {
        let mut slots = expression.slots();
        for number in expression.subqueries() {
            for &slot in &self.subquery_slots[number] {
                if !slots.contains(&slot) {
                    slots.push(slot);
                }
            }
        }
        slots
    }

    /// The text of a span.
    pub(crate) fn text(&self, span: syntax::Span) -> String {
        String::from_utf8_lossy(span.of(self.source)).into_owned()
    }

    /// The database of a name, or the default one.
    pub(crate) fn database_of(&self, name: &ast::ObjectName) -> Result<String, PlanError> {
        match (&name.schema, &self.settings.database) {
            (Some(schema), _) => Ok(schema.text.clone()),
            (None, Some(database)) => Ok(database.clone()),
            (None, None) => Err(error(errcode::ER_NO_DB_ERROR, &[])),
        }
    }
}

/// An error of the table.
pub(crate) fn error(code: errcode::ErrorCode, arguments: &[&dyn std::fmt::Display]) -> PlanError {
    Box::new(ClientError::new(code, arguments))
}
