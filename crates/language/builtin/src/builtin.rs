//! A row of the table: [`Builtin`].

use crate::function::{AggregateFunction, Function, SessionFunction};

/// A function or an operator.
#[derive(Debug)]
pub struct Builtin {
    /// Who answers a call.
    pub meaning: Meaning,
    /// Fewest arguments.
    pub least: usize,
    /// Most arguments; `usize::MAX` if only the parser limits them.
    pub most: usize,
    /// Its names in upper case; messages show the first unless a statement wrote another.
    pub names: &'static [Name],
    /// Arguments that are used as numbers, so that `0x41` is 65 there and not `A`.
    pub numbers: Places,
    /// How it takes texts that are dates.
    pub dated: Dated,
    /// What it does with geometries.
    pub geometries: Geometries,
    /// It takes dates and times: a value of ENUM, SET, BIT or YEAR means nothing without its type.
    pub reads_dates: bool,
    /// Its result is a date or a time, and a text if its argument is one.
    pub makes_dated_texts: bool,
    /// Two evaluations over the same row may differ.
    pub is_volatile: bool,
    /// Literals among its arguments are types, names or precisions, or determine its type. So a
    /// plan holds for them alone.
    pub pins_literals: bool,
}

/// Who answers a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The function library.
    Library(Function),
    /// The session.
    Session(SessionFunction),
    /// An aggregate of the executor.
    Aggregate(AggregateFunction),
    /// `NAME_CONST`: the planner takes its literal.
    NameConst,
    /// The parser makes something else of it, as CONVERT is a cast.
    Syntax,
    /// MariaDB has it, and this server lacks it (error 1235).
    Missing,
}

/// One name of a function.
#[derive(Debug)]
pub struct Name {
    /// In upper case.
    pub text: &'static str,
    /// How a call by this name is written.
    pub grammar: Grammar,
    /// It is built in only if `(` follows directly (MariaDB, `IGNORE_SPACE`).
    pub is_adjacent: bool,
}

/// How a call is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// Plain arguments. A wrong number of them is found when the call is bound (error 1582).
    Plain,
    /// Plain arguments, whose number belongs to MariaDB's grammar: a wrong one is a syntax error.
    Counted,
    /// With or without parentheses, which may hold a precision: `CURRENT_TIMESTAMP(6)`.
    Bare,
    /// Parentheses, which may hold a precision: `NOW(6)`.
    Precision,
    /// `SUBSTRING(a FROM 2 FOR 3)`, or plain arguments.
    Substring,
    /// `SETVAL(sequence, ..)`.
    Sequence,
    /// `a + b`, `a IN (b)`: there is no call of that name.
    Operator,
    /// `JSON_TABLE(..)`: a table.
    Table,
    /// `COUNT(*)`, `SUM(DISTINCT a)`, ...
    Aggregate,
    /// `CAST(a AS t)`.
    Cast,
    /// `CONVERT(a, t)`, `CONVERT(a USING c)`.
    Convert,
    /// `EXTRACT(unit FROM a)`.
    Extract,
    /// `TRIM(LEADING a FROM b)`.
    Trim,
    /// `POSITION(a IN b)`.
    Position,
    /// `DATE_ADD(a, INTERVAL n unit)`.
    DateAdd,
    /// `DATE_SUB(a, INTERVAL n unit)`.
    DateSub,
    /// As [`Grammar::DateAdd`], or `ADDDATE(a, days)`.
    AddDays,
    /// As [`Grammar::DateSub`], or `SUBDATE(a, days)`.
    SubDays,
    /// `TIMESTAMPADD(unit, n, a)`.
    TimestampAdd,
    /// `TIMESTAMPDIFF(unit, a, b)`.
    TimestampDiff,
    /// `GET_FORMAT(DATE, a)`.
    GetFormat,
    /// `CHAR(a, b USING c)`.
    Char,
    /// `WEIGHT_STRING(a AS CHAR(n))`.
    WeightString,
    /// `MOD(a, b)`, which is `a % b`.
    Modulo,
    /// `NEXTVAL(sequence)`.
    NextValue,
    /// `LASTVAL(sequence)`.
    PreviousValue,
}

impl Grammar {
    /// True if a name and plain arguments are a call of the function.
    #[must_use]
    pub const fn is_plain_call(self) -> bool {
        matches!(
            self,
            Self::Plain
                | Self::Counted
                | Self::Bare
                | Self::Precision
                | Self::Substring
                | Self::Sequence
                | Self::Modulo
        )
    }

    /// True if the arguments have a syntax of their own.
    #[must_use]
    pub const fn has_own_syntax(self) -> bool {
        !matches!(
            self,
            Self::Plain | Self::Counted | Self::Bare | Self::Operator | Self::Table
        )
    }
}

/// Some of the places of arguments: bit n is argument n, and the last bit all that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places(pub(crate) u8);

