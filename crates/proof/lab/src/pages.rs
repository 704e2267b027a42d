//! Walks applications page by page, on the server under test and on MariaDB at the same time, and
//! compares what the pages say.
//!
//! The applications are Debian's WordPress and Adminer, run by PHP's own web server. The walks are
//! programs of `suites/pages`. They print the text of each page under a line `== name: status`, and
//! leave out what varies from run to run. Everything else has to be equal, line by line.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::folder::{Folder, repository_root};
use testkit::free_port;
use testkit::process::{Process, run as run_program};

use crate::target::{Running, Target, reference};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Only applications of these names: wordpress, adminer.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Writes the pages of both servers to this folder, as `NAME.tested` and `NAME.reference`.
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// A program with pages.
struct Application {
    /// Also the name of its walk.
    name: &'static str,
    /// A file of Debian's package.
    needs: &'static str,
    /// Fills the folder that the web server serves.
    install: fn(&Path) -> Result<()>,
    /// What PHP reads before each request, below `suites/pages`.
    prepended: Option<&'static str>,
    /// The least number of pages: a walk that ends early is no success.
    wanted: usize,
}

const APPLICATIONS: &[Application] = &[
    Application {
        name: "wordpress",
        needs: "/usr/share/wordpress/wp-settings.php",
        install: install_wordpress,
        prepended: Some("wordpress.php"),
        wanted: 95,
    },
    Application {
        name: "adminer",
        needs: "/usr/share/adminer/adminer.php",
        install: |root| link(&pages("adminer.php"), &root.join("index.php")),
        prepended: None,
        wanted: 60,
    },
];

/// PHP is ready within a second; it only detects a hang.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// How many differing lines of a page are shown.
const SHOWN_MAX: usize = 12;

