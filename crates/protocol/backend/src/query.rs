//! Runs statements whose results are small and read as a whole: what monitors ask.

use link::Limit;
use wire::{CommandByte, OkPacket};

use errcode::ClientError;

use crate::error::RequestError;
use crate::message::Message;
use crate::server::Server;

/// What a query may cost.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// Until when the reply has to be over.
    pub until: Limit,
    /// Most bytes of all its rows.
    pub bytes_max: usize,
}

/// One result of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It went well, and there are no rows.
    Done {
        /// Rows that were changed.
        affected_rows: u64,
        /// The first automatic value that was generated, or 0.
        last_insert_id: u64,
    },
    /// Rows.
    Rows(Rows),
    /// It failed; no result follows.
    Failed(ClientError),
}

/// A result set of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows; `None` is NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Server {
    /// Runs statements and reads all of their results. A file that the server asks for is sent
    /// empty. If the rows are more than the limit, the reply is given up, and the server can only
    /// be closed.
    pub async fn query(
        &mut self,
        text: &[u8],
        limits: QueryLimits,
    ) -> Result<Vec<Outcome>, RequestError> {
        self.send(CommandByte::QUERY, text).await?;
        let mut outcomes = Vec::new();
        let mut rows = Rows::default();
        let mut total_bytes = 0_usize;
        while let Some(received) = self.receive(limits.until).await? {
            total_bytes += received.bytes().len();
            if limits.bytes_max < total_bytes {
                let limit = limits.bytes_max;
                return Err(RequestError::TooLarge { limit });
            }
            match received.message()? {
                Message::Ok(ok) => outcomes.push(done(&ok)),
                Message::Error(error) => outcomes.push(Outcome::Failed(error.to_client_error())),
                Message::FileRequest(_) => self.send_file(b"").await?,
                Message::Column(column) => {
                    let name = String::from_utf8_lossy(column.name).into_owned();
                    rows.columns.push(name);
                }
                Message::TextRow(mut reader) => {
                    let mut row = Vec::with_capacity(rows.columns.len());
                    while !reader.is_done() {
                        row.push(reader.next_value()?.map(<[u8]>::to_vec));
                    }
                    rows.rows.push(row);
                }
                Message::RowsEnd(_) => outcomes.push(Outcome::Rows(std::mem::take(&mut rows))),
                Message::Head(_)
                | Message::ColumnsEnd(_)
                | Message::BinaryRow(_)
                | Message::Prepared(_)
                | Message::Parameter(_)
                | Message::Text(_)
                | Message::Authentication(_) => {}
            }
        }
        Ok(outcomes)
    }
}

fn done(ok: &OkPacket<'_>) -> Outcome {
    Outcome::Done {
        affected_rows: ok.affected_rows,
        last_insert_id: ok.last_insert_id,
    }
}
