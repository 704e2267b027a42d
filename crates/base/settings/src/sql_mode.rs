//! `sql_mode`: how strict the server is, and how it reads texts.

/// The words of `sql_mode`, a bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SqlMode(u64);

/// All words in the order of their bits, which is that in which the variable shows them.
pub(crate) const WORDS: [&str; 35] = [
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "IGNORE_BAD_TABLE_OPTIONS",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "POSTGRESQL",
    "ORACLE",
    "MSSQL",
    "DB2",
    "MAXDB",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "NO_FIELD_OPTIONS",
    "MYSQL323",
    "MYSQL40",
    "ANSI",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "NO_AUTO_CREATE_USER",
    "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "EMPTY_STRING_IS_NULL",
    "SIMULTANEOUS_ASSIGNMENT",
    "TIME_ROUND_FRACTIONAL",
];

/// Words that would change results and are not built: they are refused. In this order: Oracle's
/// dialect; a CHAR is read with its blanks; an empty string is NULL; assignments of an UPDATE read
/// the old values; fractions of seconds are rounded, not cut.
pub(crate) const WORDS_NOT_BUILT: [&str; 5] = [
    "ORACLE",
    "PAD_CHAR_TO_FULL_LENGTH",
    "EMPTY_STRING_IS_NULL",
    "SIMULTANEOUS_ASSIGNMENT",
    "TIME_ROUND_FRACTIONAL",
];

impl SqlMode {
    /// The type name `REAL` means `FLOAT`.
    pub const REAL_AS_FLOAT: Self = Self::flag("REAL_AS_FLOAT");
    /// `||` joins strings and binds tightly.
    pub const PIPES_AS_CONCAT: Self = Self::flag("PIPES_AS_CONCAT");
    /// Double quotes make names, not strings.
    pub const ANSI_QUOTES: Self = Self::flag("ANSI_QUOTES");
    /// Blanks may stand between a function's name and its parenthesis.
    pub const IGNORE_SPACE: Self = Self::flag("IGNORE_SPACE");
    /// Columns outside of aggregates have to be grouped by.
    pub const ONLY_FULL_GROUP_BY: Self = Self::flag("ONLY_FULL_GROUP_BY");
    /// A difference is signed.
    pub const NO_UNSIGNED_SUBTRACTION: Self = Self::flag("NO_UNSIGNED_SUBTRACTION");
    /// 0 does not ask for the next AUTO_INCREMENT value.
    pub const NO_AUTO_VALUE_ON_ZERO: Self = Self::flag("NO_AUTO_VALUE_ON_ZERO");
    /// A backslash in a string is a backslash.
    pub const NO_BACKSLASH_ESCAPES: Self = Self::flag("NO_BACKSLASH_ESCAPES");
    /// A value that does not fit is an error; see [`SqlMode::is_strict`].
    pub const STRICT_TRANS_TABLES: Self = Self::flag("STRICT_TRANS_TABLES");
    /// The same: all tables are transactional.
    pub const STRICT_ALL_TABLES: Self = Self::flag("STRICT_ALL_TABLES");
    /// Dates have a month and a day.
    pub const NO_ZERO_IN_DATE: Self = Self::flag("NO_ZERO_IN_DATE");
    /// `0000-00-00` is no date.
    pub const NO_ZERO_DATE: Self = Self::flag("NO_ZERO_DATE");
    /// A day up to 31 is valid in each month.
    pub const ALLOW_INVALID_DATES: Self = Self::flag("ALLOW_INVALID_DATES");
    /// A division by zero warns, or fails in a strict mode.
    pub const ERROR_FOR_DIVISION_BY_ZERO: Self = Self::flag("ERROR_FOR_DIVISION_BY_ZERO");
    /// `NOT` binds like `!`.
    pub const HIGH_NOT_PRECEDENCE: Self = Self::flag("HIGH_NOT_PRECEDENCE");
    /// The words that are refused, because they would change results and are not built.
    pub const NOT_BUILT: Self = {
        let mut flags = Self(0);
        let mut place = 0;
        while place < WORDS_NOT_BUILT.len() {
            flags = flags.with(Self::flag(WORDS_NOT_BUILT[place]));
            place += 1;
        }
        flags
    };
    /// Oracle's dialect.
    pub const ORACLE: Self = Self::flag("ORACLE");
    /// GRANT creates no account without a password.
    pub const NO_AUTO_CREATE_USER: Self = Self::flag("NO_AUTO_CREATE_USER");

    /// MariaDB's default, as far as it changes the meaning of values: strict, and errors for
    /// division by zero.
    pub const DEFAULT: Self =
        Self(Self::STRICT_TRANS_TABLES.0 | Self::ERROR_FOR_DIVISION_BY_ZERO.0);

