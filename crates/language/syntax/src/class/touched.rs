//! The names in a text, and the tables that it changes.
//!
//! No grammar is followed to find what a query reads: each name in its text may be a table's. What
//! a change writes stands at its beginning, and only a few forms are known.

use std::borrow::Cow;

use settings::SqlMode;

use super::words::Words;
use crate::keyword::{Class as Reserve, Keyword as K};
use crate::token::{Kind, Token, name_value};

/// All names in a text, without their quotes: of tables, columns, databases, aliases. Names of
/// functions are among them, reserved words are not.
pub fn names(text: &[u8], mode: SqlMode) -> impl Iterator<Item = Cow<'_, [u8]>> {
    qualified_names(text, mode).map(|(_, name)| name)
}

/// The same, each with the name in front of its dot: `d.t.c` is `d`, `t` of `d` and `c` of `t`.
pub fn qualified_names(
    text: &[u8],
    mode: SqlMode,
) -> impl Iterator<Item = (Option<Cow<'_, [u8]>>, Cow<'_, [u8]>)> {
    let mut words = Words::new(text, mode);
    let mut qualifier = None;
    std::iter::from_fn(move || {
        loop {
            let kind = words.token.kind;
            if kind == Kind::End {
                return None;
            }
            let found = value(&words);
            words.bump();
            if let Some(name) = found {
                let of = qualifier.take();
                let has_dot = words.token.kind == Kind::Dot;
                qualifier = has_dot.then(|| name.clone());
                return Some((of, name));
            }
            if kind != Kind::Dot {
                qualifier = None;
            }
        }
    })
}

/// Words that MariaDB reserves, and MySQL does not.
const FREE_IN_MYSQL: [K; 4] = [K::Offset, K::Returning, K::PageChecksum, K::CurrentRole];

/// The name that the current token is.
pub(super) fn value<'a>(words: &Words<'a>) -> Option<Cow<'a, [u8]>> {
    // MySQL does not reserve all words that MariaDB does.
    let is_reserved = |token: Token| {
        let keyword = token.keyword.filter(|it| !FREE_IN_MYSQL.contains(it));
        keyword.is_some_and(|it| it.class() == Reserve::Reserved)
    };
    match words.token.kind {
        Kind::Quoted => Some(name_value(words.text())),
        Kind::Name => Some(Cow::Borrowed(words.text())),
        Kind::Word if !is_reserved(words.token) => Some(Cow::Borrowed(words.text())),
        _ => None,
    }
}

/// The names among which the tables are that one statement changes by itself. `None` if they are
/// not known: each statement but plain INSERT, REPLACE, UPDATE, DELETE, TRUNCATE and LOAD DATA.
/// What triggers, foreign keys and routines do is not in the text.
#[must_use]
pub fn changed_tables(text: &[u8], mode: SqlMode) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut words = Words::new(text, mode);
    let verb = words.keyword()?;
    words.bump();
    match verb {
        K::Insert | K::Replace => {
            let modifiers = [
                K::LowPriority,
                K::Delayed,
                K::HighPriority,
                K::Ignore,
                K::Into,
            ];
            skip(&mut words, &modifiers);
            one(&mut words)
        }
        K::Update => {
            skip(&mut words, &[K::LowPriority, K::Ignore]);
            until(&mut words, &[K::Set])
        }
        K::Delete => {
            skip(&mut words, &[K::LowPriority, K::Quick, K::Ignore]);
            let ends = [K::Where, K::Order, K::Limit, K::Returning];
            until(&mut words, &ends)
        }
        K::Truncate => {
            words.take(K::Table);
            one(&mut words)
        }
        K::Load => {
            while !(words.is(K::Into) && words.ahead().keyword == Some(K::Table)) {
                if words.is_at_end() {
                    return None;
                }
                words.bump();
            }
            words.bump();
            words.bump();
            one(&mut words)
        }
        _ => None,
    }
}

/// Whether a text has UPDATE, DELETE, INSERT or REPLACE where that is no function.
#[must_use]
pub fn has_verb_of_change(text: &[u8], mode: SqlMode) -> bool {
    let mut words = Words::new(text, mode);
    let verbs = [K::Update, K::Delete, K::Insert, K::Replace];
    while words.token.kind != Kind::End {
        let is_verb = words.keyword().is_some_and(|it| verbs.contains(&it));
        if is_verb && words.ahead().kind != Kind::LeftParen {
            return true;
        }
        words.bump();
    }
    false
}

fn skip(words: &mut Words<'_>, known: &[K]) {
    while words.keyword().is_some_and(|it| known.contains(&it)) {
        words.bump();
    }
}

/// The table whose name is next, perhaps behind that of its database.
fn one<'a>(words: &mut Words<'a>) -> Option<Vec<Cow<'a, [u8]>>> {
    let mut name = value(words)?;
    words.bump();
    while words.take_sign(Kind::Dot) {
        name = any_value(words)?;
        words.bump();
    }
    Some(vec![name])
}

