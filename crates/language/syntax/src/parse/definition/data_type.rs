//! Types: of columns, and of casts.

use settings::SqlMode;

use crate::ast::{CastType, DataType, Ident, TypeName};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::Kind;

impl Cursor<'_> {
    /// The target of `CAST`.
    pub(crate) fn cast_type(&mut self) -> Parsed<CastType> {
        let token = self.peek();
        let Some(word) = token.keyword else {
            return Ok(CastType::Other(self.ident()?));
        };
        self.bump();
        Ok(match word {
            K::Binary => CastType::Binary(self.paren_length()?),
            K::Char | K::Character | K::Varchar | K::Nchar => self.cast_char(word)?,
            K::Date => CastType::Date,
            K::Time => CastType::Time(self.paren_length()?),
            K::Datetime => CastType::Datetime(self.paren_length()?),
            K::Signed => {
                self.eat_any(&[K::Integer, K::Int]);
                CastType::Signed
            }
            K::Unsigned => {
                self.eat_any(&[K::Integer, K::Int]);
                CastType::Unsigned
            }
            K::Int | K::Integer => CastType::Signed,
            K::Decimal | K::Dec | K::Numeric => CastType::Decimal(self.paren_precision()?),
            K::Float => CastType::Float,
            K::Double => {
                self.eat(K::Precision);
                CastType::Double(self.paren_precision()?)
            }
            _ if Self::is_name(token) => CastType::Other(self.ident_of(token)?),
            _ => return Err(self.fail()),
        })
    }

    fn cast_char(&mut self, word: K) -> Parsed<CastType> {
        let length = self.paren_length()?;
        let charset = if word == K::Nchar {
            Some(Ident::new("utf8"))
        } else {
            self.charset_clause()?
        };
        let collation = if self.eat(K::Collate) {
            Some(self.charset_name()?)
        } else {
            None
        };
        Ok(CastType::Char {
            length,
            charset,
            collation,
        })
    }

    /// `(n)`.
    fn paren_length(&mut self) -> Parsed<Option<u32>> {
        if !self.eat_kind(Kind::LeftParen) {
            return Ok(None);
        }
        let length = self.length()?;
        self.expect_kind(Kind::RightParen)?;
        Ok(Some(length))
    }

    /// `(m)` or `(m, d)`.
    fn paren_precision(&mut self) -> Parsed<Option<(u32, u32)>> {
        if !self.eat_kind(Kind::LeftParen) {
            return Ok(None);
        }
        let precision = self.length()?;
        let scale = if self.eat_kind(Kind::Comma) {
            self.length()?
        } else {
            0
        };
        self.expect_kind(Kind::RightParen)?;
        Ok(Some((precision, scale)))
    }

    /// `CHARACTER SET c`, `CHARSET c`, and the words `ASCII`, `UNICODE`, `BYTE`.
    pub(crate) fn charset_clause(&mut self) -> Parsed<Option<Ident>> {
        if self.eat_all(&[K::Character, K::Set])
            || self.eat_all(&[K::Char, K::Set])
            || self.eat(K::Charset)
        {
            return Ok(Some(self.charset_name()?));
        }
        Ok(match self.eat_any(&[K::Ascii, K::Unicode, K::Byte]) {
            Some(K::Ascii) => Some(Ident::new("latin1")),
            Some(K::Unicode) => Some(Ident::new("ucs2")),
            Some(_) => Some(Ident::new("binary")),
            None => None,
        })
    }

    /// The type of a column, with its sign and character set.
    pub(crate) fn data_type(&mut self) -> Parsed<DataType> {
        let token = self.peek();
        let Some(word) = token.keyword else {
            let mut other = plain(TypeName::Other(self.ident()?));
            other.length = self.paren_length()?;
            return Ok(other);
        };
        if let Some(name) = number_type(word, self.mode.has(SqlMode::REAL_AS_FLOAT)) {
            self.bump();
            return self.number_type_tail(word, name);
        }
        if let Some(name) = string_type(word) {
            self.bump();
            return self.string_type_tail(word, name);
        }
        self.other_type(word)
    }

    fn number_type_tail(&mut self, word: K, name: TypeName) -> Parsed<DataType> {
        if word == K::Double {
            self.eat(K::Precision);
        }
        let mut data_type = plain(name);
        if matches!(word, K::Bool | K::Boolean) {
            data_type.length = Some(1);
            return Ok(data_type);
        }
        if self.eat_kind(Kind::LeftParen) {
            data_type.length = Some(self.length()?);
            if self.eat_kind(Kind::Comma) {
                data_type.decimals = Some(self.length()?);
            }
            self.expect_kind(Kind::RightParen)?;
        }
        while let Some(attribute) = self.eat_any(&[K::Signed, K::Unsigned, K::Zerofill]) {
            data_type.unsigned |= attribute != K::Signed;
            data_type.zerofill |= attribute == K::Zerofill;
        }
        Ok(data_type)
    }

    fn string_type_tail(&mut self, word: K, mut name: TypeName) -> Parsed<DataType> {
        let is_national = matches!(word, K::National | K::Nchar | K::Nvarchar);
        if word == K::National {
            match self.eat_any(&[K::Char, K::Character, K::Varchar, K::Varcharacter]) {
                Some(K::Varchar | K::Varcharacter) => name = TypeName::Varchar,
                Some(_) => {}
                None => return Err(self.fail()),
            }
        }
        if name == TypeName::Char
            && self
                .eat_any(&[K::Varying, K::Varchar, K::Varcharacter])
                .is_some()
        {
            name = TypeName::Varchar;
        }
        if word == K::Long {
            name = self.long_type();
        }
        let needs_length = matches!(name, TypeName::Varchar | TypeName::Varbinary);
        let mut data_type = plain(name);
        if matches!(data_type.name, TypeName::Enum | TypeName::Set) {
            data_type.members = self.paren_list(Self::joined)?;
        } else {
            data_type.length = self.paren_length()?;
        }
        if needs_length && data_type.length.is_none() {
            return Err(self.fail());
        }
        if is_national {
            data_type.charset = Some(Ident::new("utf8"));
        }
        self.string_attributes(&mut data_type)?;
        Ok(data_type)
    }

    /// A member of `ENUM` or `SET`.
    fn joined(&mut self) -> Parsed<Vec<u8>> {
        match self.literal()? {
            Some(crate::ast::Literal::String { value, .. }) => Ok(value),
            Some(crate::ast::Literal::Hex { value, .. }) => Ok(value),
            _ => Err(self.fail()),
        }
    }

    /// `LONG`, `LONG VARCHAR`, `LONG VARBINARY`.
    fn long_type(&mut self) -> TypeName {
        if self.eat(K::Varbinary) {
            return TypeName::MediumBlob;
        }
        if self.eat_any(&[K::Char, K::Character]).is_some() {
            self.eat(K::Varying);
        } else {
            self.eat_any(&[K::Varchar, K::Varcharacter]);
        }
        TypeName::MediumText
    }

    fn string_attributes(&mut self, data_type: &mut DataType) -> Parsed<()> {
        let is_binary = matches!(
            data_type.name,
            TypeName::Binary
                | TypeName::Varbinary
                | TypeName::TinyBlob
                | TypeName::Blob
                | TypeName::MediumBlob
                | TypeName::LongBlob
        );
        if is_binary {
            return Ok(());
        }
        data_type.binary = self.eat(K::Binary);
        if let Some(charset) = self.charset_clause()? {
            data_type.charset = Some(charset);
        }
        data_type.binary |= self.eat(K::Binary);
        if self.eat(K::Collate) {
            data_type.collation = Some(self.charset_name()?);
        }
        Ok(())
    }

    fn other_type(&mut self, word: K) -> Parsed<DataType> {
        let name = match word {
            K::Date => TypeName::Date,
            K::Time => TypeName::Time,
            K::Datetime => TypeName::Datetime,
            K::Timestamp => TypeName::Timestamp,
            K::Year => TypeName::Year,
            K::Bit => TypeName::Bit,
            _ => {
                let name = self.ident()?;
                let mut other = plain(TypeName::Other(name));
                other.length = self.paren_length()?;
                return Ok(other);
            }
        };
        self.bump();
        let mut data_type = plain(name);
        data_type.length = self.paren_length()?;
        if data_type.name == TypeName::Year {
            while self
                .eat_any(&[K::Unsigned, K::Zerofill, K::Signed])
                .is_some()
            {}
        }
        Ok(data_type)
    }
}

