//! Servers for tests: Debian's MariaDB, the reference, and Plateau, each in its own data directory
//! and on a free port.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::client::{Client, Login};
use crate::folder::{Folder, copy_tree, target_directory};
use crate::free_port;
use crate::process::{Process, run};

/// The server program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    MariaDb,
    Plateau,
}

/// Whether `REFERENCE=mariadb` runs tests against the reference, if they can.
pub fn is_reference_asked() -> bool {
    std::env::var("REFERENCE").is_ok_and(|name| name == "mariadb")
}

/// Environment variable: the I/O driver of each Plateau whose test sets none.
pub const IO_VARIABLE: &str = "TEST_IO";

/// Runs a check on both I/O drivers side by side, or on that of [`IO_VARIABLE`] alone.
pub fn on_each_driver(check: impl Fn(&str) + Sync) {
    let asked = std::env::var(IO_VARIABLE);
    let drivers = match &asked {
        Ok(driver) => vec![driver.as_str()],
        // auto: io_uring, if the machine has it.
        Err(_) => vec!["epoll", "auto"],
    };
    std::thread::scope(|scope| {
        for driver in drivers {
            let check = &check;
            scope.spawn(move || check(driver));
        }
    });
}

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Launch {
    pub kind: ServerKind,
    /// Further arguments, as the program itself takes them.
    pub arguments: Vec<String>,
    /// The program; `None`: the usual place.
    pub program: Option<PathBuf>,
    /// Environment variables, in addition to those of the tests and a time zone that is always UTC.
    /// An empty value removes the variable.
    pub environment: Vec<(String, String)>,
    /// How many file descriptors it may have open, from its start on; none: what the tests may.
    pub descriptor_limit: Option<u64>,
    /// Files of a fresh data directory: name and text.
    pub data_files: Vec<(String, String)>,
}

/// A running server. Killed on drop; its data directory is removed with it.
#[derive(Debug)]
pub struct Server {
    launch: Launch,
    process: Process,
    port: u16,
    folder: Folder,
}

/// Long enough for recovery on a loaded machine; it only detects a hang.
const READY_LIMIT: Duration = Duration::from_secs(120);

/// Each try takes some ten milliseconds.
const RESTART_TRIES: u32 = 100;

/// Ports tried for a new server.
const PORT_TRIES: u32 = 3;

impl Launch {
    pub fn new(kind: ServerKind) -> Launch {
        Launch {
            kind,
            arguments: Vec::new(),
            program: None,
            environment: Vec::new(),
            descriptor_limit: None,
            data_files: Vec::new(),
        }
    }

    /// Plateau, from the given program: `env!("CARGO_BIN_EXE_plateau")` in its own tests.
    pub fn plateau(program: impl Into<PathBuf>) -> Launch {
        let mut launch = Launch::new(ServerKind::Plateau);
        launch.program = Some(program.into());
        launch
    }

    /// Plateau, or the reference if requested.
    pub fn asked_for(program: impl Into<PathBuf>) -> Launch {
        if is_reference_asked() {
            Launch::new(ServerKind::MariaDb)
        } else {
            Launch::plateau(program)
        }
    }

    /// Adds settings of Plateau, each as "name=value".
    pub fn with_settings(mut self, settings: impl IntoIterator<Item = impl Display>) -> Launch {
        let arguments = settings.into_iter().map(|it| format!("--set={it}"));
        self.arguments.extend(arguments);
        self
    }

    /// Adds an argument.
    pub fn with(mut self, argument: impl Into<String>) -> Launch {
        self.arguments.push(argument.into());
        self
    }

