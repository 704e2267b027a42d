//! Options of tables.

use crate::ast::{Refused, TableOption};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::Kind;

impl Cursor<'_> {
    /// An option of a table, if one is next.
    pub(crate) fn table_option(&mut self) -> Parsed<Option<TableOption>> {
        let start = self.start();
        let has_default = self.is(K::Default);
        let word = self.keyword_at(usize::from(has_default));
        match word {
            Some(K::Character | K::Charset | K::Char | K::Collate) => {
                self.skip(usize::from(has_default));
                return self.charset_option().map(Some);
            }
            _ if has_default => return Err(self.fail()),
            Some(K::With) if self.keyword_at(1) == Some(K::System) => {
                self.skip(2);
                self.expect(K::Versioning)?;
                let refused = self.refused_since("SYSTEM VERSIONING", start);
                return Ok(Some(TableOption::Refused(refused)));
            }
            Some(K::Union) => {
                self.bump();
                self.eat_kind(Kind::Equal);
                self.skip_parens()?;
                return Ok(Some(TableOption::Refused(
                    self.refused_since("UNION", start),
                )));
            }
            Some(K::Data | K::Index) if self.keyword_at(1) == Some(K::Directory) => {
                let name = format!("{} DIRECTORY", self.upper(start));
                self.skip(2);
                self.eat_kind(Kind::Equal);
                let value = self.option_value()?;
                return Ok(Some(TableOption::Other { name, value }));
            }
            _ => {}
        }
        self.named_option()
    }

    fn charset_option(&mut self) -> Parsed<TableOption> {
        if self.eat(K::Collate) {
            self.eat_kind(Kind::Equal);
            return Ok(TableOption::Collate(self.charset_name()?));
        }
        if !self.eat_charset_words() {
            return Err(self.fail());
        }
        self.eat_kind(Kind::Equal);
        let charset = if self.eat(K::Default) {
            None
        } else {
            Some(self.charset_name()?)
        };
        Ok(TableOption::Charset(charset))
    }

    /// `NAME [=] value`: only after MariaDB's own names may the sign be missing.
    fn named_option(&mut self) -> Parsed<Option<TableOption>> {
        let token = self.peek();
        let has_sign = self.kind_at(1) == Kind::Equal;
        let is_own = matches!(
            token.keyword,
            Some(
                K::Engine
                    | K::Type
                    | K::AutoIncrement
                    | K::Comment
                    | K::RowFormat
                    | K::MaxRows
                    | K::MinRows
                    | K::AvgRowLength
                    | K::Password
                    | K::PackKeys
                    | K::StatsAutoRecalc
                    | K::StatsPersistent
                    | K::StatsSamplePages
                    | K::Checksum
                    | K::TableChecksum
                    | K::PageChecksum
                    | K::DelayKeyWrite
                    | K::InsertMethod
                    | K::Tablespace
                    | K::KeyBlockSize
                    | K::Connection
                    | K::Transactional
                    | K::Storage
                    | K::Sequence
            )
        );
        let is_name = Self::is_name(token) || is_own;
        if !(is_own || (is_name && has_sign)) {
            return Ok(None);
        }
        self.bump();
        self.eat_kind(Kind::Equal);
        let option = match token.keyword {
            Some(K::Engine | K::Type) => TableOption::Engine(self.ident_or_string()?),
            Some(K::AutoIncrement) => TableOption::AutoIncrement(self.unsigned()?),
            Some(K::Comment) => TableOption::Comment(self.string_literal()?),
            Some(K::RowFormat) => TableOption::RowFormat(self.option_value()?.to_ascii_uppercase()),
            _ => {
                let name = self.ident_of(token)?.text;
                TableOption::Other {
                    name,
                    value: self.option_value()?,
                }
            }
        };
        Ok(Some(option))
    }

    /// A word, a string or a number.
    pub(crate) fn option_value(&mut self) -> Parsed<String> {
        let token = self.peek();
        match token.kind {
            Kind::String | Kind::Quoted | Kind::Word => {
                self.bump();
                Ok(self.ident_of(token)?.text)
            }
            Kind::Integer | Kind::Decimal | Kind::Float | Kind::HexNumber => {
                self.bump();
                Ok(String::from_utf8_lossy(self.text(token.span)).into_owned())
            }
            _ => Err(self.fail()),
        }
    }

    /// `PARTITION BY ..`, skipped up to what can follow it.
    pub(crate) fn partition_by(&mut self) -> Parsed<Refused> {
        let start = self.start();
        self.skip(2);
        while !self.is_end()
            && !self.is_any(&[K::As, K::Select, K::Ignore, K::Replace])
            && self.kind() != Kind::Comma
        {
            if self.kind() == Kind::LeftParen {
                self.skip_parens()?;
            } else {
                self.bump();
            }
        }
        Ok(self.refused_since("PARTITION BY", start))
    }
}
