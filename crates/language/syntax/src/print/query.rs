//! Queries, and statements that change rows, as text.

use super::{Printer, left_in_text, quoted_string};
use crate::ast::{
    Assignment, Delete, FileFormat, IndexHintKind, IndexHintScope, Insert, InsertSource,
    IntoTarget, JoinKind, Limit, LockWait, NamedTable, OrderItem, Priority, Query, QueryBody,
    RowLock, Select, SelectInto, SelectItem, SetOperator, TableRef, Update, ValueRows,
};

impl Printer<'_> {
    pub(super) fn query(&mut self, query: &Query) {
        if let Some(with) = &query.with {
            self.put(if with.recursive {
                "WITH RECURSIVE "
            } else {
                "WITH "
            });
            self.list(&with.tables, |this, table| {
                this.name(&table.name);
                this.names_if_any(&table.columns);
                this.put(" AS (");
                this.query(&table.query);
                this.put(")");
                if !table.cycle.is_empty() {
                    this.put(" CYCLE ");
                    this.list(&table.cycle, Self::name);
                    this.put(" RESTRICT");
                }
            });
            self.put(" ");
        }
        self.body(&query.body);
        self.order_by(&query.order_by);
        self.limit(query.limit.as_ref());
        if let Some(into) = &query.into {
            self.clause_into(into);
        }
        if let Some(lock) = &query.lock {
            self.lock(*lock);
        }
    }

    /// Set operations are left-associative, and `INTERSECT` binds tighter: neither needs
    /// parentheses.
    fn body(&mut self, body: &QueryBody) {
        match body {
            QueryBody::Select(select) => self.select(select),
            QueryBody::Values(rows) => {
                self.put("VALUES ");
                self.list(rows, |this, row| {
                    this.put("(");
                    this.list(row, Self::expr);
                    this.put(")");
                });
            }
            QueryBody::Nested(query) => {
                self.put("(");
                self.query(query);
                self.put(")");
            }
            QueryBody::Set {
                operator,
                first,
                rest,
            } => {
                self.body(first);
                for member in rest {
                    self.put(match operator {
                        SetOperator::Union => " UNION ",
                        SetOperator::Except => " EXCEPT ",
                        SetOperator::Intersect => " INTERSECT ",
                    });
                    if member.all {
                        self.put("ALL ");
                    }
                    self.body(&member.body);
                }
            }
        }
    }

    fn select(&mut self, select: &Select) {
        self.put("SELECT ");
        let options = &select.options;
        for (is_set, word) in [
            (options.distinct, "DISTINCT "),
            (options.high_priority, "HIGH_PRIORITY "),
            (options.straight_join, "STRAIGHT_JOIN "),
            (options.small_result, "SQL_SMALL_RESULT "),
            (options.big_result, "SQL_BIG_RESULT "),
            (options.buffer_result, "SQL_BUFFER_RESULT "),
            (options.query_cache == Some(true), "SQL_CACHE "),
            (options.query_cache == Some(false), "SQL_NO_CACHE "),
            (options.calc_found_rows, "SQL_CALC_FOUND_ROWS "),
        ] {
            if is_set {
                self.put(word);
            }
        }
        self.list(&select.items, Self::item);
        if !select.from.is_empty() {
            self.put(" FROM ");
            self.list(&select.from, Self::table_ref);
        }
        if let Some(condition) = &select.condition {
            self.put(if select.from.is_empty() {
                " FROM DUAL WHERE "
            } else {
                " WHERE "
            });
            self.expr(condition);
        }
        if !select.group_by.is_empty() {
            self.put(" GROUP BY ");
            self.list(&select.group_by, Self::order_item);
            if select.with_rollup {
                self.put(" WITH ROLLUP");
            }
        }
        if let Some(having) = &select.having {
            self.put(" HAVING ");
            self.expr(having);
        }
        if !select.windows.is_empty() {
            self.put(" WINDOW ");
            self.list(&select.windows, |this, (name, window)| {
                this.name(name);
                this.put(" AS ");
                this.window(window);
            });
        }
    }

    fn item(&mut self, item: &SelectItem) {
        match item {
            SelectItem::Wildcard { schema, table, .. } => {
                for name in [schema, table].into_iter().flatten() {
                    self.name(name);
                    self.put(".");
                }
                self.put("*");
            }
            SelectItem::Expr { expr, alias, .. } => {
                self.expr(expr);
                if let Some(alias) = alias {
                    self.put(" AS ");
                    self.name(alias);
                }
            }
        }
    }

    fn table_ref(&mut self, table: &TableRef) {
        match table {
            TableRef::Table(table) => self.table(table),
            TableRef::Derived {
                query,
                alias,
                columns,
                ..
            } => {
                self.put("(");
                self.query(query);
                self.put(") AS ");
                self.name(alias);
                self.names_if_any(columns);
            }
            TableRef::List(list) => {
                self.put("(");
                self.list(list, Self::table_ref);
                self.put(")");
            }
            TableRef::JsonTable { call, alias } => {
                self.put(&call.name);
                self.put("() AS ");
                self.name(alias);
            }
            TableRef::Join {
                kind,
                natural,
                left,
                right,
                on,
                using,
            } => {
                self.put("(");
                self.table_ref(left);
                self.put(if *natural { " NATURAL" } else { "" });
                self.put(match kind {
                    JoinKind::Inner => " JOIN ",
                    JoinKind::Cross => " CROSS JOIN ",
                    JoinKind::Left => " LEFT JOIN ",
                    JoinKind::Right => " RIGHT JOIN ",
                    JoinKind::Straight => " STRAIGHT_JOIN ",
                });
                self.table_ref(right);
                if let Some(on) = on {
                    self.put(" ON ");
                    self.expr(on);
                }
                if !using.is_empty() {
                    self.put(" USING");
                    self.names_if_any(using);
                }
                self.put(")");
            }
        }
    }

    fn table(&mut self, table: &NamedTable) {
        self.object(&table.name);
        if !table.partitions.is_empty() {
            self.put(" PARTITION");
            self.names_if_any(&table.partitions);
        }
        if let Some(alias) = &table.alias {
            self.put(" AS ");
            self.name(alias);
        }
        for hint in &table.hints {
            self.put(match hint.kind {
                IndexHintKind::Use => " USE INDEX",
                IndexHintKind::Force => " FORCE INDEX",
                IndexHintKind::Ignore => " IGNORE INDEX",
            });
            self.put(match hint.scope {
                None => " (",
                Some(IndexHintScope::Join) => " FOR JOIN (",
                Some(IndexHintScope::OrderBy) => " FOR ORDER BY (",
                Some(IndexHintScope::GroupBy) => " FOR GROUP BY (",
            });
            self.list(&hint.indexes, Self::name);
            self.put(")");
        }
    }

    pub(super) fn order_by(&mut self, order_by: &[OrderItem]) {
        if !order_by.is_empty() {
            self.put(" ORDER BY ");
            self.list(order_by, Self::order_item);
        }
    }

    fn order_item(&mut self, item: &OrderItem) {
        self.expr(&item.expr);
        if item.descending {
            self.put(" DESC");
        }
    }

    pub(super) fn limit(&mut self, limit: Option<&Limit>) {
        let Some(limit) = limit else {
            return;
        };
        if limit.with_ties {
            if let Some(offset) = &limit.offset {
                self.put(" OFFSET ");
                self.expr(offset);
                self.put(" ROWS");
            }
            self.put(" FETCH FIRST ");
            if let Some(count) = &limit.count {
                self.expr(count);
            }
            return self.put(" ROWS WITH TIES");
        }
        match (&limit.count, &limit.offset) {
            (Some(count), offset) => {
                self.put(" LIMIT ");
                self.expr(count);
                if let Some(offset) = offset {
                    self.put(" OFFSET ");
                    self.expr(offset);
                }
            }
            (None, Some(offset)) => {
                self.put(" OFFSET ");
                self.expr(offset);
                self.put(" ROWS");
            }
            (None, None) => self.put(" LIMIT"),
        }
        if let Some(examined) = &limit.rows_examined {
            self.put(" ROWS EXAMINED ");
            self.expr(examined);
        }
    }

    fn lock(&mut self, lock: RowLock) {
        self.put(if lock.exclusive {
            " FOR UPDATE"
        } else {
            " LOCK IN SHARE MODE"
        });
        match lock.wait {
            LockWait::Default => {}
            LockWait::No => self.put(" NOWAIT"),
            LockWait::Skip => self.put(" SKIP LOCKED"),
            LockWait::Seconds(seconds) => self.put(&format!(" WAIT {seconds}")),
        }
    }

    fn clause_into(&mut self, into: &SelectInto) {
        match into {
            SelectInto::Variables(targets) => {
                self.put(" INTO ");
                self.list(targets, |this, target| match target {
                    IntoTarget::User(name) => {
                        let name = format!("@{}", super::quoted_name(name));
                        this.put(&name);
                    }
                    IntoTarget::Local(name) => this.name(name),
                    IntoTarget::Slot(_) => this.put("?"),
                });
            }
            SelectInto::Outfile {
                path,
                charset,
                format,
            } => {
                self.put(" INTO OUTFILE ");
                self.bytes(path);
                if let Some(charset) = charset {
                    self.put(" CHARACTER SET ");
                    self.name(charset);
                }
                self.file_format(format);
            }
            SelectInto::Dumpfile(path) => {
                self.put(" INTO DUMPFILE ");
                self.bytes(path);
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let text = quoted_string(&String::from_utf8_lossy(bytes));
        self.put(&text);
    }

    fn file_format(&mut self, format: &FileFormat) {
        let quote = if format.quote_optional {
            "OPTIONALLY ENCLOSED"
        } else {
            "ENCLOSED"
        };
        let fields = [
            ("TERMINATED", &format.field_end),
            (quote, &format.field_quote),
            ("ESCAPED", &format.escape),
        ];
        let lines = [
            ("STARTING", &format.line_start),
            ("TERMINATED", &format.line_end),
        ];
        for (group, options) in [("FIELDS", fields.as_slice()), ("LINES", lines.as_slice())] {
            if options.iter().all(|(_, value)| value.is_none()) {
                continue;
            }
            self.put(&format!(" {group}"));
            for (word, value) in options {
                if let Some(value) = value {
                    self.put(&format!(" {word} BY "));
                    self.bytes(value);
                }
            }
        }
    }

    pub(super) fn insert(&mut self, insert: &Insert) {
        self.put(if insert.is_replace {
            "REPLACE "
        } else {
            "INSERT "
        });
        self.put(match insert.priority {
            None => "",
            Some(Priority::Low) => "LOW_PRIORITY ",
            Some(Priority::Delayed) => "DELAYED ",
            Some(Priority::High) => "HIGH_PRIORITY ",
        });
        if insert.ignore {
            self.put("IGNORE ");
        }
        self.put("INTO ");
        self.object(&insert.table);
        if !insert.partitions.is_empty() {
            self.put(" PARTITION");
            self.names_if_any(&insert.partitions);
        }
        if insert.has_columns {
            self.put(" (");
            self.list(&insert.columns, Self::name);
            self.put(")");
        }
        match &insert.source {
            InsertSource::Values(ValueRows::Constants { .. }) => left_in_text(),
            InsertSource::Values(ValueRows::Trees(rows)) => {
                self.put(" VALUES ");
                self.list(rows, |this, row| {
                    this.put("(");
                    this.list(row, Self::expr);
                    this.put(")");
                });
            }
            InsertSource::Query(query) => {
                self.put(" ");
                self.query(query);
            }
        }
        if !insert.on_duplicate.is_empty() {
            self.put(" ON DUPLICATE KEY UPDATE ");
            self.list(&insert.on_duplicate, Self::assignment);
        }
        self.returning(&insert.returning);
    }

    fn assignment(&mut self, assignment: &Assignment) {
        let column = crate::ast::ExprKind::Column(assignment.column.clone());
        let span = crate::token::Span::default();
        self.expr(&crate::ast::Expr { kind: column, span });
        self.put(" = ");
        self.expr(&assignment.value);
    }

    fn returning(&mut self, items: &[SelectItem]) {
        if !items.is_empty() {
            self.put(" RETURNING ");
            self.list(items, Self::item);
        }
    }

    pub(super) fn update(&mut self, update: &Update) {
        self.put("UPDATE ");
        self.put(if update.low_priority {
            "LOW_PRIORITY "
        } else {
            ""
        });
        self.put(if update.ignore { "IGNORE " } else { "" });
        self.list(&update.tables, Self::table_ref);
        self.put(" SET ");
        self.list(&update.assignments, Self::assignment);
        if let Some(condition) = &update.condition {
            self.put(" WHERE ");
            self.expr(condition);
        }
        self.order_by(&update.order_by);
        self.limit(update.limit.as_ref());
    }

    pub(super) fn delete(&mut self, delete: &Delete) {
        self.put("DELETE ");
        self.put(if delete.low_priority {
            "LOW_PRIORITY "
        } else {
            ""
        });
        self.put(if delete.quick { "QUICK " } else { "" });
        self.put(if delete.ignore { "IGNORE " } else { "" });
        if !delete.targets.is_empty() {
            self.list(&delete.targets, Self::object);
            self.put(" ");
        }
        self.put("FROM ");
        self.list(&delete.from, Self::table_ref);
        if let Some(condition) = &delete.condition {
            self.put(" WHERE ");
            self.expr(condition);
        }
        self.order_by(&delete.order_by);
        self.limit(delete.limit.as_ref());
        self.returning(&delete.returning);
    }
}
