//! EXPLAIN: the plan as MariaDB's table.

use std::borrow::Cow;
use std::rc::Rc;

use expression::Expression;
use store::Uniqueness;
use value::{CollationId, ColumnType, TypeKind, Value};

use crate::bind::plain_output;
use crate::estimate::rows_given;
use crate::plan::{
    Access, Action, Derived, DerivedOrigin, DerivedRun, InsertSource, JoinKind, Node, OutputColumn,
    Plan, Query, Scan, SetOperation, SubqueryKind, TableHolds,
};

/// A line of EXPLAIN.
#[derive(Debug, Default)]
struct Line {
    id: Option<u64>,
    select_type: &'static str,
    table: Option<String>,
    kind: Option<&'static str>,
    possible_keys: Option<String>,
    key: Option<String>,
    key_length: Option<String>,
    reference: Option<String>,
    rows: Option<u64>,
    extra: Vec<Cow<'static, str>>,
}

/// Lines under construction.
struct Explainer<'p> {
    plan: &'p Plan,
    lines: Vec<Line>,
    next_id: u64,
}

/// The plan that returns the description of a plan.
pub(crate) fn explain(plan: &Plan) -> Plan {
    let mut explainer = Explainer {
        plan,
        lines: Vec::new(),
        next_id: 1,
    };
    match &plan.action {
        Action::Select(query) | Action::Do(query) => {
            let select_type = explainer.outermost(&query.root);
            explainer.query(query, select_type);
        }
        Action::Insert(insert) => {
            let table = plan.tables[insert.table].definition.name.table.clone();
            explainer.lines.push(Line {
                id: Some(1),
                select_type: "INSERT",
                table: Some(table),
                kind: Some("ALL"),
                ..Line::default()
            });
            if let InsertSource::Query { query, .. } = &insert.source {
                explainer.query(query, "SIMPLE");
            }
        }
        Action::Update(update) => explainer.changed(&update.input),
        Action::Delete(delete) => explainer.changed(&delete.input),
        Action::Rows(_) => {}
    }
    explainer.subqueries();
    let rows = explainer.lines.iter().map(Line::values).collect();
    Plan {
        memory: expression::Share::default(),
        reads_for_update: false,
        locks_rows: false,
        action: Action::Rows(rows),
        tables: plan.tables.clone(),
        privileges: plan.privileges.clone(),
        slots: Vec::new(),
        subqueries: Vec::new(),
        functions: Vec::new(),
        parameter_count: plan.parameter_count,
        columns: columns().into(),
        into_variables: Vec::new(),
        warnings: Vec::new(),
        list_count: 0,
        text_checks: Vec::new(),
        user_variables: plan.user_variables.clone(),
        // Its rows tell what is known now.
        is_for_values: true,
    }
}

fn columns() -> Vec<OutputColumn> {
    let text = |name: &str, chars: u32, nullable: bool| {
        let mut column_type = ColumnType::varchar(chars, CollationId::UTF8MB4_GENERAL_CI);
        column_type.decimals = ColumnType::TEXT_DECIMALS;
        plain_output(name.to_owned(), column_type, nullable)
    };
    let mut id = ColumnType::new(TypeKind::BigInt);
    id.length = 3;
    id.unsigned = true;
    vec![
        plain_output(String::from("id"), id, true),
        text("select_type", 19, false),
        text("table", 64, true),
        text("type", 10, true),
        text("possible_keys", 4096, true),
        text("key", 64, true),
        text("key_len", 4096, true),
        text("ref", 2048, true),
        // A text in MariaDB, too.
        text("rows", 64, true),
        text("Extra", 255, false),
    ]
}

impl Line {
    fn values(&self) -> Vec<Value> {
        let text = |text: &Option<String>| match text {
            Some(text) => Value::bytes(text.as_str()),
            None => Value::Null,
        };
        vec![
            self.id.map_or(Value::Null, Value::UInt),
            Value::bytes(self.select_type),
            text(&self.table),
            self.kind.map_or(Value::Null, Value::bytes),
            text(&self.possible_keys),
            text(&self.key),
            text(&self.key_length),
            text(&self.reference),
            self.rows
                .map_or(Value::Null, |rows| Value::bytes(rows.to_string())),
            Value::bytes(self.extra.join("; ")),
        ]
    }
}

