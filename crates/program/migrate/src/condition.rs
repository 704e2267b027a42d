//! Conditions of rules: patterns of statements, and addresses of clients.

use std::sync::Arc;

use router::{Rule, Rules, RulesError, Ruling, What, Who};

/// The longest pattern that is translated. Those that people write have some dozen characters.
pub(crate) const PATTERN_BYTES_MAX: usize = 4096;

/// What a pattern of the other program sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sees {
    /// A statement with `?` in place of literals.
    Digest,
    /// A statement as it was sent.
    Text,
}

/// How a pattern of the other program takes letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Letters {
    /// Upper and lower case are alike.
    AnyCase,
    /// They differ.
    SameCase,
}

/// A pattern that a rule can have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    /// What a person has to know of it.
    pub(crate) differs: Option<&'static str>,
}

/// The pattern for a rule, or why there is none.
pub(crate) fn pattern(text: &str, sees: Sees, letters: Letters) -> Result<Pattern, String> {
    if PATTERN_BYTES_MAX < text.len() {
        return Err(format!(
            "its pattern has more than {PATTERN_BYTES_MAX} bytes"
        ));
    }
    if sees == Sees::Text && looks_for_literal(text) {
        return Err(
            "its pattern looks for a literal, and patterns of a gateway see `?` in the \
                    place of literals"
                .to_owned(),
        );
    }
    let pattern = match letters {
        Letters::AnyCase => text.to_owned(),
        Letters::SameCase => format!("(?-i:{text})"),
    };
    if let Some(reason) = mistake(&pattern) {
        return Err(format!(
            "its pattern cannot be used ({reason}): there are no references back, and nothing \
             that looks ahead or behind"
        ));
    }
    let differs = match sees {
        Sees::Text => Some(
            "the pattern sees `?` in the place of literals, no comments, and one blank between \
             words; `plateau digest` shows what it sees",
        ),
        Sees::Digest if text.contains(['=', '<', '>', ',']) => Some(
            "blanks around signs stay as the client sends them: a pattern with `a=` does not find \
             `a =`; `plateau digest` shows what it sees",
        ),
        Sees::Digest => None,
    };
    Ok(Pattern {
        text: pattern,
        differs,
    })
}

/// Why the router does not take a pattern.
fn mistake(pattern: &str) -> Option<String> {
    let rule = Rule {
        name: Arc::from(""),
        who: Who::default(),
        what: What {
            pattern: Some(pattern.to_owned()),
            ..What::default()
        },
        ruling: Ruling::default(),
    };
    let errors = Rules::new(vec![rule]).err()?;
    let reason = errors.into_iter().find_map(|it| match it {
        RulesError::Pattern { reason, .. } => Some(reason),
        RulesError::TooMany | RulesError::PatternsTooLarge(_) => None,
    });
    Some(reason.unwrap_or_else(|| "it is too large".to_owned()))
}

/// Whether a pattern has quotes or digits that stand for themselves.
fn looks_for_literal(pattern: &str) -> bool {
    let mut is_escaped = false;
    // In braces are counts, in brackets sets.
    let mut is_inside = None;
    for c in pattern.chars() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match (c, is_inside) {
            ('\\', _) => is_escaped = true,
            (close, Some(expected)) if close == expected => is_inside = None,
            (_, Some(_)) => {}
            ('{', None) => is_inside = Some('}'),
            ('[', None) => is_inside = Some(']'),
            ('\'' | '"' | '0'..='9', None) => return true,
            _ => {}
        }
    }
    false
}

/// The addresses that clients may come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// All of them.
    Anywhere,
    /// A network, as rules have them.
    Network(String),
}

/// An address, or one with `%` for its last parts; `None` if a rule cannot have it.
pub(crate) fn origin(text: &str) -> Option<Origin> {
    let text = text.trim();
    if text.is_empty() || text == "%" {
        return Some(Origin::Anywhere);
    }
    let is_address = |it: &str| it.parse::<std::net::IpAddr>().is_ok();
    if is_address(text) {
        return Some(Origin::Network(text.to_owned()));
    }
    let is_rest = |part: &&str| *part == "%";
    let given: Vec<&str> = text.split('.').take_while(|it| !is_rest(it)).collect();
    let rest = text.split('.').skip(given.len());
    if given.is_empty() || 3 < given.len() || !rest.clone().all(|it| it == "%") {
        return None;
    }
    let rest_count = 4 - given.len();
    if !(1..=rest_count).contains(&rest.count()) {
        return None;
    }
    let address = [&given[..], &vec!["0"; rest_count]].concat().join(".");
    is_address(&address).then(|| Origin::Network(format!("{address}/{}", 8 * given.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, sees: Sees) -> Result<Pattern, String> {
        pattern(text, sees, Letters::AnyCase)
    }

    #[test]
    fn patterns_are_taken_if_a_rule_can_have_them() {
        let taken = of(r"^SELECT .* FOR UPDATE$", Sees::Digest).unwrap();
        assert_eq!(taken.text, r"^SELECT .* FOR UPDATE$");
        assert_eq!(taken.differs, None);
        assert!(of(r"id=\?", Sees::Digest).unwrap().differs.is_some());
        let cased = pattern("^A", Sees::Digest, Letters::SameCase).unwrap();
        assert_eq!(cased.text, "(?-i:^A)");
        assert!(of("^INSERT", Sees::Text).unwrap().differs.is_some());
        for (text, sees) in [
            (r"id = 5\b", Sees::Text),
            ("name = 'x'", Sees::Text),
            (r"^SELECT (?!.*FOR UPDATE)", Sees::Digest),
            (r"(a)\1", Sees::Digest),
            ("(", Sees::Digest),
        ] {
            assert!(of(text, sees).is_err(), "{text}");
        }
        // Counts and sets are no literals.
        assert!(of(r"^\s{0,5}select [a-z0-9']+", Sees::Text).is_ok());
    }

    #[test]
    fn patterns_have_a_limit() {
        for bytes in [PATTERN_BYTES_MAX - 1, PATTERN_BYTES_MAX] {
            assert!(of(&"a".repeat(bytes), Sees::Digest).is_ok());
        }
        assert!(of(&"a".repeat(PATTERN_BYTES_MAX + 1), Sees::Digest).is_err());
    }

    #[test]
    fn percent_signs_stand_for_the_last_parts() {
        let network = |text: &str| Some(Origin::Network(text.to_owned()));
        assert_eq!(origin("%"), Some(Origin::Anywhere));
        assert_eq!(origin("10.1.2.3"), network("10.1.2.3"));
        assert_eq!(origin("::1"), network("::1"));
        assert_eq!(origin("10.%"), network("10.0.0.0/8"));
        assert_eq!(origin("192.168.%.%"), network("192.168.0.0/16"));
        assert_eq!(origin("192.168.7.%"), network("192.168.7.0/24"));
        for text in [
            "db1",
            "10.%.3.4",
            "%.1",
            "10.1.2.3.%",
            "10.1.2.%.%",
            "300.%",
        ] {
            assert_eq!(origin(text), None, "{text}");
        }
    }
}
