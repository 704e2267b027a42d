//! `plateau init gateway`: writes a settings file with comments, to begin with.
//!
//! Names, texts and defaults come from [`settings::SECTIONS`], so the file says what the program
//! does. With `--from` it is [translated](from) from a file of MaxScale or ProxySQL.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use settings::{Field, FieldKind, Kind, Presence, SECTIONS, Section};

pub(crate) mod from;

/// What the file is to say.
pub(crate) struct Gateway<'a> {
    /// `HOST:PORT` of each server.
    pub(crate) servers: &'a [String],
    /// The account of the monitor.
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
}

/// Servers of a file whose writer knows none yet.
const EXAMPLES: [&str; 2] = ["10.0.0.1:3306", "10.0.0.2:3306"];

/// Columns of a comment.
const COLUMNS: usize = 96;

/// Writes the file, unless it exists, and says what comes next.
pub(crate) fn run(gateway: &Gateway<'_>, file: &Path) -> Result<()> {
    let shown = file.display();
    write(file, &text(gateway))?;
    println!("wrote {shown}; it has the password of the account, so keep it to yourself");
    println!("on the primary: {}", account(gateway));
    println!("{}", next(file));
    Ok(())
}

/// Writes a file that is not there yet.
fn write(file: &Path, text: &str) -> Result<()> {
    let shown = file.display();
    let mut options = OpenOptions::new();
    // It has a password.
    options.write(true).create_new(true).mode(0o600);
    let opened = options.open(file);
    let mut out = match opened {
        Ok(out) => out,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            bail!("{shown} exists already; name another file with `--file`")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot create {shown}")),
    };
    let written = out.write_all(text.as_bytes());
    written.with_context(|| format!("cannot write {shown}"))
}

/// What to do with the file.
fn next(file: &Path) -> String {
    let shown = file.display();
    format!("then: plateau --config {shown} --check-config, and plateau --config {shown}")
}

/// The statements that create the account.
fn account(gateway: &Gateway<'_>) -> String {
    let user = gateway.user;
    format!(
        "CREATE USER {user}@'%' IDENTIFIED BY '<its password>'; GRANT SLAVE MONITOR ON *.* TO \
         {user}@'%'; GRANT SELECT ON mysql.* TO {user}@'%';"
    )
}

fn text(gateway: &Gateway<'_>) -> String {
    let mut text = String::new();
    comment(
        &mut text,
        "Settings of a gateway. `plateau --check-config` names mistakes; docs/settings.md has all \
         settings, docs/gateway.md says what a gateway does.",
    );
    text += START;
    let examples = EXAMPLES.map(str::to_owned);
    let servers = match gateway.servers {
        [] => &examples[..],
        servers => servers,
    };
    for (place, address) in servers.iter().enumerate() {
        let name = format!("db{place}");
        let given = [("name", name.as_str()), ("address", address.as_str())];
        let comments = if place == 0 {
            Comments::Each
        } else {
            Comments::None
        };
        section(&mut text, "server", &given, comments);
    }
    let given = [("user", gateway.user), ("password", gateway.password)];
    section(&mut text, "monitor", &given, Comments::Each);
    let given = [("name", "all"), ("router", "read-write-split")];
    section(&mut text, "service", &given, Comments::Each);
    text += "\n# More sections, whose fields are in docs/settings.md:\n";
    for name in ["listener", "rule", "cache", "query_log", "tracing", "admin"] {
        let section = declared(name);
        comment(
            &mut text,
            &format!("{}: {}", section.header(), section.text),
        );
    }
    text
}

/// The settings above all sections. At level `info` the log has each change of a server.
const START: &str = r#"
# Where clients connect.
listen = "127.0.0.1:4006"
# What is logged to standard error; `info` has the role of each server.
log = "info"
# Where /metrics and /health answer over HTTP, to everybody who reaches this address.
# metrics_listen = "127.0.0.1:9104"
"#;

fn declared(name: &str) -> &'static Section {
    let found = SECTIONS.iter().find(|section| section.name == name);
    found.expect("it is declared")
}

