//! Parameters of statements that have no plan: each `?` in the text becomes a literal.
//!
//! `SET @a = ?`, `KILL ?`, `CREATE TABLE .. SELECT ?`: such statements are rare and short. So the
//! text is parsed again with the values in it, and the code that reads texts and trees need not
//! know parameters.

use planner::StringRules;
use settings::SqlMode;
use syntax::token::{Kind, Lexer};
use value::{Charset, ColumnType, Decimal, TypeKind, Value};

use crate::worker::source::Source;

/// How a literal must be written so that it is read back as the same value.
#[derive(Debug, Clone, Copy)]
struct Writing {
    mode: SqlMode,
    strings: StringRules,
}

/// The text with values in place of its parameters. Their numbers must be equal.
pub(crate) fn inline_parameters(
    text: &Source,
    mode: SqlMode,
    (values, types): (&[Value], &[ColumnType]),
) -> Vec<u8> {
    let strings = text.strings;
    let mut inlined = Vec::with_capacity(text.len());
    let mut lexer = Lexer::new(text, mode);
    let mut copied = 0;
    let mut parameters = values.iter().zip(types);
    loop {
        let token = lexer.next_token();
        let (start, end) = (
            stdx::to_usize(token.span.start),
            stdx::to_usize(token.span.end),
        );
        match token.kind {
            Kind::End => break,
            Kind::Parameter => {
                inlined.extend_from_slice(text.get(copied..start).unwrap_or_default());
                if let Some((value, column_type)) = parameters.next() {
                    append_literal(&mut inlined, value, column_type, Writing { mode, strings });
                }
                copied = end;
            }
            _ => {}
        }
    }
    inlined.extend_from_slice(text.get(copied..).unwrap_or_default());
    inlined
}

/// The text of a statement with values in place of the names at these offsets of the whole text.
pub(crate) fn inline_at(
    text: &Source,
    statement: syntax::Span,
    mode: SqlMode,
    places: &[syntax::Span],
    (values, types): (&[Value], &[ColumnType]),
) -> Vec<u8> {
    let strings = text.strings;
    let writing = Writing { mode, strings };
    let end = stdx::to_usize(statement.end);
    let mut inlined = Vec::with_capacity(statement.of(text).len());
    let mut copied = stdx::to_usize(statement.start);
    let mut ordered: Vec<_> = places.iter().zip(values.iter().zip(types)).collect();
    ordered.sort_by_key(|(place, _)| place.start);
    for (place, (value, column_type)) in ordered {
        let before = text.get(copied..stdx::to_usize(place.start));
        inlined.extend_from_slice(before.unwrap_or_default());
        append_literal(&mut inlined, value, column_type, writing);
        copied = stdx::to_usize(place.end);
    }
    inlined.extend_from_slice(text.get(copied..end).unwrap_or_default());
    inlined
}

/// A value as a literal of its type.
fn append_literal(out: &mut Vec<u8>, value: &Value, column_type: &ColumnType, writing: Writing) {
    let (before, after): (&[u8], &[u8]) = match value {
        Value::Null => return out.extend_from_slice(b"NULL"),
        Value::Bytes(bytes) => return append_text(out, bytes, column_type, writing),
        Value::Float(_) | Value::Double(_) => (b"", b"e0"),
        Value::Date(_) => (b"DATE'", b"'"),
        Value::Time(_) => (b"TIME'", b"'"),
        Value::DateTime(_) => (b"TIMESTAMP'", b"'"),
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) => (b"", b""),
    };
    out.extend_from_slice(before);
    let from = out.len();
    let own_type = match value {
        Value::Decimal(number) => &ColumnType::decimal(Decimal::PRECISION_MAX, number.scale()),
        _ => column_type,
    };
    value.as_ref().append_text(own_type, out);
    let written = out.get(from..).unwrap_or_default();
    if after == b"'" && written.contains(&b'.') {
        let zeros = written
            .iter()
            .rev()
            .take_while(|byte| **byte == b'0')
            .count();
        out.truncate(out.len() - zeros);
        if out.last() == Some(&b'.') {
            out.pop();
        }
    } else if after == b"e0" && written.contains(&b'e') {
        // It has an exponent already.
        return;
    }
    out.extend_from_slice(after);
}

