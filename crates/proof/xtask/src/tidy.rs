//! The rules of the source that a tool can check. A rule is a function from the tree to findings,
//! with its own test of bad input and expected message.

mod assertions;
mod commits;
mod crates;
mod folders;
mod functions;
mod modules;
mod names;
mod pages;
mod source;
mod tree;

use std::fs;

use anyhow::{Result, ensure};

use crate::shell::Shell;
use tree::{Finding, Tree};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Regenerates the generated pages instead of refusing stale ones.
    #[arg(long)]
    fix: bool,
}

type Rule = fn(&Tree) -> Vec<Finding>;

/// All rules, in the order in which they are reported.
const RULES: &[(&str, Rule)] = &[
    ("layers", crates::layers),
    ("manifests", crates::manifests),
    ("dependency reasons", crates::dependency_reasons),
    ("module heads", source::module_heads),
    ("file length", source::file_length),
    ("line length", source::line_length),
    ("ascii", source::ascii),
    ("left-over marks", source::marks),
    ("conflicts", source::conflicts),
    ("commented-out code", source::commented_code),
    ("unsafe", source::forbid_unsafe),
    ("atomics", source::atomics),
    ("numbers of errors", source::error_numbers),
    ("parameters", functions::parameters),
    ("bool parameters", functions::bool_parameters),
    ("commit subjects", commits::subjects),
    ("orphans", source::orphans),
    ("folder size", folders::folder_size),
    ("cycles", folders::cycles),
    ("function names", names::function_names),
    ("places of machines", source::machine_paths),
    ("assertions", assertions::floors),
    ("generated pages", pages::in_step),
];

pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    if arguments.fix {
        for (path, text) in pages::generated() {
            fs::write(shell.root().join(path), text)?;
            println!("wrote {path}");
        }
    }
    let tree = Tree::read(shell)?;
    let mut count = 0;
    for (name, rule) in RULES {
        for finding in rule(&tree) {
            println!("{finding} [{name}]");
            count += 1;
        }
    }
    ensure!(count == 0, "tidy: {count} findings");
    println!(
        "tidy: {} rules hold over {} files",
        RULES.len(),
        tree.files().count()
    );
    Ok(())
}
