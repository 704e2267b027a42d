//! LOAD DATA LOCAL INFILE: the client sends a file, and each of its lines becomes a row.
//!
//! The file is requested only when nothing but its lines can still go wrong. It is read to its end
//! even after an error, because the client sends it to its end. All lines are one statement.

mod field_reader;

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use clients::KillOrder;
use clients::wait::{Either, first_of};
use errcode::{
    ClientError, ER_LOAD_INFILE_CAPABILITY_DISABLED, ER_NET_PACKET_TOO_LARGE,
    ER_UNKNOWN_CHARACTER_SET, ER_WARN_TOO_FEW_RECORDS, ER_WARN_TOO_MANY_RECORDS,
    ER_WRONG_FIELD_TERMINATORS,
};
use executor::{Effect, Execution, Summary};
use front::PacketBytes;
use planner::{Plan, StringRules};
use store::UndoMark;
use syntax::ast::{IntoTarget, LoadData};
use value::{Charset, ColumnType, Level, TypeKind, Value};
use wire::{Capabilities, StatusFlags};

use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::row_encoder::RowProtocol;
use crate::connection::session::Session;
use crate::connection::sink::{ResultState, Rows};
use crate::load::field_reader::{BadFormat, Field, FieldReader, Read, RowLimits};
use crate::statement::dispatch::TURN_STATEMENT_COUNT;
use crate::statement::run::{Failed, Ran};
use crate::statement::statement_run::StatementRun;
use crate::worker::parsed::Parsed;

/// A file being loaded.
struct Loading<'s> {
    load: &'s LoadData,
    run: StatementRun,
    strings: StringRules,
    plan: Rc<Plan>,
    execution: Execution,
    reader: FieldReader,
    field_type: ColumnType,
    mark: UndoMark,
    /// The statement's deadline on the steady clock.
    deadline: Option<u64>,
    total: Summary,
    /// Rows read.
    rows: u64,
}

impl Session {
    /// Answers LOAD DATA.
    pub(crate) async fn load_statement(
        &mut self,
        load: &LoadData,
        parsed: &Parsed,
    ) -> Result<Reply, Stop> {
        self.check_load(load)?;
        let field_type = self.field_type(load)?;
        let row_bytes_max = {
            let variables = self.state.variables.borrow();
            let limit = variables.settings().unsigned("max_allowed_packet");
            usize::try_from(limit).unwrap_or(usize::MAX)
        };
        let plan = Rc::new(self.plan(parsed, std::slice::from_ref(&field_type))?);
        self.check_privileges(&plan)?;
        // One field more than needed shows that there are too many.
        let limits = RowLimits {
            bytes: row_bytes_max,
            fields: plan.parameter_count + 1,
        };
        let strings = parsed.text.strings;
        let reader = FieldReader::new(&load.format, strings, load.ignore_lines, limits);
        let reader = reader.map_err(|bad| match bad {
            BadFormat::Separator => ClientError::new(ER_WRONG_FIELD_TERMINATORS, &[]),
            BadFormat::FixedWidth => ClientError::not_supported(&"LOAD DATA of fixed-width rows"),
        })?;
        self.check_may_write()?;
        let run = StatementRun::new(&self.state, RowProtocol::Text);
        if self.needs_admission(&plan, &run) {
            self.admit().await?;
        }
        self.hold_tables(&plan, &run).await?;
        self.state.clear_diagnostics();
        let mark = self.begin_steps();
        let deadline = self.statement_deadline();
        let mut loading = Loading {
            load,
            run,
            strings,
            execution: Execution::new(Rc::clone(&plan)),
            plan,
            reader,
            field_type,
            mark,
            deadline,
            total: Summary::default(),
            rows: 0,
        };
        let outcome = self.load_file(&mut loading).await;
        let outcome = outcome.map(|()| loading.total.clone());
        match self.finish_run(outcome, false, true).await? {
            Ran::Reply(Reply::Ok(done)) => Ok(Reply::Ok(Done {
                info: self.load_info(&loading),
                ..done
            })),
            Ran::Reply(reply) => Ok(reply),
            Ran::Stale => Err(ClientError::new(errcode::ER_TABLE_DEF_CHANGED, &[]).into()),
        }
    }

    /// Whether the statement may ask the client for a file.
    fn check_load(&self, load: &LoadData) -> Result<(), ClientError> {
        if !load.local {
            return Err(ClientError::not_supported(&"LOAD DATA without LOCAL"));
        }
        let is_on = self.state.worker.server.settings().is_on("local_infile");
        let can_client = self
            .client
            .capabilities()
            .contains(Capabilities::LOCAL_FILES);
        if is_on && can_client {
            Ok(())
        } else {
            Err(ClientError::new(ER_LOAD_INFILE_CAPABILITY_DISABLED, &[]))
        }
    }

    /// The type of a field: text of the named character set, or of the database's.
    fn field_type(&self, load: &LoadData) -> Result<ColumnType, ClientError> {
        let name = match &load.charset {
            Some(name) => name.text.clone(),
            None => {
                let variables = self.state.variables.borrow();
                variables
                    .settings()
                    .text("character_set_database")
                    .to_owned()
            }
        };
        let charset = Charset::from_name(&name)
            .ok_or_else(|| ClientError::new(ER_UNKNOWN_CHARACTER_SET, &[&name]))?;
        if !charset.is_of_columns() && !charset.is_single_byte() {
            // The second byte of a character may look like a separator.
            let what = format!("LOAD DATA with the character set {}", charset.name());
            return Err(ClientError::not_supported(&what));
        }
        let collation = charset.default_collation();
        Ok(ColumnType::text(TypeKind::LongText, u32::MAX, collation))
    }

