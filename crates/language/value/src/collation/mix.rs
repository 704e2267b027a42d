//! Which collation an operation on several texts uses: MySQL's coercibility.

use std::fmt::Display;

use errcode::{
    ER_CANT_AGGREGATE_2COLLATIONS, ER_CANT_AGGREGATE_3COLLATIONS, ER_CANT_AGGREGATE_NCOLLATIONS,
};

use super::{Charset, CollationId};
use crate::SqlCondition;

/// How strongly an expression determines the collation; the lowest value wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Coercibility {
    /// A COLLATE clause.
    Explicit = 0,
    /// A mix of two collations of which neither wins.
    None = 1,
    /// A column or a stored routine's variable.
    Implicit = 2,
    /// USER(), VERSION() and the like.
    SystemConstant = 3,
    /// A literal.
    Coercible = 4,
    /// A number or temporal value as text.
    Numeric = 5,
    /// NULL.
    Ignorable = 6,
}

impl Coercibility {
    /// The name in error 1267.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Explicit => "EXPLICIT",
            Self::None => "NONE",
            Self::Implicit => "IMPLICIT",
            Self::SystemConstant => "SYSCONST",
            Self::Coercible => "COERCIBLE",
            Self::Numeric => "NUMERIC",
            Self::Ignorable => "IGNORABLE",
        }
    }
}

/// The collation of an expression and its coercibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRule {
    /// The collation.
    pub collation: CollationId,
    /// Its strength.
    pub coercibility: Coercibility,
    /// Only ASCII can occur (numbers, temporal values, plain literals).
    pub ascii_only: bool,
}

impl TextRule {
    /// A column's rule.
    pub const fn column(collation: CollationId) -> Self {
        Self {
            collation,
            coercibility: Coercibility::Implicit,
            ascii_only: false,
        }
    }

    /// A literal's rule.
    pub fn literal(collation: CollationId, text: &[u8]) -> Self {
        Self {
            collation,
            coercibility: Coercibility::Coercible,
            ascii_only: text.is_ascii(),
        }
    }

    /// The rule of a number or temporal value as text in the connection's collation.
    pub const fn numeric(collation: CollationId) -> Self {
        Self {
            collation,
            coercibility: Coercibility::Numeric,
            ascii_only: true,
        }
    }

    /// NULL's rule.
    pub const NULL: Self = Self {
        collation: CollationId::BINARY,
        coercibility: Coercibility::Ignorable,
        ascii_only: true,
    };

    /// The rule of an operation on both, or `None` if MySQL refuses the mix.
    fn with(self, other: Self) -> Option<Self> {
        let ascii_only = self.ascii_only && other.ascii_only;
        if self.collation == other.collation {
            let coercibility = self.coercibility.min(other.coercibility);
            return Some(Self {
                coercibility,
                ascii_only,
                ..self
            });
        }
        let binary = CollationId::BINARY;
        if self.collation == binary || other.collation == binary {
            let wins = self.coercibility.cmp(&other.coercibility);
            let winner = match wins {
                std::cmp::Ordering::Less => self,
                std::cmp::Ordering::Greater => other,
                std::cmp::Ordering::Equal if self.collation == binary => self,
                std::cmp::Ordering::Equal => other,
            };
            return Some(Self {
                ascii_only,
                ..winner
            });
        }
        self.with_text(other).map(|winner| Self {
            ascii_only,
            ..winner
        })
    }

    fn with_text(self, other: Self) -> Option<Self> {
        let (mine, its) = (self.collation.charset(), other.collation.charset());
        if mine == its {
            if self.coercibility != other.coercibility {
                return Some(if self.coercibility < other.coercibility {
                    self
                } else {
                    other
                });
            }
            if self.coercibility == Coercibility::Explicit {
                return None;
            }
            // Of two collations of one character set, the binary one is safe.
            if self.collation == self.collation.binary_twin() {
                return Some(self);
            }
            if other.collation == other.collation.binary_twin() {
                return Some(other);
            }
            let collation = self.collation.binary_twin();
            return Some(Self {
                collation,
                coercibility: Coercibility::None,
                ..self
            });
        }
        if other.coercibility > self.coercibility && converts(other, mine) {
            return Some(self);
        }
        if self.coercibility > other.coercibility && converts(self, its) {
            return Some(other);
        }
        if self.coercibility == other.coercibility {
            if holds(mine, its) || (other.ascii_only && !self.ascii_only) {
                return Some(self);
            }
            if holds(its, mine) || (self.ascii_only && !other.ascii_only) {
                return Some(other);
            }
            if other.ascii_only {
                return Some(self);
            }
        } else if holds(mine, its) && self.coercibility > other.coercibility {
            // The weaker one has every character of the stronger one.
            return (other.coercibility != Coercibility::Explicit).then_some(self);
        } else if holds(its, mine) && other.coercibility > self.coercibility {
            return (self.coercibility != Coercibility::Explicit).then_some(other);
        }
        None
    }
}

/// True if the text of a rule can be converted to the character set without loss.
fn converts(rule: TextRule, charset: Charset) -> bool {
    rule.ascii_only
        || holds(charset, rule.collation.charset())
        // A literal is converted, and refused only if it does not fit.
        || rule.coercibility >= Coercibility::Coercible
}

/// True if `outer` has every character of `inner`.
fn holds(outer: Charset, inner: Charset) -> bool {
    match outer {
        Charset::Utf8mb4 => true,
        Charset::Utf8mb3 => inner != Charset::Utf8mb4,
        Charset::Latin1 | Charset::Client(_) => inner == Charset::Ascii,
        Charset::Ascii | Charset::Binary => false,
    }
}

/// The collation that an operation on these texts uses. `operation` is its name in the error.
///
/// # Errors
/// 1267, 1270 or 1271 (by the number of texts) if the mix is illegal.
pub fn mix(rules: &[TextRule], operation: &str) -> Result<TextRule, SqlCondition> {
    let mut result = rules.first().copied().unwrap_or(TextRule::NULL);
    for rule in rules.iter().skip(1) {
        match result.with(*rule) {
            Some(mixed) => result = mixed,
            None => return Err(illegal_mix(rules, operation)),
        }
    }
    Ok(result)
}

/// As [`mix`], for comparisons: a mix without a winner is refused, too.
///
/// # Errors
/// As [`mix`].
pub fn mix_to_compare(rules: &[TextRule], operation: &str) -> Result<TextRule, SqlCondition> {
    let mixed = mix(rules, operation)?;
    if mixed.coercibility == Coercibility::None && rules.len() > 1 {
        return Err(illegal_mix(rules, operation));
    }
    Ok(mixed)
}

/// Error 1267, 1270 or 1271, by the number of texts.
pub fn illegal_mix(rules: &[TextRule], operation: &str) -> SqlCondition {
    let code = match rules.len() {
        2 => ER_CANT_AGGREGATE_2COLLATIONS,
        3 => ER_CANT_AGGREGATE_3COLLATIONS,
        _ => return SqlCondition::new(ER_CANT_AGGREGATE_NCOLLATIONS, &[&operation]),
    };
    let names = rules
        .iter()
        .flat_map(|rule| [rule.collation.name(), rule.coercibility.name()]);
    let names: Vec<&str> = names.chain([operation]).collect();
    let arguments: Vec<&dyn Display> = names.iter().map(|name| name as &dyn Display).collect();
    SqlCondition::new(code, &arguments)
}
