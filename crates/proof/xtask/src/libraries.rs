//! The step `libraries` of `cargo xtask ci`: the libraries that are linked, held against
//! `deny.toml`, of which it reads the licences. What `cargo deny check` finds beyond that are
//! advisories; to build `cargo deny` takes minutes.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use spdx::{Expression, LicenseReq, ParseMode};

use crate::shell::Shell;

/// Where all libraries come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Libraries of other systems are not linked, and would have to be fetched.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// A part of what `cargo metadata` tells.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` of a crate of this repository.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    /// `None` of a crate of this repository.
    source: Option<String>,
}

/// A part of `deny.toml`.
#[derive(Debug, Deserialize)]
struct Rules {
    licenses: Licences,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: Vec<String>,
}

/// Checks all libraries.
///
/// # Errors
/// A licence is not allowed, a library is not of the registry, or a crate takes any version of one.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    let rules = fs::read_to_string(shell.root().join("deny.toml")).context("deny.toml")?;
    let rules: Rules = toml::from_str(&rules).context("deny.toml")?;
    let arguments = ["metadata", "--format-version", "1", "--locked"];
    let platform = ["--filter-platform", PLATFORM];
    let told = shell.read("cargo", &[&arguments[..], &platform].concat())?;
    let metadata: Metadata = serde_json::from_str(&told).context("what `cargo metadata` tells")?;
    let packages = metadata.packages.iter();
    let wrong: Vec<String> = packages
        .flat_map(|it| findings(it, &rules.licenses.allow))
        .collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("libraries: {} crates are allowed", metadata.packages.len());
    Ok(())
}

/// What is wrong with a crate.
fn findings(package: &Package, allowed: &[String]) -> Vec<String> {
    let Package { name, version, .. } = package;
    let mut wrong = Vec::new();
    let parse = |it| Expression::parse_mode(it, ParseMode::LAX);
    match package.license.as_deref().map(parse) {
        None => wrong.push("names no licence".to_owned()),
        Some(Err(error)) => wrong.push(format!("has a licence that is not understood: {error}")),
        Some(Ok(licence)) => {
            let is_allowed = |it: &LicenseReq| allowed.contains(&it.to_string());
            if !licence.evaluate(is_allowed) {
                wrong.push(format!("has a licence that is not allowed: {licence}"));
            }
        }
    }
    let source = package.source.as_deref();
    if let Some(other) = source.filter(|it| *it != REGISTRY) {
        wrong.push(format!("is not from the registry, but from {other}"));
    }
    let is_ours = source.is_none();
    let any = |it: &&Dependency| is_ours && it.source.is_some() && it.req == "*";
    for dependency in package.dependencies.iter().filter(any) {
        wrong.push(format!("takes any version of {}", dependency.name));
    }
    let told = wrong.into_iter();
    told.map(|it| format!("{name} {version} {it}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(license: Option<&str>, source: Option<&str>, req: &str) -> Package {
        Package {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            dependencies: vec![Dependency {
                name: "b".to_owned(),
                req: req.to_owned(),
                source: Some(REGISTRY.to_owned()),
            }],
        }
    }

    #[test]
    fn each_mistake_is_found() {
        let allowed = [
            "MIT".to_owned(),
            "Apache-2.0 WITH LLVM-exception".to_owned(),
        ];
        let count = |license, source, req| findings(&package(license, source, req), &allowed).len();
        for (license, expected) in [
            (Some("MIT"), 0),
            (Some("MIT/Apache-2.0"), 0),
            (Some("GPL-3.0-only OR MIT"), 0),
            (Some("Apache-2.0 WITH LLVM-exception"), 0),
            (Some("Apache-2.0"), 1),
            (Some("GPL-3.0-only AND MIT"), 1),
            (Some("of our own"), 1),
            (None, 1),
        ] {
            assert_eq!(count(license, Some(REGISTRY), "1"), expected, "{license:?}");
        }
        let elsewhere = "git+https://example.org/a";
        assert_eq!(count(Some("MIT"), Some(elsewhere), "1"), 1);
        assert_eq!(count(Some("MIT"), None, "*"), 1);
        assert_eq!(count(Some("MIT"), Some(REGISTRY), "*"), 0, "it is not ours");
    }
}