    /// Sets an environment variable, or removes it if `value` is empty.
    pub fn with_variable(mut self, name: &str, value: &str) -> Launch {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a file into the fresh data directory.
    pub fn with_data_file(mut self, name: &str, text: String) -> Launch {
        self.data_files.push((name.to_owned(), text));
        self
    }

    /// Limits how many file descriptors the server may have open.
    pub fn with_descriptor_limit(mut self, limit: u64) -> Launch {
        self.descriptor_limit = Some(limit);
        self
    }

    /// Starts in a fresh data directory.
    pub fn start(self) -> Result<Server> {
        let folder = Folder::new("server")?;
        if self.kind == ServerKind::MariaDb {
            copy_tree(&mariadb_template()?, &folder.path().join("data"))?;
        }
        for (name, text) in &self.data_files {
            fs::write(folder.path().join("data").join(name), text)?;
        }
        let mut tries = PORT_TRIES;
        let (port, process) = loop {
            let port = free_port()?;
            tries -= 1;
            match self.spawn(folder.path(), port) {
                Ok(process) => break (port, process),
                // Another process's outgoing connection has taken the port since.
                Err(error) if 0 < tries && format!("{error:#}").contains("ddress already in") => {}
                Err(error) => return Err(error),
            }
        };
        Ok(Server {
            launch: self,
            process,
            port,
            folder,
        })
    }

    fn spawn(&self, folder: &Path, port: u16) -> Result<Process> {
        let mut command = match self.kind {
            ServerKind::MariaDb => mariadb_command(self, folder, port),
            ServerKind::Plateau => plateau_command(self, folder, port)?,
        };
        command.args(&self.arguments).env("TZ", "UTC");
        for (name, value) in &self.environment {
            if value.is_empty() {
                command.env_remove(name);
            } else {
                command.env(name, value);
            }
        }
        if let Some(limit) = self.descriptor_limit {
            command = limited(&command, limit);
        }
        let ready = match self.kind {
            ServerKind::MariaDb => "ready for connections",
            ServerKind::Plateau => "listening",
        };
        let log = folder.join("log");
        let mut process = Process::start(&mut command, &log, ready)?;
        process.wait_ready(READY_LIMIT).with_context(|| {
            format!(
                "{command:?}\n{}",
                fs::read_to_string(&log).unwrap_or_default()
            )
        })?;
        Ok(process)
    }
}

/// The same command with so many file descriptors at most. A shell sets the limit and becomes the
/// program, so that no descriptor is opened before.
fn limited(command: &Command, limit: u64) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n \"$0\" && exec \"$@\""]);
    shell.arg(limit.to_string()).arg(command.get_program());
    shell.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

