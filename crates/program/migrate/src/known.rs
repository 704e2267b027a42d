//! Settings that are not translated, and what is to be said of each: by tables.

use crate::note::Kind;

/// What is known of a setting that has nothing to be translated to.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its name; with `*` at the end, the begin of its name.
    pub(crate) name: &'static str,
    /// Values with which nothing is to be said: `*` stands for all.
    pub(crate) harmless: &'static [&'static str],
    pub(crate) kind: Kind,
    /// What is said with another value.
    pub(crate) text: &'static str,
}

/// A gateway does the same, or has no need of it.
pub(crate) const fn same(name: &'static str) -> Known {
    known(name, &["*"], Kind::Differs, "")
}

/// A gateway has nothing like it.
pub(crate) const fn left_out(name: &'static str, text: &'static str) -> Known {
    known(name, &[], Kind::LeftOut, text)
}

/// A gateway does it in another way.
pub(crate) const fn differs(name: &'static str, text: &'static str) -> Known {
    known(name, &[], Kind::Differs, text)
}

pub(crate) const fn known(
    name: &'static str,
    harmless: &'static [&'static str],
    kind: Kind,
    text: &'static str,
) -> Known {
    Known {
        name,
        harmless,
        kind,
        text,
    }
}

/// What is said of a setting with this value, by the first line about it; `None`: nothing.
pub(crate) fn judge(tables: &[&[Known]], name: &str, value: &str) -> Option<(Kind, &'static str)> {
    let mut all = tables.iter().copied().flatten();
    let Some(known) = all.find(|it| it.is_about(name)) else {
        return Some((Kind::Unknown, "the translator does not know this setting"));
    };
    // Both 0 and OFF say no.
    let is_alike = |it: &str| boolean(it).is_some() && boolean(it) == boolean(value);
    let is_harmless = |it: &&str| *it == "*" || it.eq_ignore_ascii_case(value) || is_alike(it);
    if known.harmless.iter().any(is_harmless) {
        return None;
    }
    Some((known.kind, known.text))
}

impl Known {
    fn is_about(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == self.name,
        }
    }
}

/// A value in small letters, and words for yes and no as `true` and `false`.
pub(crate) fn plain(value: &str) -> String {
    match boolean(value) {
        Some(true) => "true".to_owned(),
        Some(false) => "false".to_owned(),
        None => value.trim().to_ascii_lowercase(),
    }
}

/// What a word for yes or no says.
pub(crate) fn boolean(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Some(true),
        "false" | "off" | "no" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_begins_of_names_decide() {
        let table = [
            same("a"),
            known("b", &["false", ""], Kind::ToDo, "do"),
            known("weight", &["1"], Kind::LeftOut, "none"),
            left_out("c_*", "no c"),
        ];
        assert_eq!(judge(&[&table], "a", "x"), None);
        assert_eq!(judge(&[&table], "b", "OFF"), None);
        assert_eq!(judge(&[&table], "b", "0"), None);
        assert_eq!(judge(&[&table], "b", ""), None);
        assert_eq!(judge(&[&table], "weight", "1"), None);
        assert!(judge(&[&table], "weight", "10").is_some());
        assert_eq!(judge(&[&table], "b", "yes"), Some((Kind::ToDo, "do")));
        let begun = judge(&[&table], "c_ttl", "1");
        assert_eq!(begun, Some((Kind::LeftOut, "no c")));
        assert_eq!(judge(&[&table], "d", "1").unwrap().0, Kind::Unknown);
    }
}