/// Behind a dot, reserved words are names, too.
fn any_value<'a>(words: &Words<'a>) -> Option<Cow<'a, [u8]>> {
    match words.token.kind {
        Kind::Quoted => Some(name_value(words.text())),
        Kind::Name | Kind::Word => Some(Cow::Borrowed(words.text())),
        _ => None,
    }
}

/// All names up to one of these words, outside of parentheses, or up to the end.
fn until<'a>(words: &mut Words<'a>, ends: &[K]) -> Option<Vec<Cow<'a, [u8]>>> {
    let mut names = Vec::new();
    let mut depth = 0_u32;
    let mut is_behind_name = false;
    loop {
        let is_end = depth == 0 && words.keyword().is_some_and(|it| ends.contains(&it));
        if is_end || words.is_at_end() {
            return (!names.is_empty()).then_some(names);
        }
        match words.token.kind {
            Kind::LeftParen => depth = depth.saturating_add(1),
            Kind::RightParen => depth = depth.saturating_sub(1),
            Kind::Invalid => return None,
            Kind::Dot if is_behind_name => {
                // Before it stood a database, or a table that stands alone elsewhere.
                words.bump();
                names.pop();
                names.extend(any_value(words));
            }
            // `.t`, as some write for a table of the default database.
            Kind::Dot => return None,
            _ => {
                let name = value(words);
                is_behind_name = name.is_some();
                names.extend(name);
                words.bump();
                continue;
            }
        }
        is_behind_name = matches!(words.token.kind, Kind::Word | Kind::Name | Kind::Quoted);
        words.bump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: Vec<Cow<'_, [u8]>>) -> Vec<String> {
        let text = |name: Cow<'_, [u8]>| String::from_utf8_lossy(&name).into_owned();
        names.into_iter().map(text).collect()
    }

    fn names_in(text: &str, mode: SqlMode) -> Vec<String> {
        texts(names(text.as_bytes(), mode).collect())
    }

    #[test]
    fn each_name_in_a_text_may_be_a_table() {
        let plain = SqlMode::default();
        for (text, expected) in [
            ("SELECT c FROM t WHERE id = 1", "c t id"),
            (
                "SELECT `a``b`.`select` FROM d.`x y` AS z",
                "a`b select d x y z",
            ),
            ("SELECT 'a', \"b\", @c, 1 FROM t /* d */ -- e", "t"),
            ("SELECT /*!50000 a, */ b FROM t", "a b t"),
            ("WITH w AS (TABLE t) SELECT * FROM w, (u, v)", "w t w u v"),
            ("SELECT * FROM t.select", "t select"),
            ("SELECT * FROM a FORCE INDEX (i) PARTITION (p0)", "a i p0"),
            ("", ""),
        ] {
            let expected: Vec<&str> = expected.split(' ').collect();
            let found = names_in(text, plain);
            assert_eq!(found.join(" "), expected.join(" "), "{text}");
        }
        let ansi = SqlMode::default().with(SqlMode::ANSI_QUOTES);
        assert_eq!(names_in("SELECT \"a\"\"b\" FROM t", ansi), ["a\"b", "t"]);
    }

    #[test]
    fn what_a_change_writes_stands_at_its_beginning() {
        for (text, expected) in [
            ("INSERT INTO t VALUES (1)", Some("t")),
            ("insert ignore d.t (a, b) SELECT c FROM u", Some("t")),
            ("INSERT LOW_PRIORITY t SET a = 1", Some("t")),
            ("REPLACE DELAYED INTO `a b` VALUES (1)", Some("a b")),
            ("INSERT INTO d.order VALUES (1)", Some("order")),
            ("UPDATE t SET a = 1 WHERE b = 2", Some("t")),
            (
                "UPDATE IGNORE t AS x, d.u JOIN v ON x.a = u.b SET x.a = 1",
                Some("t x u v a b"),
            ),
            ("UPDATE (SELECT a FROM u SET) t SET b = 1", Some("a u t")),
            ("DELETE FROM t WHERE a = 1", Some("t")),
            (
                "DELETE QUICK a, d.b FROM a JOIN b WHERE a.x = b.x",
                Some("a b a b"),
            ),
            ("DELETE FROM t", Some("t")),
            ("DELETE FROM t ORDER BY a LIMIT 1", Some("t")),
            ("TRUNCATE TABLE d.t", Some("t")),
            ("TRUNCATE t", Some("t")),
            (
                "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t (a)",
                Some("t"),
            ),
            ("LOAD DATA LOCAL INFILE 'f'", None),
            ("SELECT 1", None),
            ("CALL p", None),
            ("INSERT", None),
            ("INSERT INTO 'a' VALUES (1)", None),
            ("INSERT INTO t.", None),
            ("UPDATE SET a = 1", None),
            ("DROP TABLE t", None),
            ("UPDATE a, .b SET a.x = 1", None),
            ("UPDATE t, offset SET offset.a = 1", Some("t offset")),
            ("WITH a AS (SELECT 1) DELETE FROM t", None),
            ("", None),
        ] {
            let found = changed_tables(text.as_bytes(), SqlMode::default());
            let found = found.map(|names| texts(names).join(" "));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