fn append_text(out: &mut Vec<u8>, bytes: &[u8], column_type: &ColumnType, writing: Writing) {
    let Writing { mode, strings } = writing;
    let is_binary = column_type.collation == value::CollationId::BINARY
        && matches!(column_type.kind, TypeKind::LongText | TypeKind::VarChar);
    let charset = column_type.charset();
    if is_binary || !reads_back(bytes, charset, strings) {
        if charset != Charset::Binary {
            out.push(b'_');
            out.extend_from_slice(charset.name().as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(b"X'");
        for byte in bytes {
            out.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
    } else {
        out.push(b'\'');
        for &byte in bytes {
            if byte == b'\'' || (byte == b'\\' && !mode.has(SqlMode::NO_BACKSLASH_ESCAPES)) {
                out.push(byte);
            }
            out.push(byte);
        }
    }
    out.push(b'\'');
}

/// True if the bytes of a character set read back as the same string when written like this. The
/// surrounding text is UTF-8.
fn reads_back(bytes: &[u8], charset: Charset, strings: StringRules) -> bool {
    if bytes.is_ascii() {
        return true;
    }
    matches!(charset, Charset::Utf8mb3 | Charset::Utf8mb4)
        && charset == strings.collation.charset()
        && (strings.client == charset || strings.client == Charset::Latin1)
        && std::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use value::CollationId;

    use super::*;

    fn source(text: &[u8]) -> Source {
        Source::new(text, StringRules::default())
    }

    #[test]
    fn values_become_literals_and_the_rest_stays() {
        let text = &source(b"SET @a = ?, @b = '?' /* ? */, @c = ?, @d = ?, @e = ?, @f = ?");
        let values = [
            Value::Int(-5),
            Value::bytes(b"it's a \\"),
            Value::Null,
            Value::Double(1.5),
            Value::Decimal(Decimal::parse_prefix(b"2.50").value),
        ];
        let collation = CollationId::UTF8MB4_GENERAL_CI;
        let types = [
            ColumnType::new(TypeKind::BigInt),
            ColumnType::text(TypeKind::LongText, u32::MAX, collation),
            ColumnType::new(TypeKind::Null),
            ColumnType::new(TypeKind::Double),
            ColumnType::decimal(65, 30),
        ];
        let inlined = inline_parameters(text, SqlMode::default(), (&values, &types));
        let expected = "SET @a = -5, @b = '?' /* ? */, @c = 'it''s a \\\\', @d = NULL, \
                        @e = 1.5e0, @f = 2.50";
        assert_eq!(String::from_utf8_lossy(&inlined), expected);
    }

    #[test]
    fn bytes_that_are_no_text_are_written_in_hexadecimal() {
        let types = [ColumnType::text(
            TypeKind::LongText,
            u32::MAX,
            CollationId::BINARY,
        )];
        let mode = SqlMode::default();
        let inlined = inline_parameters(
            &source(b"DO ?"),
            mode,
            (&[Value::bytes(b"\x00\xff")], &types),
        );
        assert_eq!(inlined, b"DO X'00ff'");
    }

    #[test]
    fn text_of_latin1_stays_it_though_its_bytes_be_utf8() {
        let latin1 = CollationId::from_name("latin1_swedish_ci").unwrap();
        let types = [
            ColumnType::varchar(9, latin1),
            ColumnType::varchar(9, latin1),
        ];
        let values = [Value::bytes(b"\xc3\xa9"), Value::bytes(b"plain")];
        let mode = SqlMode::default();
        let inlined = inline_parameters(&source(b"DO ?, ?"), mode, (&values, &types));
        assert_eq!(inlined, b"DO _latin1 X'c3a9', 'plain'");
    }

    #[test]
    fn a_text_says_its_character_set_where_it_would_be_read_as_another() {
        let utf8 = [ColumnType::varchar(9, CollationId::UTF8MB4_GENERAL_CI)];
        let values = [Value::bytes("\u{e9}")];
        let of_latin1 = |collation| StringRules {
            client: Charset::Latin1,
            collation,
        };
        for (strings, expected) in [
            (StringRules::default(), "DO '\u{e9}'"),
            (of_latin1(CollationId::UTF8MB4_GENERAL_CI), "DO '\u{e9}'"),
            (
                of_latin1(CollationId::LATIN1_SWEDISH_CI),
                "DO _utf8mb4 X'c3a9'",
            ),
        ] {
            let text = Source::new(&b"DO ?"[..], strings);
            let inlined = inline_parameters(&text, SqlMode::default(), (&values, &utf8));
            assert_eq!(String::from_utf8_lossy(&inlined), expected, "{strings:?}");
        }
    }
}
