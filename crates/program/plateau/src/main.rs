//! `plateau`: the server, and the tools for its data directory.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a program speaks to who started it")]
#![allow(
    clippy::print_stderr,
    reason = "errors of a program that cannot start go to its terminal"
)]

mod admin;
mod advice;
mod arguments;
mod check;
mod configuration;
mod database;
mod ending;
mod gateway_options;
mod heap;
mod init;
mod keys;
mod listen;
mod monitoring;
mod reading;
mod reload;
mod serve;
mod serve_gateway;
mod start;
mod time_zone;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command, Init};

const _: () = assert!(
    !stdx::planted::CAN_PLANT,
    "no server is built that can make planted mistakes"
);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.command {
        None if arguments.check_config => start::check(&arguments),
        None => start::run(&arguments),
        Some(Command::Check { directory, workers }) => check::run(directory, usize::from(*workers)),
        Some(Command::Digest { statement }) => {
            let (text, digest) = router::digested(statement.as_bytes());
            println!("{digest:016x}  {}", String::from_utf8_lossy(&text));
            Ok(())
        }
        Some(Command::Init { what }) => init_file(what),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A configuration may have several mistakes, each on a line of its own.
            for line in format!("{error:#}").lines() {
                eprintln!("plateau: {line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn init_file(what: &Init) -> anyhow::Result<()> {
    let Init::Gateway {
        servers,
        from,
        user,
        password,
        file,
    } = what;
    if let Some(from) = from {
        return init::from::run(from, file);
    }
    let gateway = init::Gateway {
        servers,
        user,
        password,
    };
    init::run(&gateway, file)
}