    /// The flags of a value that `sql_mode` was set to: words in capitals, by commas. Words that
    /// stand for several bring none of them: a value has those beside it ([`SqlMode::expanded`]).
    pub fn of(text: &str) -> Self {
        let place = |word: &str| WORDS.iter().position(|known| *known == word);
        let places = text.split(',').filter_map(place);
        Self(places.fold(0, |bits, place| bits | 1 << place))
    }

    /// `text` with the words that ANSI and TRADITIONAL stand for. An unknown word stays.
    pub fn expanded(text: &str) -> String {
        let mut words: Vec<String> = Vec::new();
        let given = text.split(',').map(str::trim);
        for word in given.filter(|word| !word.is_empty()) {
            let word = word.to_ascii_uppercase();
            let brought = match word.as_str() {
                "ANSI" => Self::ANSI_WORDS,
                "TRADITIONAL" => Self::TRADITIONAL_WORDS,
                _ => Self(0),
            };
            words.extend(brought.words().map(str::to_owned));
            words.push(word);
        }
        words.join(",")
    }

    /// The words that are set, in the order of their bits.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let bits = self.0;
        let is_set = move |(place, _): &(usize, &str)| bits >> place & 1 == 1;
        WORDS
            .into_iter()
            .enumerate()
            .filter(is_set)
            .map(|(_, word)| word)
    }

    /// True if all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// True if a value that does not fit is an error.
    pub const fn is_strict(self) -> bool {
        self.has(Self::STRICT_TRANS_TABLES) || self.has(Self::STRICT_ALL_TABLES)
    }

    /// Those of these flags that are also among the others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// These flags and those.
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// The flags of these bits, which are in the order of MariaDB's own.
    pub const fn of_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// A bit for each word.
    pub const fn bits(self) -> u64 {
        self.0
    }

    const ANSI_WORDS: Self = Self::REAL_AS_FLOAT
        .with(Self::PIPES_AS_CONCAT)
        .with(Self::ANSI_QUOTES)
        .with(Self::IGNORE_SPACE);
    const TRADITIONAL_WORDS: Self = Self::STRICT_TRANS_TABLES
        .with(Self::STRICT_ALL_TABLES)
        .with(Self::NO_ZERO_IN_DATE)
        .with(Self::NO_ZERO_DATE)
        .with(Self::ERROR_FOR_DIVISION_BY_ZERO)
        .with(Self::NO_AUTO_CREATE_USER)
        .with(Self::flag("NO_ENGINE_SUBSTITUTION"));

    /// The flag of a word, for constants.
    const fn flag(word: &str) -> Self {
        let mut place = 0;
        while place < WORDS.len() {
            if is_equal(WORDS[place].as_bytes(), word.as_bytes()) {
                return Self(1 << place);
            }
            place += 1;
        }
        panic!("`sql_mode` has no such word")
    }
}

/// `==`, which cannot be called at compile time.
const fn is_equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut place = 0;
    while place < left.len() {
        if left[place] != right[place] {
            return false;
        }
        place += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_flags_of_its_words() {
        let mode = SqlMode::of("ANSI_QUOTES,STRICT_ALL_TABLES,NOTHING");
        assert!(mode.has(SqlMode::ANSI_QUOTES) && mode.is_strict());
        assert!(!mode.has(SqlMode::IGNORE_SPACE) && !SqlMode::default().is_strict());
        let words: Vec<_> = mode.words().collect();
        assert_eq!(words, ["ANSI_QUOTES", "STRICT_ALL_TABLES"]);
        assert_eq!(SqlMode::of(""), SqlMode::default());
        assert_eq!(SqlMode::of_bits(mode.bits()), mode);
        // As a server's binary log has it.
        let logged = SqlMode::of_bits(1 << 20 | 4);
        assert_eq!(logged, SqlMode::of("ANSI_QUOTES,NO_BACKSLASH_ESCAPES"));
        assert_eq!(SqlMode::of(&WORDS.join(",")).words().count(), WORDS.len());
    }

    #[test]
    fn words_for_several_are_expanded() {
        let ansi = SqlMode::expanded(" ansi , nothing");
        assert_eq!(
            ansi,
            "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI,NOTHING"
        );
        let strict = SqlMode::of(&SqlMode::expanded("TRADITIONAL"));
        assert!(strict.has(SqlMode::NO_ZERO_DATE.with(SqlMode::ERROR_FOR_DIVISION_BY_ZERO)));
        assert_eq!(strict.words().count(), 8);
        assert_eq!(SqlMode::expanded(""), "");
    }

    #[test]
    fn the_default_is_that_of_the_setting() {
        let (_, setting) = crate::find("sql_mode").expect("a setting");
        assert!(SqlMode::of(setting.default).has(SqlMode::DEFAULT));
    }
}
