//! CAST and CONVERT: the type that they name.

use errcode::{ER_M_BIGGER_THAN_D, ER_TOO_BIG_PRECISION, ER_TOO_BIG_SCALE, ER_UNKNOWN_DATA_TYPE};
use expression::{Expression, failure};
use syntax::ast::{self, Expr, ExprKind};
use value::{CollationId, ColumnType, Decimal, TypeKind};

use super::call::{called, collation_named};
use super::dated::as_moment;
use super::literal::{charset_named, literal_as_number};
use super::term::Bound;
use super::{Binder, error};
use crate::{PlanError, is_reference_type, not_supported};

impl Binder<'_> {
    pub(super) fn cast(&mut self, value: &Expr, to: &ast::CastType) -> Bound {
        check_digits(value, &self.text(value.span), to)?;
        let mut value = self.term(value)?;
        let target = self.cast_type(to, &value)?;
        if target.kind.is_number() {
            value = literal_as_number(value);
        }
        // An integer is read from the text, as in MariaDB.
        let is_exact = target.kind.is_number() && !target.kind.is_integer();
        if is_exact || target.kind.is_temporal() {
            value = as_moment(value);
        }
        let argument = self.argument(&value);
        let bound = function::bind_cast(&argument, target, &self.bind_env()).map_err(failure)?;
        Ok(called(bound, vec![value]))
    }

    fn cast_type(&self, to: &ast::CastType, value: &Expression) -> Result<ColumnType, PlanError> {
        use ast::CastType as T;
        let fsp = |digits: &Option<u32>| {
            u8::try_from(digits.unwrap_or(0))
                .ok()
                .filter(|digits| *digits <= 6)
                .unwrap_or(6)
        };
        let chars = self.argument(value).text_chars();
        Ok(match to {
            T::Binary(length) => {
                let bytes = chars.saturating_mul(4).min(65_535);
                // With a given length, the value is padded to it.
                match length {
                    Some(length) => {
                        ColumnType::text(TypeKind::Binary, *length, CollationId::BINARY)
                    }
                    None => ColumnType::text(TypeKind::VarBinary, bytes, CollationId::BINARY),
                }
            }
            T::Char {
                length,
                charset,
                collation,
            } => {
                let collation = match (collation, charset) {
                    (Some(collation), _) => collation_named(&collation.text)?,
                    (None, Some(charset)) => charset_named(&charset.text)?.default_collation(),
                    (None, None) => self.settings.collation,
                };
                ColumnType::varchar(length.unwrap_or(chars), collation)
            }
            T::Date => ColumnType::new(TypeKind::Date),
            T::Time(digits) => ColumnType::temporal(TypeKind::Time, fsp(digits)),
            T::Datetime(digits) => ColumnType::temporal(TypeKind::DateTime, fsp(digits)),
            T::Signed => ColumnType::new(TypeKind::BigInt),
            T::Unsigned => ColumnType::unsigned(TypeKind::BigInt),
            T::Decimal(size) => {
                // DECIMAL(0) is DECIMAL.
                let size = size.filter(|(precision, _)| *precision != 0);
                let (precision, scale) = size.unwrap_or((10, 0));
                let small = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
                ColumnType::decimal(small(precision), small(scale))
            }
            T::Float => ColumnType::new(TypeKind::Float),
            T::Double(_) => ColumnType::new(TypeKind::Double),
            T::Other(name) if is_reference_type(&name.text) => {
                let name = name.text.to_uppercase();
                return Err(not_supported(&name));
            }
            T::Other(name) => return Err(error(ER_UNKNOWN_DATA_TYPE, &[&name.text])),
        })
    }
}

/// Error 1425, 1426 or 1427 if a type of CAST has more digits than there are.
fn check_digits(value: &Expr, text: &str, to: &ast::CastType) -> Result<(), PlanError> {
    use ast::CastType as T;
    let (number, limit, code) = match to {
        T::Time(Some(digits)) | T::Datetime(Some(digits)) => (*digits, 6, ER_TOO_BIG_PRECISION),
        T::Decimal(Some((precision, scale))) => {
            let precision_max = u32::from(Decimal::PRECISION_MAX);
            let scale_max = u32::from(Decimal::SCALE_MAX);
            if *precision <= precision_max && *scale <= scale_max && precision < scale {
                return Err(error(ER_M_BIGGER_THAN_D, &[&""]));
            }
            match precision_max < *precision {
                true => (*precision, precision_max, ER_TOO_BIG_PRECISION),
                false => (*scale, scale_max, ER_TOO_BIG_SCALE),
            }
        }
        _ => return Ok(()),
    };
    if number <= limit {
        return Ok(());
    }
    let shown = match &value.kind {
        ExprKind::Literal(ast::Literal::String { value, .. }) => {
            String::from_utf8_lossy(value).into_owned()
        }
        _ => text.to_owned(),
    };
    Err(error(code, &[&shown, &limit]))
}
