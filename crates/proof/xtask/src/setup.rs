//! `cargo xtask setup`: prepares a bare Debian machine to run everything.
//!
//! Each step checks first and changes only what is missing, so it may be repeated at any time, and
//! each prints what it does. Packages come from the system's ordinary registries, by name.
//! Everything that is no system package goes below `target/clients`, so that deleting `target`
//! undoes it.
//!
//! Debian starts a server when it installs one. Plateau's tests start their own servers with their
//! own data directories. So a policy file forbids that start during the installation.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use testkit::folder::target_directory;

use crate::shell::{Shell, check};

/// The folder of everything that is no system package; the suites look there.
fn clients() -> PathBuf {
    target_directory().join("clients")
}

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Reports what is missing, and installs nothing.
    #[arg(long)]
    dry_run: bool,
}

/// System packages, and the program or file whose presence makes each unnecessary.
const PACKAGES: &[(&str, &[&str])] = &[
    ("/usr/bin/cc", &["build-essential"]),
    ("/usr/sbin/mariadbd", &["mariadb-server", "mariadb-client"]),
    ("/usr/lib/galera/libgalera_smm.so", &["galera-4"]),
    // Its settings load the engine into each server that reads Debian's; those of the tests do not.
    (
        "/usr/lib/mysql/plugin/ha_spider.so",
        &["mariadb-plugin-spider"],
    ),
    (
        "/usr/bin/mysql_client_test",
        &["mariadb-test", "mariadb-test-data"],
    ),
    ("/usr/bin/mariadb_config", &["libmariadb-dev", "pkg-config"]),
    ("/usr/bin/sysbench", &["sysbench"]),
    ("/usr/sbin/haproxy", &["haproxy"]),
    ("python3", &["python3", "python3-venv", "python3-dev"]),
    ("node", &["nodejs", "npm"]),
    ("go", &["golang-go"]),
    ("javac", &["default-jdk-headless"]),
    ("mvn", &["maven"]),
    // Both want a web server and PHP beside it; these are the smallest, and neither is started.
    (
        "/usr/share/wordpress/wp-settings.php",
        &["wordpress", "wordpress-theme-twentytwentythree", "webfs"],
    ),
    ("/usr/share/adminer/adminer.php", &["adminer"]),
    (
        "php",
        &["php", "php-cgi", "php-cli", "php-mysql", "php-mbstring"],
    ),
];

const POLICY: &str = "/usr/sbin/policy-rc.d";

pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let missing = missing_packages(shell);
    if missing.is_empty() {
        println!("system packages: all there");
    } else if arguments.dry_run {
        println!("system packages missing: {}", missing.join(" "));
    } else {
        install_packages(shell, &missing)?;
    }
    for client in CLIENT_SETS {
        client.provide(shell, arguments.dry_run)?;
    }
    Ok(())
}

fn missing_packages(shell: &Shell) -> Vec<&'static str> {
    let is_there = |probe: &str| {
        if probe.starts_with('/') {
            Path::new(probe).exists()
        } else {
            shell.succeeds("sh", &["-c", &format!("command -v {probe}")])
        }
    };
    let missing = PACKAGES.iter().filter(|(probe, _)| !is_there(probe));
    missing
        .flat_map(|(_, packages)| packages.iter().copied())
        .collect()
}

fn install_packages(shell: &Shell, packages: &[&str]) -> Result<()> {
    println!("installing system packages: {}", packages.join(" "));
    if !shell.succeeds("sh", &["-c", "command -v apt-get"]) {
        bail!("this is no Debian: install by hand what stands above, then run this again");
    }
    if shell.read("id", &["-u"])?.trim() != "0" {
        bail!(
            "not root: run `apt-get install -y {}` as root, then run this again",
            packages.join(" ")
        );
    }
    let policy = Policy::forbid_start()?;
    shell.run("apt-get", &["update"])?;
    let mut command = shell.command("apt-get", &["install", "-y", "--no-install-recommends"]);
    command
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive");
    check(&mut command, "apt-get install")?;
    drop(policy);
    Ok(())
}

/// Forbids the start of installed services while it lives.
struct Policy {
    is_ours: bool,
}

impl Policy {
    fn forbid_start() -> Result<Policy> {
        if Path::new(POLICY).exists() {
            return Ok(Policy { is_ours: false });
        }
        fs::write(POLICY, "#!/bin/sh\nexit 101\n").with_context(|| format!("writing {POLICY}"))?;
        fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755))?;
        Ok(Policy { is_ours: true })
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if self.is_ours && fs::remove_file(POLICY).is_err() {
            println!("could not remove {POLICY}: services will not start until it is removed");
        }
    }
}

/// The clients of one language: installed again when the file that lists them changes.
struct ClientSet {
    name: &'static str,
    /// Lists the clients and their versions.
    list: &'static str,
    /// Shell lines, run in the root; `$OUT` is the set's own folder below `target/clients`.
    script: &'static str,
}

const CLIENT_SETS: &[ClientSet] = &[
    ClientSet {
        name: "python",
        list: "suites/python/requirements.txt",
        // Only the source package has mysqlclient's tests.
        script: "python3 -m venv $OUT && $OUT/bin/pip install --quiet -r $LIST && \
                 $OUT/bin/pip download --quiet --no-deps --no-binary mysqlclient mysqlclient \
                 -d $OUT/sdist && \
                 tar -xf $OUT/sdist/mysqlclient-*.tar.gz -C $OUT/sdist",
    },
    ClientSet {
        name: "node",
        list: "suites/node/package.json",
        script: "cp $LIST $OUT/ && npm install --prefix $OUT --no-audit --no-fund --silent",
    },
    ClientSet {
        name: "go",
        list: "suites/go/go.mod",
        script: "cd suites/go && go build -o $OUT/smoke . && \
                 cp -r $(go list -m -f '{{.Dir}}' github.com/go-sql-driver/mysql) $OUT/driver && \
                 chmod -R u+w $OUT/driver",
    },
    ClientSet {
        name: "go-tpc",
        list: "suites/go-tpc/go.mod",
        script: "cd suites/go-tpc && go build -o $OUT/go-tpc github.com/pingcap/go-tpc/cmd/go-tpc",
    },
    ClientSet {
        name: "java",
        list: "suites/java/pom.xml",
        script: "mvn -q -B -f $LIST dependency:copy-dependencies -DoutputDirectory=$OUT/jars && \
                 javac -cp \"$OUT/jars/*\" -d $OUT suites/java/Smoke.java",
    },
    ClientSet {
        name: "rust",
        list: "suites/rust/Cargo.toml",
        script: "cargo build --quiet --manifest-path $LIST --target-dir $OUT",
    },
];

impl ClientSet {
    fn provide(&self, shell: &Shell, is_dry_run: bool) -> Result<()> {
        let root = shell.root();
        let list = fs::read_to_string(root.join(self.list))
            .with_context(|| format!("the list of {} clients, {}", self.name, self.list))?;
        let out = clients().join(self.name);
        let stamp = clients().join(format!("{}.stamp", self.name));
        let wanted = format!("{list}\n{}", self.script);
        if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
            println!("{} clients: all there", self.name);
            return Ok(());
        }
        println!("{} clients: installing what {} lists", self.name, self.list);
        if is_dry_run {
            return Ok(());
        }
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        fs::create_dir_all(&out)?;
        let mut command = shell.command("sh", &["-ec", self.script]);
        command.env("OUT", &out).env("LIST", root.join(self.list));
        check(&mut command, self.script)?;
        fs::write(stamp, wanted)?;
        Ok(())
    }
}