impl Server {
    pub fn kind(&self) -> ServerKind {
        self.launch.kind
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The unix socket.
    pub fn socket(&self) -> PathBuf {
        socket(self.folder.path())
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What the server printed so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// A MariaDB to compare with, and a session of root that has run `statements`.
    ///
    /// # Panics
    /// If there is none: a test without its reference proves nothing.
    pub fn reference(statements: &[&str]) -> (Server, Client) {
        let started = Launch::new(ServerKind::MariaDb).start();
        let server = started.unwrap_or_else(|error| {
            panic!(
                "MariaDB is the reference of this test; run `cargo xtask setup` first: {error:#}"
            )
        });
        let mut client = server.connect().expect("the server takes connections");
        for statement in statements {
            client.run(statement).expect(statement);
        }
        (server, client)
    }

    /// A new connection as root.
    pub fn connect(&self) -> Result<Client> {
        Client::connect(&Login::root(self.port))
    }

    /// SIGTERM, and waits for the orderly shutdown.
    pub fn stop(&mut self) -> Result<()> {
        let status = self.process.stop()?;
        if !status.success() {
            bail!("ended with {status} when asked to stop:\n{}", self.log());
        }
        Ok(())
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill().map(drop)
    }

    /// Starts again, after `stop` or `kill`, on the same port and data. The kernel releases the
    /// resources of a killed process a moment after its end, so the first tries may find port or
    /// data in use.
    pub fn start_again(&mut self) -> Result<()> {
        let mut tries = RESTART_TRIES;
        loop {
            let spawned = self.launch.spawn(self.folder.path(), self.port);
            tries -= 1;
            match spawned {
                Ok(process) => {
                    self.process = process;
                    return Ok(());
                }
                Err(error) if tries == 0 || !self.log().contains("in use") => return Err(error),
                Err(_) => {}
            }
        }
    }
}

/// The Plateau under test: `PLATEAU`, or the last build of cargo.
pub fn plateau_program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("PLATEAU") {
        return Ok(PathBuf::from(path));
    }
    let built = |profile: &str| target_directory().join(profile).join("plateau");
    let candidates = [built("release"), built("debug")];
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    candidates
        .into_iter()
        .filter(|path| path.exists())
        .max_by_key(changed)
        .context("plateau is not built: run `cargo build --package plateau`")
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("socket")
}

fn mariadb_command(launch: &Launch, folder: &Path, port: u16) -> Command {
    let program = launch
        .program
        .clone()
        .unwrap_or_else(|| PathBuf::from("/usr/sbin/mariadbd"));
    let mut command = Command::new(program);
    command
        .arg("--no-defaults")
        .arg("--user=root")
        .arg("--bind-address=127.0.0.1")
        .arg(format!("--port={port}"))
        .arg(format!("--datadir={}", folder.join("data").display()))
        .arg(format!("--socket={}", socket(folder).display()))
        .arg(format!("--pid-file={}", folder.join("pid").display()))
        .arg(format!("--tmpdir={}", folder.display()));
    command
}

fn plateau_command(launch: &Launch, folder: &Path, port: u16) -> Result<Command> {
    let program = match &launch.program {
        Some(path) => path.clone(),
        None => plateau_program()?,
    };
    // A relative path is relative to this process's folder; the server has its own.
    let program = std::path::absolute(program)?;
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .arg("--set")
        .arg(format!("listen=127.0.0.1:{port}"))
        .arg("--set")
        .arg(format!("socket={}", socket(folder).display()))
        .arg("--set")
        .arg(format!("data={}", folder.join("data").display()));
    if let Ok(driver) = std::env::var(IO_VARIABLE) {
        // The last one counts, and the test's own settings come later.
        command.arg(format!("--set=io={driver}"));
    }
    Ok(command)
}

/// A fresh MariaDB data directory, created once for each build directory, since that takes seconds.
fn mariadb_template() -> Result<PathBuf> {
    let parent = target_directory().join("testkit");
    let template = parent.join("mariadb-template");
    if template.exists() {
        return Ok(template);
    }
    let fresh = Folder::new("template")?;
    let data = fresh.path().join("data");
    // A server that starts removes the temporary tables of its tmpdir, whosever they are.
    run(Command::new("mariadb-install-db")
        .arg("--no-defaults")
        .arg(format!("--tmpdir={}", fresh.path().display()))
        .arg("--auth-root-authentication-method=normal")
        .arg("--skip-test-db")
        .arg("--user=root")
        .arg(format!("--datadir={}", data.display())))?;
    // Another test may have been faster; its template is just as good.
    if fs::rename(&data, &template).is_err() && !template.exists() {
        bail!("cannot place {}", template.display());
    }
    Ok(template)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Outcome;

    /// The reference server is installed by `cargo xtask setup`.
    #[test]
    fn reference_server_starts_answers_crashes_and_comes_back() {
        let mut server = Launch::new(ServerKind::MariaDb).start().unwrap();
        let mut client = server.connect().unwrap();
        client.run("create database d").unwrap();
        client
            .run("create table d.t (a int primary key, b text) engine=innodb")
            .unwrap();
        client
            .run("insert into d.t values (1, 'x'), (2, null)")
            .unwrap();
        server.kill().unwrap();
        server.start_again().unwrap();
        let mut client = server.connect().unwrap();
        let rows = client.rows("select a, b from d.t order by a").unwrap();
        let one = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(rows, [[one("1"), one("x")], [one("2"), None]]);
        let Outcome::Error(error) = client.query("select nothing").unwrap() else {
            panic!("an unknown column is an error")
        };
        assert_eq!((error.number, error.state.as_str()), (1054, "42S22"));
        assert!(server.process().resident_bytes().unwrap() > 1 << 20);
        server.stop().unwrap();
    }
}
