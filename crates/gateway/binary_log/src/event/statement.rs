//! [`Statement`]: a statement in the log, by its text.
//!
//! ```text
//! thread u32, seconds u32, length of the database's name u8, error u16, length of settings u16,
//! [of LOAD DATA: file u32, from u32, to u32, duplicates u8], settings, database, 0x00, text
//! ```
//!
//! Settings are a number each with a value of its own form. Only the first few are looked at.

use wire::{Cursor, Malformed};

/// See the module's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statement<'a> {
    /// As it was sent.
    pub text: &'a [u8],
    /// Its `sql_mode`, in the server's bits.
    pub sql_mode: Option<u64>,
    /// The number of a collation of its `character_set_client`.
    pub collation: Option<u16>,
}

/// Numbers of settings.
const FLAGS: u8 = 0;
const SQL_MODE: u8 = 1;
const AUTO_INCREMENT: u8 = 3;
const CHARACTER_SETS: u8 = 4;
const CATALOG: u8 = 6;

/// Bytes of what LOAD DATA has more.
const LOAD_BYTES: usize = 13;

impl<'a> Statement<'a> {
    pub(super) fn decode(body: Cursor<'a>) -> Result<Statement<'a>, Malformed> {
        decode(body, 0)
    }

    /// Of LOAD DATA, whose text the server has written.
    pub(super) fn decode_load(body: Cursor<'a>) -> Result<Statement<'a>, Malformed> {
        decode(body, LOAD_BYTES)
    }
}

fn decode(mut body: Cursor<'_>, more: usize) -> Result<Statement<'_>, Malformed> {
    body.u32("thread of a statement")?;
    body.u32("time of a statement")?;
    let database_length = body.u8("database of a statement")?;
    body.u16("error of a statement")?;
    let settings_length = body.u16("settings of a statement")?;
    body.bytes(more, "file of a statement")?;
    let settings = body.bytes(usize::from(settings_length), "settings of a statement")?;
    body.bytes(usize::from(database_length) + 1, "database of a statement")?;
    let mut statement = Statement {
        text: body.rest(),
        ..Statement::default()
    };
    read_settings(settings, &mut statement)?;
    Ok(statement)
}

fn read_settings(settings: &[u8], statement: &mut Statement<'_>) -> Result<(), Malformed> {
    const WHAT: &str = "setting of a statement";
    let mut rest = Cursor::new(settings);
    while let Some(number) = rest.peek() {
        rest.u8(WHAT)?;
        match number {
            FLAGS => _ = rest.u32(WHAT)?,
            SQL_MODE => statement.sql_mode = Some(rest.u64(WHAT)?),
            CATALOG => {
                let length = rest.u8(WHAT)?;
                rest.bytes(usize::from(length), WHAT)?;
            }
            AUTO_INCREMENT => _ = rest.u32(WHAT)?,
            CHARACTER_SETS => {
                statement.collation = Some(rest.u16(WHAT)?);
                rest.u32(WHAT)?;
            }
            // What is behind one that is not known cannot be found.
            _ => return Ok(()),
        }
    }
    Ok(())
}
