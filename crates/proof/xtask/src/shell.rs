//! Runs other programs in the repository's root, and prints what it runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Where commands run. Constant after construction.
#[derive(Debug)]
pub(crate) struct Shell {
    root: PathBuf,
}

impl Shell {
    /// Finds the root from this crate's location, so that the tool works from any directory.
    pub(crate) fn at_repository_root() -> Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here
            .ancestors()
            .nth(3)
            .context("xtask stands three floors below the root")?;
        Ok(Shell {
            root: root.to_path_buf(),
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A command with its working directory set; the caller adds environment and runs it.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.root);
        command
    }

    /// Runs to the end with output passed through; a status other than 0 is an error.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let line = format!("{program} {}", arguments.join(" "));
        println!("$ {line}");
        check(&mut self.command(program, arguments), &line)
    }

    /// Runs to the end and returns standard output; a status other than 0 is an error.
    pub(crate) fn read(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output = self
            .command(program, arguments)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start {program}"))?;
        if !output.status.success() {
            bail!(
                "{program} {} ended with {}",
                arguments.join(" "),
                output.status
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Whether the program can be started and succeeds.
    pub(crate) fn succeeds(&self, program: &str, arguments: &[&str]) -> bool {
        self.command(program, arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// Runs a prepared command to its end; `line` is its name in error messages.
pub(crate) fn check(command: &mut Command, line: &str) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start: {line}"))?;
    if !status.success() {
        bail!("ended with {status}: {line}");
    }
    Ok(())
}