/// A type without anything else.
pub(crate) fn plain(name: TypeName) -> DataType {
    DataType {
        name,
        length: None,
        decimals: None,
        unsigned: false,
        zerofill: false,
        charset: None,
        collation: None,
        binary: false,
        members: Vec::new(),
    }
}

fn number_type(word: K, real_as_float: bool) -> Option<TypeName> {
    Some(match word {
        K::Tinyint | K::Int1 | K::Bool | K::Boolean => TypeName::TinyInt,
        K::Smallint | K::Int2 => TypeName::SmallInt,
        K::Mediumint | K::Int3 | K::Middleint => TypeName::MediumInt,
        K::Int | K::Integer | K::Int4 => TypeName::Int,
        K::Bigint | K::Int8 => TypeName::BigInt,
        K::Decimal | K::Dec | K::Numeric | K::Fixed | K::Number => TypeName::Decimal,
        K::Real if real_as_float => TypeName::Float,
        K::Float | K::Float4 => TypeName::Float,
        K::Double | K::Float8 | K::Real => TypeName::Double,
        _ => return None,
    })
}

fn string_type(word: K) -> Option<TypeName> {
    Some(match word {
        K::Char | K::Character | K::Nchar | K::National => TypeName::Char,
        K::Varchar | K::Varcharacter | K::Nvarchar | K::Varchar2 => TypeName::Varchar,
        K::Binary => TypeName::Binary,
        K::Varbinary => TypeName::Varbinary,
        K::Tinytext => TypeName::TinyText,
        K::Text => TypeName::Text,
        K::Mediumtext | K::Long => TypeName::MediumText,
        K::Longtext | K::Clob => TypeName::LongText,
        K::Tinyblob => TypeName::TinyBlob,
        K::Blob => TypeName::Blob,
        K::Mediumblob => TypeName::MediumBlob,
        K::Longblob => TypeName::LongBlob,
        K::Enum => TypeName::Enum,
        K::Set => TypeName::Set,
        K::Json => TypeName::Json,
        _ => return None,
    })
}