/// How much is said of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comments {
    /// What it does, and each field: of the first of its kind.
    Each,
    /// Only its values.
    None,
}

/// Appends a section with these values.
fn section(text: &mut String, name: &str, given: &[(&str, &str)], comments: Comments) {
    let is_first = comments == Comments::Each;
    let section = declared(name);
    text.push('\n');
    if is_first {
        comment(text, section.text);
    }
    let _ = writeln!(text, "{}", section.header());
    for field in section.fields {
        let value = given.iter().find(|(name, _)| *name == field.name);
        match (value, is_first) {
            (Some((_, value)), true) => {
                comment(text, field.text);
                let _ = writeln!(text, "{} = {}", field.name, quoted(field, value));
            }
            (Some((_, value)), false) => {
                let _ = writeln!(text, "{} = {}", field.name, quoted(field, value));
            }
            (None, true) => {
                comment(text, field.text);
                let _ = match field.presence {
                    Presence::Default(value) => {
                        writeln!(text, "# {} = {}", field.name, quoted(field, value))
                    }
                    Presence::Required | Presence::Optional => {
                        writeln!(text, "# {}: {}", field.name, field.kind.describe())
                    }
                };
            }
            (None, false) => {}
        }
    }
}

/// A value as the file has it.
fn quoted(field: &Field, value: &str) -> String {
    match field.kind {
        FieldKind::One(
            Kind::Unsigned { .. } | Kind::Seconds { .. } | Kind::Ratio | Kind::Bytes { .. },
        ) => value.to_owned(),
        _ => format!("{value:?}"),
    }
}

/// Appends a comment, in lines of at most [`COLUMNS`].
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if COLUMNS < line.len() + 1 + word.len() {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use settings::Configuration;

    use super::*;

    fn example(servers: &[String]) -> String {
        text(&Gateway {
            servers,
            user: "plateau",
            password: "a\"b",
        })
    }

    /// Fails if the reader finds a mistake.
    fn read(text: &str) -> Configuration {
        let mut configuration = Configuration::default();
        let mistakes = configuration.read_file(text);
        assert!(mistakes.is_empty(), "{mistakes:?}\n{text}");
        configuration
    }

    #[test]
    fn the_file_is_a_gateway() {
        let servers = ["127.0.0.1:1".to_owned(), "[::1]:2".to_owned()];
        for servers in [&[][..], &servers[..]] {
            let options = crate::gateway_options::options(&read(&example(servers)));
            let options = options.unwrap().unwrap();
            assert_eq!(options.servers.len(), 2);
            assert_eq!(options.services.len(), 1);
        }
    }

    #[test]
    fn the_log_shows_roles_and_all_sections_are_named() {
        let text = example(&[]);
        assert_eq!(read(&text).settings.text("log"), "info");
        for section in SECTIONS {
            assert!(text.contains(&section.header()), "{}", section.name);
        }
    }

    #[test]
    fn each_default_in_a_comment_is_one() {
        let text = example(&[]);
        let uncommented: Vec<_> = text
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.contains(" = ") && !rest.contains('`') => rest,
                _ => line,
            })
            .collect();
        assert_ne!(uncommented.join("\n"), text.trim_end());
        read(&uncommented.join("\n"));
    }

    #[test]
    fn lines_are_short_and_a_file_is_never_overwritten() {
        assert!(example(&[]).lines().all(|line| line.len() <= COLUMNS));
        let folder = testkit::Folder::new("init").unwrap();
        let file = folder.path().join("plateau.toml");
        let gateway = Gateway {
            servers: &[],
            user: "u",
            password: "p",
        };
        run(&gateway, &file).unwrap();
        let error = run(&gateway, &file).unwrap_err().to_string();
        assert!(error.contains("exists already"), "{error}");
        let nowhere = run(&gateway, &folder.path().join("none/file"));
        assert!(nowhere.unwrap_err().to_string().contains("cannot create"));
    }
}