impl Explainer<'_> {
    fn query(&mut self, query: &Query, select_type: &'static str) {
        let id = self.next_id;
        self.next_id += 1;
        self.node(&query.root, id, select_type);
    }

    /// The rows that a statement changes.
    fn changed(&mut self, input: &Node) {
        self.next_id += 1;
        self.node(input, 1, self.outermost(input));
    }

    fn outermost(&self, root: &Node) -> &'static str {
        let is_simple = self.plan.subqueries.iter().all(Option::is_none) && !has_derived(root);
        if is_simple { "SIMPLE" } else { "PRIMARY" }
    }

    fn subqueries(&mut self) {
        for place in 0..self.plan.subqueries.len() {
            let Some(subquery) = self.plan.subqueries[place].clone() else {
                continue;
            };
            let select_type = match subquery.kind {
                _ if subquery.is_correlated => "DEPENDENT SUBQUERY",
                _ if subquery.varies => "UNCACHEABLE SUBQUERY",
                SubqueryKind::Set => "MATERIALIZED",
                _ => "SUBQUERY",
            };
            self.query(&subquery.query, select_type);
        }
    }

    fn node(&mut self, node: &Node, id: u64, select_type: &'static str) {
        let first = self.lines.len();
        match node {
            Node::Nothing => self.note(id, select_type, "Impossible WHERE"),
            Node::One => self.note(id, select_type, "No tables used"),
            Node::Scan(scan) => self.scan(scan, id, select_type),
            Node::Filter(input, _) => {
                self.node(input, id, select_type);
                self.filtered();
            }
            Node::NestedLoop(left, right, join) => {
                self.node(left, id, select_type);
                let place = self.lines.len();
                self.node(right, id, select_type);
                if join.kind == JoinKind::Left && self.lines[place].kind == Some("ALL") {
                    self.extra(place, "Using where");
                }
                self.unmatched(place, join.kind);
            }
            Node::HashJoin(left, right, plan) => {
                if plan.holds == TableHolds::Query {
                    self.node(left, id, select_type);
                }
                let place = self.lines.len();
                self.node(right, id, select_type);
                // A kept table is read once, as the line says.
                if plan.holds == TableHolds::Query {
                    self.lines[place].kind = Some(match self.lines[place].kind {
                        Some("range") => "hash_range",
                        Some("index") => "hash_index",
                        _ => "hash_ALL",
                    });
                }
                self.unmatched(place, plan.kind);
                self.extra(place, "Using join buffer (flat, BNLH join)");
            }
            Node::Derived(query, derived) => self.derived(query, derived, id, select_type),
            Node::Aggregate(input, aggregate) => {
                self.node(input, id, select_type);
                if !aggregate.keys.is_empty() && !aggregate.is_ordered {
                    self.extra(first, "Using temporary");
                }
            }
            Node::Sort(input, _) => {
                self.node(input, id, select_type);
                self.extra(first, "Using filesort");
            }
            Node::Distinct(input, _) => {
                self.node(input, id, select_type);
                self.extra(first, "Using temporary");
            }
            Node::Limit(input, _) => self.node(input, id, select_type),
            Node::Append(inputs) => {
                for input in inputs {
                    self.node(input, id, select_type);
                }
                if inputs.iter().all(is_scan) {
                    self.index_merge(first);
                }
            }
            Node::Union(queries, union) => {
                self.combined(queries, union.operation, id, select_type);
            }
            Node::Recursive(queries, _) => {
                self.combined(queries, SetOperation::Union, id, select_type);
            }
            Node::Latest(_) => self.note(id, select_type, "Using temporary"),
        }
    }

    fn derived(&mut self, query: &Query, derived: &Derived, id: u64, select_type: &'static str) {
        let (inner, is_set) = (self.next_id, derived.origin == DerivedOrigin::Set);
        let (name, inner_type, rows) = match derived.origin {
            DerivedOrigin::Table if derived.run == DerivedRun::EachRow => {
                ("derived", "LATERAL DERIVED", 2)
            }
            DerivedOrigin::Table => ("derived", "DERIVED", 2),
            DerivedOrigin::Set => {
                let rows = rows_given(&query.root);
                ("subquery", "MATERIALIZED", stdx::f64_to_u64(rows))
            }
        };
        self.lines.push(Line {
            id: Some(id),
            select_type,
            table: Some(format!("<{name}{inner}>")),
            kind: Some("ALL"),
            possible_keys: is_set.then(|| String::from("distinct_key")),
            rows: Some(rows),
            ..Line::default()
        });
        match &query.root {
            // The distinct rows are the line above.
            Node::Distinct(input, _) if is_set => {
                self.next_id += 1;
                self.node(input, inner, inner_type);
            }
            _ => self.query(query, inner_type),
        }
    }

    fn combined(
        &mut self,
        queries: &[Rc<Query>],
        operation: SetOperation,
        id: u64,
        select_type: &'static str,
    ) {
        let (member, result) = match operation {
            SetOperation::Union => ("UNION", "UNION RESULT"),
            SetOperation::Except { .. } => ("EXCEPT", "EXCEPT RESULT"),
            SetOperation::Intersect { .. } => ("INTERSECT", "INTERSECT RESULT"),
        };
        let name = member.to_ascii_lowercase();
        let ids = id..id + queries.len() as u64;
        self.next_id = id;
        for (place, query) in queries.iter().enumerate() {
            self.query(query, if place == 0 { select_type } else { member });
        }
        self.lines.push(Line {
            select_type: result,
            table: Some(members_shown(&name, ids)),
            kind: Some("ALL"),
            ..Line::default()
        });
    }

    fn note(&mut self, id: u64, select_type: &'static str, extra: &'static str) {
        let extra = vec![Cow::Borrowed(extra)];
        self.lines.push(Line {
            id: Some(id),
            select_type,
            extra,
            ..Line::default()
        });
    }

    fn extra(&mut self, line: usize, text: &'static str) {
        if let Some(line) = self.lines.get_mut(line)
            && !line.extra.iter().any(|it| it == text)
        {
            line.extra.push(Cow::Borrowed(text));
        }
    }

    /// Makes one line of those from `first` on: several indexes find rows of one table.
    fn index_merge(&mut self, first: usize) {
        let scans = self.lines.split_off(first);
        let joined = |part: fn(&Line) -> &Option<String>| {
            let parts = scans.iter().filter_map(|line| part(line).as_deref());
            parts.collect::<Vec<_>>().join(",")
        };
        let keys = joined(|line| &line.key);
        let possible = scans.iter().filter_map(|it| it.possible_keys.as_deref());
        let mut possible: Vec<&str> = possible.flat_map(|it| it.split(',')).collect();
        possible.sort_unstable();
        possible.dedup();
        self.lines.push(Line {
            possible_keys: Some(possible.join(",")),
            key_length: Some(joined(|line| &line.key_length)),
            rows: Some(scans.iter().filter_map(|line| line.rows).sum()),
            kind: Some("index_merge"),
            extra: vec![
                Cow::Owned(format!("Using union({keys})")),
                Cow::Borrowed("Using where"),
            ],
            key: Some(keys),
            id: scans[0].id,
            select_type: scans[0].select_type,
            table: scans[0].table.clone(),
            reference: None,
        });
    }

    /// The right side of an anti join.
    fn unmatched(&mut self, line: usize, kind: JoinKind) {
        if kind == JoinKind::Anti {
            self.extra(line, "Using where");
            self.extra(line, "Not exists");
        }
    }

    /// The last line's rows are tested by a condition, as the store may do, too.
    fn filtered(&mut self) {
        let line = self.lines.len().saturating_sub(1);
        let is_pushed = |it: &Line| it.extra.iter().any(|it| it == USING_PUSHED);
        if !self.lines.get(line).is_some_and(is_pushed) {
            self.extra(line, "Using where");
        }
    }

    fn scan(&mut self, scan: &Scan, id: u64, select_type: &'static str) {
        let definition = &self.plan.tables[scan.table].definition;
        let index = scan.index.map(|index| &definition.indexes[index]);
        let (kind, parts, reference) = match &scan.access {
            Access::All if index.is_some() => ("index", usize::MAX, None),
            Access::All => ("ALL", 0, None),
            Access::Unique(values) => {
                let is_constant = values.iter().all(|value| value.slots().is_empty());
                let kind = if is_constant { "const" } else { "eq_ref" };
                (
                    kind,
                    values.len(),
                    Some(references(values.iter(), self.plan)),
                )
            }
            Access::Range(range) => {
                let has_bound = range.lower.is_some() || range.upper.is_some();
                if has_bound {
                    ("range", range.equal.len() + 1, None)
                } else {
                    let values = range.equal.iter().map(|equal| &equal.value);
                    (
                        "ref",
                        range.equal.len(),
                        Some(references(values, self.plan)),
                    )
                }
            }
            Access::Keys(keys) => ("range", keys.used_parts, None),
        };
        let key_length = index.map(|index| {
            let parts = index.parts.iter().take(parts);
            let bytes: usize = parts
                .map(|part| {
                    let column = &definition.columns[part.column];
                    key_bytes(&column.column_type, part.prefix_length)
                        + usize::from(column.nullable)
                })
                .sum();
            bytes.to_string()
        });
        let is_one = matches!(scan.access, Access::Unique(_))
            && index.is_some_and(|index| index.uniqueness != Uniqueness::None);
        let possible = scan.possible_indexes.iter();
        let possible: Vec<&str> = possible
            .map(|&index| definition.indexes[index].name.as_str())
            .collect();
        let is_using_index = scan.is_covering && index.is_some() && !is_one;
        let mut extra = pushed_extra(scan);
        if is_using_index {
            extra.push("Using index");
        }
        let extra = extra.into_iter().map(Cow::Borrowed).collect();
        self.lines.push(Line {
            id: Some(id),
            select_type,
            table: Some(self.plan.tables[scan.table].alias.clone()),
            kind: Some(kind),
            possible_keys: (!possible.is_empty()).then(|| possible.join(",")),
            key: index.map(|index| index.name.clone()),
            key_length,
            reference,
            rows: Some(if is_one { 1 } else { scan.rows_estimate }),
            extra,
        });
    }
}

