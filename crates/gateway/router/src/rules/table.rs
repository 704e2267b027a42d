//! [`TableName`]: a table that a rule is about.

use std::str::FromStr;

/// A table as a text may name it. Upper and lower case are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The database that the text has to write in front of it. `None`: any or none.
    database: Option<String>,
    table: String,
}

/// A text is neither `table` nor `database.table`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of a table: expected `table` or `database.table`")]
pub struct TableNameError(String);

impl TableName {
    /// Whether it is what a text names, `qualifier` being the name in front of its dot.
    pub(super) fn is(&self, qualifier: Option<&[u8]>, name: &[u8]) -> bool {
        let is_database = |database: &String| {
            qualifier.is_some_and(|it| it.eq_ignore_ascii_case(database.as_bytes()))
        };
        name.eq_ignore_ascii_case(self.table.as_bytes())
            && self.database.as_ref().is_none_or(is_database)
    }
}

impl std::fmt::Display for TableName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(database) = &self.database {
            write!(out, "{database}.")?;
        }
        out.write_str(&self.table)
    }
}

impl FromStr for TableName {
    type Err = TableNameError;

    fn from_str(text: &str) -> Result<TableName, TableNameError> {
        let (database, table) = match text.split_once('.') {
            Some((database, table)) => (Some(database), table),
            None => (None, text),
        };
        if table.is_empty() || table.contains('.') || database == Some("") {
            return Err(TableNameError(text.to_owned()));
        }
        Ok(TableName {
            database: database.map(str::to_owned),
            table: table.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for text in ["orders", "shop.orders"] {
            assert_eq!(text.parse::<TableName>().unwrap().to_string(), text);
        }
        for text in ["", ".", "shop.", ".orders", "a.b.c"] {
            let told = text.parse::<TableName>().unwrap_err().to_string();
            let expected =
                format!("`{text}` is no name of a table: expected `table` or `database.table`");
            assert_eq!(told, expected);
        }
    }
}
