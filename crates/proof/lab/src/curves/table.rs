//! Reads the lines of a CSV file. The first line names the columns.
//!
//! Columns are found by name, so lines that are older than a column can be read. Values have no
//! quotes, and no commas.

use std::fmt::Display;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

/// One line of the file.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    names: &'a [&'a str],
    values: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn ensure_columns(&self) -> Result<()> {
        ensure!(
            self.values.len() <= self.names.len(),
            "has more values than columns"
        );
        Ok(())
    }

    /// The value of a column.
    pub(crate) fn value(&self, name: &str) -> Result<&'a str> {
        let place = self.names.iter().position(|it| *it == name);
        let found = place.and_then(|place| self.values.get(place));
        found.copied().with_context(|| format!("has no {name}"))
    }

    /// The value of a column, parsed.
    pub(crate) fn parse<T>(&self, name: &str) -> Result<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        let parsed = self.value(name)?.parse();
        parsed.map_err(|error: T::Err| anyhow::anyhow!("{name}: {error}"))
    }

    /// The value of a column that has measured numbers: finite, and at least 0.
    pub(crate) fn measured(&self, name: &str) -> Result<f64> {
        let value: f64 = self.parse(name)?;
        ensure!(
            value.is_finite() && 0.0 <= value,
            "{name}: {value} was not measured"
        );
        Ok(value)
    }
}

/// Reads the whole file, which errors call `file`.
pub(crate) fn read<T>(
    file: &str,
    text: &str,
    read_row: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines
        .next()
        .with_context(|| format!("the first line of {file} names columns"))?
        .split(',')
        .collect();
    let mut read = Vec::new();
    for (index, line) in lines.enumerate() {
        let row = Row {
            names: &names,
            values: line.split(',').collect(),
        };
        // The first line has number 1.
        let place = || format!("line {} of {file}", index + 2);
        row.ensure_columns().with_context(place)?;
        read.push(read_row(&row).with_context(place)?);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_both(text: &str) -> Result<Vec<(u32, f64)>> {
        read("a.csv", text, |row| {
            Ok((row.parse("clients")?, row.measured("us")?))
        })
    }

    #[test]
    fn columns_are_found_by_name() {
        let lines = read_both("us,clients,new\n2.5,64\n0,1,7\n").unwrap();
        assert_eq!(lines, [(64, 2.5), (1, 0.0)]);
    }

    #[test]
    fn damaged_lines_are_named() {
        let error = |line: &str| {
            let text = format!("clients,us\n1,1\n{line}\n");
            format!("{:#}", read_both(&text).unwrap_err())
        };
        assert_eq!(error("64"), "line 3 of a.csv: has no us");
        assert_eq!(
            error(""),
            "line 3 of a.csv: clients: cannot parse integer from empty string"
        );
        assert_eq!(
            error("many,1"),
            "line 3 of a.csv: clients: invalid digit found in string"
        );
        assert_eq!(
            error("1,2,3"),
            "line 3 of a.csv: has more values than columns"
        );
        for value in ["NaN", "inf", "-1"] {
            let told = error(&format!("1,{value}"));
            assert!(told.ends_with("was not measured"), "{told}");
        }
        assert_eq!(
            read_both("").unwrap_err().to_string(),
            "the first line of a.csv names columns"
        );
    }
}