impl Places {
    /// True if the argument at `index` is among them.
    #[must_use]
    pub const fn has(self, index: usize) -> bool {
        let bit = if index < 7 { index } else { 7 };
        self.0 >> bit & 1 == 1
    }
}

/// How a function takes texts that are dates: the results of date arithmetic on texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dated {
    /// As texts.
    Texts,
    /// As the dates and times that they are.
    Moments,
    /// As doubles.
    Doubles,
    /// As numbers if another argument is a number.
    NumbersBesideNumbers,
    /// As doubles if another argument is a number.
    DoublesBesideNumbers,
}

/// What a function does with geometries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Geometries {
    /// It takes their bytes, or checks them when its type is inferred.
    Taken,
    /// It takes them among geometries and texts (error 4078).
    Compared,
    /// It refuses them beside an interval (error 4078).
    BesideInterval,
    /// An operator of two numbers refuses them (error 4078), of one, too (error 4079).
    Arithmetic,
    /// It refuses them (error 4079).
    Refused,
}

/// No limit but the parser's.
pub(crate) const ANY: usize = usize::MAX;

/// All arguments.
pub(crate) const ALL: Places = Places(0xFF);
/// The first argument.
pub(crate) const FIRST: Places = Places(1);
/// All arguments but the first.
pub(crate) const REST: Places = Places(0xFE);
/// The second argument.
pub(crate) const SECOND: Places = Places(2);
/// The third argument.
pub(crate) const THIRD: Places = Places(4);
/// The second and the third argument.
pub(crate) const SECOND_AND_THIRD: Places = Places(6);

impl Builtin {
    /// A function that takes texts and geometries as they are, and depends on its arguments alone.
    pub(crate) const fn new(
        meaning: Meaning,
        least: usize,
        most: usize,
        names: &'static [Name],
    ) -> Self {
        assert!(!names.is_empty(), "a function has a name");
        assert!(least <= most, "a call has a number of arguments");
        Self {
            meaning,
            least,
            most,
            names,
            numbers: Places(0),
            dated: Dated::Texts,
            geometries: Geometries::Taken,
            reads_dates: false,
            makes_dated_texts: false,
            is_volatile: false,
            pins_literals: false,
        }
    }

    /// These arguments are used as numbers.
    pub(crate) const fn numbers(mut self, numbers: Places) -> Self {
        self.numbers = numbers;
        self
    }

    /// It takes dated texts in that way.
    pub(crate) const fn dated(mut self, dated: Dated) -> Self {
        self.dated = dated;
        self
    }

    /// It takes numbers alone.
    pub(crate) const fn numeric(self) -> Self {
        self.numbers(ALL).refuses_geometries()
    }

    /// It takes dates and times.
    pub(crate) const fn of_dates(mut self) -> Self {
        self.reads_dates = true;
        self.refuses_geometries()
    }

    /// It adds an interval to a date.
    pub(crate) const fn adds_interval(mut self) -> Self {
        self = self.of_dates().makes_dated_texts();
        self.geometries = Geometries::BesideInterval;
        self
    }

    pub(crate) const fn makes_dated_texts(mut self) -> Self {
        self.makes_dated_texts = true;
        self
    }

    /// An operator of numbers.
    pub(crate) const fn arithmetic(mut self) -> Self {
        self.geometries = Geometries::Arithmetic;
        self
    }

    /// Its arguments are compared, or have one common type.
    pub(crate) const fn compares(mut self) -> Self {
        self.geometries = Geometries::Compared;
        self
    }

    pub(crate) const fn refuses_geometries(mut self) -> Self {
        self.geometries = Geometries::Refused;
        self
    }

    pub(crate) const fn volatile(mut self) -> Self {
        self.is_volatile = true;
        self
    }

    pub(crate) const fn pinned(mut self) -> Self {
        self.pins_literals = true;
        self
    }

    /// The first name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.names[0].text
    }
}

/// A name whose arguments are written in that way.
pub(crate) const fn own(text: &'static str, grammar: Grammar) -> Name {
    Name {
        text,
        grammar,
        is_adjacent: false,
    }
}

pub(crate) const fn plain(text: &'static str) -> Name {
    own(text, Grammar::Plain)
}

pub(crate) const fn counted(text: &'static str) -> Name {
    own(text, Grammar::Counted)
}

pub(crate) const fn bare(text: &'static str) -> Name {
    own(text, Grammar::Bare)
}

pub(crate) const fn operator(text: &'static str) -> Name {
    own(text, Grammar::Operator)
}

pub(crate) const fn aggregate(text: &'static str) -> Name {
    own(text, Grammar::Aggregate)
}

/// A name that is built in only if `(` follows directly.
pub(crate) const fn adjacent(name: Name) -> Name {
    Name {
        is_adjacent: true,
        ..name
    }
}
