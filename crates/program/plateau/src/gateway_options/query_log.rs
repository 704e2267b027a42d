//! The query log of a gateway, from its section.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use gateway::QueryLogOptions;
use query_log::{Files, Filter, TextForm};
use settings::{Configuration, Entry, Value};

use super::mistakes::Mistakes;

/// What a configuration says of the query log; `None` if it has no such section.
pub(super) fn read(
    configuration: &Configuration,
    mistakes: &mut Mistakes,
) -> Option<QueryLogOptions> {
    let entry = configuration.sections.one("query_log")?;
    let options = options(entry);
    let Filter {
        all, errors, slow, ..
    } = options.filter;
    let logs = |rule: &Entry| is_on(rule, "query_log");
    if !all && !errors && slow.is_none() && !configuration.sections.all("rule").any(logs) {
        let told = "section `query_log` logs nothing: it needs one of `all`, `errors`, `slow`, or \
                    a section `rule` with `query_log = true`";
        mistakes.add(entry, told);
    }
    if let Some(kind) = other_kind(&options.files.path) {
        let path = options.files.path.display();
        let told = format!("section `query_log`: {path} is {kind}, and no file");
        mistakes.add(entry, told);
    }
    // The file itself is opened at the start.
    let folder = options.files.path.parent();
    let folder = folder.filter(|it| !it.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|it| !it.is_dir()) {
        let told = format!(
            "section `query_log`: there is no directory {}",
            folder.display()
        );
        mistakes.add(entry, told);
    }
    Some(options)
}

/// What is there and is no file: lines cannot be added at a place of a FIFO, and a device could not
/// be replaced when it is full. `None` if a file is there, or nothing.
fn other_kind(path: &Path) -> Option<&'static str> {
    let kind = fs::metadata(path).ok()?.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_fifo() => Some("a FIFO"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}

fn options(entry: &Entry) -> QueryLogOptions {
    QueryLogOptions {
        filter: Filter {
            all: is_on(entry, "all"),
            errors: is_on(entry, "errors"),
            slow: super::seconds(entry, "slow"),
            form: match entry.text("text") {
                Some("literal") => TextForm::Literal,
                _ => TextForm::Canonical,
            },
            text_bytes_max: super::count::<u64>(entry, "text_max")
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or_default(),
        },
        files: Files {
            path: PathBuf::from(entry.text("path").unwrap_or_default()),
            bytes_max: super::count(entry, "size").unwrap_or_default(),
            kept: super::count(entry, "files").unwrap_or_default(),
        },
    }
}

fn is_on(entry: &Entry, field: &str) -> bool {
    entry.value(field) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::time::Duration;

    use super::super::mistakes::read_text;
    use super::*;

    fn read_file(text: &str) -> (Option<QueryLogOptions>, Vec<String>) {
        read_text(text, read)
    }

    #[test]
    fn a_section_says_what_is_logged_and_where() {
        assert_eq!(read_file(""), (None, Vec::new()));
        let (options, wrong) = read_file("[query_log]\npath = \"q.json\"\nslow = 0.5\n");
        assert_eq!(wrong, [""; 0]);
        let filter = Filter {
            all: false,
            errors: false,
            slow: Some(Duration::from_millis(500)),
            form: TextForm::Canonical,
            text_bytes_max: 1024,
        };
        let files = Files {
            path: PathBuf::from("q.json"),
            bytes_max: 100 << 20,
            kept: 5,
        };
        assert_eq!(options, Some(QueryLogOptions { filter, files }));
        let text = "[query_log]\npath = \"/q\"\nall = true\nerrors = true\ntext = \"literal\"\n\
                    text_max = \"64K\"\nsize = \"64K\"\nfiles = 0\n";
        let (options, wrong) = read_file(text);
        assert_eq!(wrong, [""; 0]);
        let filter = Filter {
            all: true,
            errors: true,
            slow: None,
            form: TextForm::Literal,
            text_bytes_max: query_log::TEXT_BYTES_MAX,
        };
        let files = Files {
            path: PathBuf::from("/q"),
            bytes_max: 64 << 10,
            kept: 0,
        };
        assert_eq!(options, Some(QueryLogOptions { filter, files }));
    }

    #[test]
    fn the_directory_has_to_be_there() {
        let (_, wrong) = read_file("[query_log]\npath = \"/no/such/q\"\nall = true\n");
        assert_eq!(
            wrong,
            ["1: section `query_log`: there is no directory /no/such"]
        );
    }

    #[test]
    fn what_is_no_file_is_a_mistake() {
        let folder = testkit::Folder::new("query-log").unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let made = Command::new("mkfifo").arg(path("fifo")).status().unwrap();
        assert!(made.success());
        let _socket = UnixListener::bind(path("socket")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        fs::write(path("file"), "").unwrap();
        for (path, expected) in [
            (path("fifo"), Some("a FIFO")),
            (path("socket"), Some("a socket")),
            (path("folder"), Some("a directory")),
            ("/dev/null".to_owned(), Some("a device")),
            (path("file"), None),
            (path("none"), None),
        ] {
            let text = format!("[query_log]\npath = \"{path}\"\nall = true\n");
            let (_, wrong) = read_file(&text);
            let told = |it| format!("1: section `query_log`: {path} is {it}, and no file");
            assert_eq!(wrong, expected.map(told).into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_log_of_nothing_is_a_mistake() {
        let nothing = "[query_log]\npath = \"q\"\n";
        let rule = "[[rule]]\nname = \"r\"\n";
        for (text, is_wrong) in [
            (nothing.to_owned(), true),
            (format!("{nothing}{rule}query_log = false\n"), true),
            (format!("{nothing}{rule}query_log = true\n"), false),
            (format!("{nothing}slow = 0\n"), false),
        ] {
            let (_, wrong) = read_file(&text);
            let told = wrong
                .iter()
                .filter(|it| it.starts_with("1: section `query_log` logs nothing"));
            assert_eq!(told.count(), usize::from(is_wrong), "{text}: {wrong:?}");
        }
    }
}