/// A condition that the store tests, as MariaDB shows it.
const USING_PUSHED: &str = "Using where with pushed condition";

/// The members of a set operation as EXPLAIN names them. MariaDB has room for a name of 192 bytes,
/// and writes dots where more would follow.
fn members_shown(operation: &str, ids: std::ops::Range<u64>) -> String {
    let mut shown = format!("<{operation}");
    let mut before_last = shown.len();
    let (mut ids, bytes_max) = (ids.peekable(), 192);
    while shown.len() + 5 < bytes_max
        && let Some(id) = ids.next()
    {
        before_last = shown.len();
        shown.push_str(&format!("{id},"));
    }
    if ids.peek().is_some() {
        shown.truncate(before_last);
        shown.push_str("...>");
    } else {
        shown.pop();
        shown.push('>');
    }
    shown
}

/// What the store does in place of the nodes above.
fn pushed_extra(scan: &Scan) -> Vec<&'static str> {
    let mut extra = Vec::new();
    if let Some(pushed) = &scan.pushed {
        if !pushed.conditions.is_empty() {
            extra.push(USING_PUSHED);
        }
        if pushed.grouping.is_some() {
            extra.push("Storage engine handles GROUP BY");
        }
    }
    extra
}

/// True of a scan and its conditions.
fn is_scan(node: &Node) -> bool {
    match node {
        Node::Scan(_) => true,
        Node::Filter(input, _) => is_scan(input),
        _ => false,
    }
}