/// Walks all applications; fails if a page differs.
pub fn run(arguments: &Arguments) -> Result<()> {
    let tested = arguments.target.start()?;
    let reference = Running::of(reference().start()?);
    for running in [&tested, &reference] {
        let mut client = running.connect()?;
        for statement in [
            "CREATE DATABASE wordpress CHARACTER SET utf8mb4",
            "CREATE USER pages@'%' IDENTIFIED BY 'pw'",
            "GRANT ALL ON *.* TO pages@'%' WITH GRANT OPTION",
        ] {
            client.run(statement)?;
        }
    }
    let mut failed = Vec::new();
    let is_wanted = |name| arguments.only.is_empty() || arguments.only.iter().any(|it| it == name);
    for application in APPLICATIONS.iter().filter(|it| is_wanted(it.name)) {
        let ports = [tested.port(), reference.port()];
        let [tested, reference] = walk_both(application, ports)?;
        if let Some(folder) = &arguments.keep {
            fs::write(folder.join(format!("{}.tested", application.name)), &tested)?;
            let path = folder.join(format!("{}.reference", application.name));
            fs::write(path, &reference)?;
        }
        match compare(&tested, &reference, application.wanted) {
            Ok(count) => println!("== {}: {count} pages are equal", application.name),
            Err(error) => {
                println!("== {}: FAILED: {error:#}", application.name);
                failed.push(application.name);
            }
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Both walks go side by side, so that they see the same moments.
fn walk_both(application: &Application, ports: [u16; 2]) -> Result<[String; 2]> {
    std::thread::scope(|scope| {
        let walks = ports.map(|port| scope.spawn(move || walk(application, port)));
        let [tested, reference] = walks.map(|walk| walk.join().expect("a walk does not panic"));
        Ok([tested?, reference.context("on MariaDB")?])
    })
}

/// The text of all pages of an application, with the errors that it logged behind them.
fn walk(application: &Application, database_port: u16) -> Result<String> {
    ensure!(
        Path::new(application.needs).exists(),
        "{} is not installed: run `cargo xtask setup`",
        application.name
    );
    let folder = Folder::new("pages")?;
    let root = folder.path().join("root");
    fs::create_dir(&root)?;
    (application.install)(&root)?;
    let port = free_port()?;
    let mut web = Command::new("php");
    let folder_of = |name: &str| format!("{name}={}", folder.path().display());
    // It reads the mail to its end: PHP reports a failure if the reader goes earlier.
    let mail = "sendmail_path=/bin/sh -c 'cat > /dev/null'";
    web.args(["-d", "display_errors=0", "-d", mail])
        .args(["-d", &folder_of("session.save_path")])
        .args(["-d", &folder_of("sys_temp_dir")]);
    if let Some(file) = application.prepended {
        let file = pages(file);
        web.args(["-d", &format!("auto_prepend_file={}", file.display())]);
    }
    web.args(["-S", &format!("127.0.0.1:{port}"), "-t"])
        .arg(&root)
        .env("TZ", "UTC")
        .env("PAGES_ROOT", &root)
        .env("PAGES_PORT", database_port.to_string());
    let log = folder.path().join("log");
    let mut web = Process::start(&mut web, &log, "started")?;
    web.wait_ready(READY_LIMIT)
        .with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
    let mut text = run_program(
        Command::new("python3")
            .arg(pages(&format!("{}.py", application.name)))
            .arg(format!("http://127.0.0.1:{port}/"))
            .arg(database_port.to_string())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PAGES_ROOT", &root),
    )?;
    text.push_str("== log of database errors\n");
    let logged = fs::read_to_string(root.join("debug.log")).unwrap_or_default();
    for line in logged.lines().filter(|it| it.contains("database error")) {
        // Behind the time.
        let (_, said) = line.split_once("] ").unwrap_or(("", line));
        text.push_str(said);
        text.push('\n');
    }
    Ok(text)
}

/// A file of the walks.
fn pages(name: &str) -> PathBuf {
    repository_root().join("suites/pages").join(name)
}

/// Debian's program, with a configuration and a folder of uploads of this walk's own.
fn install_wordpress(root: &Path) -> Result<()> {
    let program = Path::new("/usr/share/wordpress");
    for entry in fs::read_dir(program)? {
        let name = entry?.file_name();
        if name != "wp-config.php" && name != "wp-content" {
            link(&program.join(&name), &root.join(&name))?;
        }
    }
    link(&pages("wp-config.php"), &root.join("wp-config.php"))?;
    let content = root.join("wp-content");
    fs::create_dir_all(content.join("uploads"))?;
    for name in ["plugins", "themes"] {
        link(&program.join("wp-content").join(name), &content.join(name))?;
    }
    Ok(())
}

fn link(target: &Path, place: &Path) -> Result<()> {
    symlink(target, place).with_context(|| place.display().to_string())
}

/// The number of pages, all of which are equal.
fn compare(tested: &str, reference: &str, wanted: usize) -> Result<usize> {
    let (tested, reference) = (split(tested), split(reference));
    let mut differing = Vec::new();
    for (index, (name, lines)) in reference.iter().enumerate() {
        let other = tested.get(index);
        let (other_name, other_lines) = other.context("the walk ended early")?;
        if name != other_name {
            println!("-- {name}: the other page is {other_name}");
        } else if lines != other_lines {
            println!("-- {name}");
            show(other_lines, lines);
        } else {
            continue;
        }
        differing.push(*name);
    }
    ensure!(differing.is_empty(), "differ: {}", differing.join(", "));
    ensure!(tested.len() == reference.len(), "MariaDB has fewer pages");
    ensure!(
        wanted <= reference.len(),
        "only {} pages of at least {wanted}",
        reference.len()
    );
    Ok(reference.len())
}

/// Pages by name, each with its lines.
fn split(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut pages: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("== "), pages.last_mut()) {
            (Some(name), _) => pages.push((name, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    pages
}

/// Prints the lines between the pages' equal beginnings and equal ends.
fn show(tested: &[&str], reference: &[&str]) {
    let pairs = tested.iter().zip(reference);
    let start = pairs.take_while(|(one, other)| one == other).count();
    let (tested, reference) = (&tested[start..], &reference[start..]);
    let pairs = tested.iter().rev().zip(reference.iter().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    for (sign, lines) in [('-', reference), ('+', tested)] {
        for line in lines[..lines.len() - end].iter().take(SHOWN_MAX) {
            println!("{sign} {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_differs_is_found() {
        let pages = "== one: 200\na\nb\n== two: 200\n";
        assert_eq!(compare(pages, pages, 2).unwrap(), 2);
        let failure = |tested| compare(tested, pages, 2).unwrap_err().to_string();
        assert_eq!(
            failure("== one: 200\na\nc\n== two: 200\n"),
            "differ: one: 200"
        );
        assert_eq!(
            failure("== one: 500\na\nb\n== two: 200\n"),
            "differ: one: 200"
        );
        assert_eq!(failure("== one: 200\na\nb\n"), "the walk ended early");
        assert_eq!(
            failure("== one: 200\na\nb\n== two: 200\n== three: 200\n"),
            "MariaDB has fewer pages"
        );
        let too_few = compare(pages, pages, 3).unwrap_err().to_string();
        assert_eq!(too_few, "only 2 pages of at least 3");
    }
}
