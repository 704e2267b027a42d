//! Planted mistakes of each class are found; `cargo xtask sim --planted` runs more seeds.

#![forbid(unsafe_code)]

use std::process::Command;

/// Enough for the rarest of them.
const SEEDS: &str = "300";

#[test]
fn each_planted_mistake_is_found() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    let output = command.args(["--planted", "--seeds", SEEDS]).output();
    let output = output.expect("the program can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for class in [
        "lost flush",
        "torn page",
        "unlocked gap",
        "premature purge",
        "lost wake-up",
        "log hole",
        "lost prepared",
    ] {
        assert!(text.contains(class), "no {class}: {text}");
    }
}