fn has_derived(node: &Node) -> bool {
    match node {
        Node::Derived(..) | Node::Union(..) | Node::Recursive(..) => true,
        Node::Nothing | Node::One | Node::Scan(_) | Node::Latest(_) => false,
        Node::Filter(input, _)
        | Node::Aggregate(input, _)
        | Node::Sort(input, _)
        | Node::Distinct(input, _)
        | Node::Limit(input, _) => has_derived(input),
        Node::Append(inputs) => inputs.iter().any(has_derived),
        Node::NestedLoop(left, right, _) => has_derived(left) || has_derived(right),
        Node::HashJoin(left, right, _) => has_derived(left) || has_derived(right),
    }
}

fn references<'e>(values: impl Iterator<Item = &'e Expression>, plan: &Plan) -> String {
    let name = |value: &Expression| {
        let Some(place) = value.as_column() else {
            return String::from("const");
        };
        match &plan.slots[place.slot] {
            crate::plan::SlotShape::Table(table) => {
                let crate::plan::TableUse {
                    definition, alias, ..
                } = &plan.tables[*table];
                let column = &definition.columns[place.column].name;
                format!("{}.{alias}.{column}", definition.name.database)
            }
            crate::plan::SlotShape::Computed(_) | crate::plan::SlotShape::Groups(_) => {
                String::from("func")
            }
        }
    };
    values.map(name).collect::<Vec<_>>().join(",")
}

/// Bytes of a key part as MySQL counts them: text with two bytes of length.
fn key_bytes(column_type: &ColumnType, prefix_length: Option<u32>) -> usize {
    let bytes = match prefix_length {
        Some(length) => stdx::to_usize(length) * column_type.collation.char_bytes_max(),
        None => column_type.byte_length_max(),
    };
    let is_variable = column_type.kind.is_blob()
        || matches!(column_type.kind, TypeKind::VarChar | TypeKind::VarBinary);
    bytes + if is_variable { 2 } else { 0 }
}
