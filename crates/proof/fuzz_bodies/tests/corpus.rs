//! Runs every kept input of every target once: fixed findings stay fixed.

#![forbid(unsafe_code)]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use testkit::folder::repository_root;

/// Inputs of a target: the corpus that covers its code, and former findings.
fn inputs(target: &str) -> Vec<PathBuf> {
    let root = repository_root().join("fuzz");
    let mut files = Vec::new();
    for folder in ["corpus", "findings"] {
        let folder = root.join(folder).join(target);
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        files.extend(entries.map(|entry| entry.expect("a readable folder").path()));
    }
    files.sort();
    files
}

fn name(path: &Path) -> String {
    let inside = path.strip_prefix(repository_root()).unwrap_or(path);
    inside.display().to_string()
}

#[test]
fn kept_inputs_do_no_harm() {
    let mut broken = Vec::new();
    for (target, run) in fuzz_bodies::TARGETS {
        let files = inputs(target);
        assert!(!files.is_empty(), "{target} has a corpus");
        for file in files {
            let input = fs::read(&file).unwrap();
            if catch_unwind(|| run(&input)).is_err() {
                broken.push(name(&file));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A target is in the list, in the fuzz package and has its libFuzzer program.
#[test]
fn each_target_is_a_program_of_the_fuzz_package() {
    let root = repository_root().join("fuzz");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let programs = programs(&root.join("fuzz_targets"));
    for (target, _) in fuzz_bodies::TARGETS {
        assert!(
            manifest.contains(&format!("\nname = \"{target}\"\n")),
            "{target}"
        );
        let file = format!("{target}.rs");
        let found = programs.iter().find(|it| it.ends_with(&file));
        let program = fs::read_to_string(found.expect(target)).unwrap();
        assert!(program.contains(&format!("run(\"{target}\"")), "{target}");
    }
    assert_eq!(programs.len(), fuzz_bodies::TARGETS.len());
}

/// The programs of a folder, and of those in it.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let inside = |path: PathBuf| match path.is_dir() {
        true => programs(&path),
        false => vec![path],
    };
    paths.flat_map(inside).collect()
}