    async fn load_file(&mut self, loading: &mut Loading<'_>) -> Result<(), Failed> {
        let mark = loading.mark;
        let gone = |disconnect: front::Disconnect| failed(disconnect.into(), mark);
        let path = loading.strings.sent(&loading.load.path);
        // The request takes the replies of statements before this one with it.
        self.settle_reads().await.map_err(gone)?;
        let asked = self.client.request_local_infile(&path).await;
        asked.map_err(gone)?;
        let mut outcome = Ok(());
        while let Some(piece) = self.next_piece(&mut outcome, mark).await? {
            if outcome.is_ok() {
                loading.reader.push(&piece);
                outcome = self.load_rows(loading).await;
            }
        }
        outcome?;
        loading.reader.complete();
        self.load_rows(loading).await?;
        self.end_parts(mark, loading.deadline).await
    }

    /// Returns the next piece of the file. After KILL QUERY the statement fails, and the rest of
    /// the file is read as after any failure. KILL of the connection does not wait for the client.
    /// An order is checked before the data that has arrived: a client may send the rest of its file
    /// once it knows that the order was given.
    async fn next_piece(
        &mut self,
        outcome: &mut Result<(), Failed>,
        mark: UndoMark,
    ) -> Result<Option<PacketBytes>, Failed> {
        let handle = Arc::clone(&self.state.handle);
        let read = {
            let mut piece = pin!(self.client.read_local_infile());
            let killed = pin!(handle.ordered(KillOrder::Query));
            match first_of(killed, piece.as_mut()).await {
                Either::Left(()) => {
                    first_of(pin!(handle.ordered(KillOrder::Connection)), piece).await
                }
                read @ Either::Right(_) => read,
            }
        };
        if handle.order() != KillOrder::None && outcome.is_ok() {
            *outcome = Err(failed(self.interrupted(), mark));
        }
        match read {
            Either::Left(()) => Err(failed(self.interrupted(), mark)),
            Either::Right(piece) => piece.map_err(|gone| failed(gone.into(), mark)),
        }
    }

    /// Inserts the rows that have arrived.
    async fn load_rows(&mut self, loading: &mut Loading<'_>) -> Result<(), Failed> {
        loop {
            // Each row is a run of its own, too short to yield by itself.
            if (loading.rows + 1).is_multiple_of(TURN_STATEMENT_COUNT.into()) {
                let mark = loading.mark;
                let given = self.give_way(loading.deadline).await;
                given.map_err(|stop| failed(stop, mark))?;
            }
            match loading.reader.read() {
                Read::Row(fields) => self.load_row(loading, fields).await?,
                Read::More | Read::End => return Ok(()),
                Read::TooLong => {
                    let error = ClientError::new(ER_NET_PACKET_TOO_LARGE, &[]);
                    return Err(failed(error.into(), loading.mark));
                }
            }
        }
    }

    async fn load_row(
        &mut self,
        loading: &mut Loading<'_>,
        fields: Vec<Field>,
    ) -> Result<(), Failed> {
        let plan = Rc::clone(&loading.plan);
        let row_number = loading.rows + 1;
        let wanted = plan.parameter_count;
        // MariaDB warns of each missing field, and once for all surplus ones.
        let (code, count) = match fields.len() {
            there if there < wanted => (ER_WARN_TOO_FEW_RECORDS, wanted - there),
            there => (ER_WARN_TOO_MANY_RECORDS, usize::from(wanted < there)),
        };
        for _ in 0..count {
            let warning = ClientError::new(code, &[&row_number]);
            if self.is_strict(&plan) {
                return Err(failed(warning.into(), loading.mark));
            }
            let diagnostics = Rc::clone(&self.state.diagnostics.borrow());
            diagnostics.push(Level::Warning, warning);
        }
        let mut values = Vec::with_capacity(wanted);
        for field in fields
            .into_iter()
            .map(Some)
            .chain(std::iter::repeat(None))
            .take(wanted)
        {
            values.push(match field.flatten() {
                Some(bytes) => Value::Bytes(bytes),
                None => Value::Null,
            });
        }
        for (target, value) in loading.load.columns.iter().zip(&values) {
            if let IntoTarget::User(name) = target {
                let value = value.clone();
                self.state
                    .set_user_variable(name, value, &loading.field_type)
                    .map_err(|failure| failed((*failure).into(), loading.mark))?;
            }
        }
        loading.execution.be_part_after(loading.rows);
        let mut result = ResultState::new(RowProtocol::Text, None, StatusFlags::default());
        let mut rows = Rows::Client(&mut result);
        let since = (loading.mark, loading.deadline);
        let summary = self
            .steps(
                &mut loading.execution,
                &values,
                &mut rows,
                &loading.run,
                since,
            )
            .await?;
        loading.rows += 1;
        let total = &mut loading.total;
        total.affected_rows += summary.affected_rows;
        total.matched_rows += summary.matched_rows;
        total.duplicates += summary.duplicates;
        if total.last_insert_id == 0 {
            total.last_insert_id = summary.last_insert_id;
        }
        Ok(())
    }

    fn is_strict(&self, plan: &Plan) -> bool {
        let mode = self.state.statement_options().sql_mode;
        !plan.is_ignore() && mode.is_strict()
    }

    /// The info text of the reply. A row that replaced another counts as two affected ones.
    fn load_info(&self, loading: &Loading<'_>) -> String {
        let (records, affected) = (loading.rows, loading.total.affected_rows);
        let deleted = affected.saturating_sub(records);
        let skipped = (records + deleted).saturating_sub(affected);
        let warnings = self.state.diagnostics.borrow().warnings().count();
        format!("Records: {records}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}")
    }
}

fn failed(stop: Stop, mark: UndoMark) -> Failed {
    let effect = Effect::Statement;
    Failed { stop, effect, mark }
}
