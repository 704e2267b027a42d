//! The machine's time zone, found as the C library does: by the variable TZ, or else by
//! `/etc/localtime`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use env::Clock as _;
use env::linux::SystemClock;
use settings::Settings;
use value::Zone;
use value::temporal::DateTime;

/// The machine's zone: a link into the zone database, or a copy of a file there.
const LOCALTIME: &str = "/etc/localtime";
/// The zone database on most machines; `TZDIR` names another place.
const ZONES: &str = "/usr/share/zoneinfo";
/// A directory of this name is a zone database wherever it is.
const ZONES_NAME: &str = "zoneinfo";
/// The longest file of the database takes some 4 KiB.
const ZONE_BYTES_MAX: u64 = 1 << 20;

/// Sets the machine's zone as `SYSTEM`, and its name. An unknown zone is UTC, with a warning.
pub(crate) fn tell(settings: &mut Settings) {
    let variable = std::env::var_os("TZ");
    let zone = match find(variable.as_deref(), Path::new(LOCALTIME)) {
        Ok(zone) => zone,
        Err(source) => {
            tracing::warn!(source, "the machine's time zone is unknown; UTC is used");
            Zone::Utc
        }
    };
    let micros = i64::try_from(SystemClock.wall_micros());
    let now = micros.ok().and_then(DateTime::from_unix_micros);
    let name = zone.abbreviation(now.unwrap_or(DateTime::ZERO));
    settings.tell("system_time_zone", &name);
    zone.set_system();
}

/// The zone of `TZ` or, without it, of the file or link. The error names what cannot be read.
fn find(variable: Option<&OsStr>, localtime: &Path) -> Result<Zone, String> {
    let Some(variable) = variable else {
        return of_link(localtime);
    };
    let text = variable.to_string_lossy();
    // A colon means that what follows is not a rule.
    let name = text.strip_prefix(':').unwrap_or(&text);
    let zone = if name.is_empty() {
        Some(Zone::Utc)
    } else if name.starts_with('/') {
        of_path(Path::new(name))
    } else {
        of_name(name).or_else(|| Zone::from_posix(name))
    };
    zone.ok_or_else(|| format!("TZ={text}"))
}

fn of_link(localtime: &Path) -> Result<Zone, String> {
    // Without it the machine's time is UTC.
    if fs::symlink_metadata(localtime).is_err() {
        return Ok(Zone::Utc);
    }
    of_path(localtime).ok_or_else(|| localtime.display().to_string())
}

/// The zone of a file in the database, or of a link to one. It is taken by its name, so that it
/// equals the zone that a session may name, or else by its contents.
fn of_path(path: &Path) -> Option<Zone> {
    let target = fs::canonicalize(path).ok();
    let names = [
        target.as_deref().and_then(name_in_database),
        name_in_database(path),
    ];
    let named = names.iter().flatten().find_map(|name| of_name(name));
    named.or_else(|| of_file(path))
}

fn of_file(path: &Path) -> Option<Zone> {
    let length = fs::metadata(path).ok()?.len();
    let bytes = (length <= ZONE_BYTES_MAX).then(|| fs::read(path).ok())??;
    Zone::from_file(&bytes)
}

/// A zone of the database. Its names for UTC are UTC itself, which costs no computation.
fn of_name(name: &str) -> Option<Zone> {
    let is_word = |word: &str| !word.is_empty() && word != "..";
    if !name.split('/').all(is_word) {
        return None;
    }
    // These are zones of sessions, not files.
    if name.eq_ignore_ascii_case("SYSTEM") || name.starts_with(['+', '-']) {
        return None;
    }
    if ["UTC", "Etc/UTC"].contains(&name) {
        return Some(Zone::Utc);
    }
    Zone::from_name(name)
}

/// The part of a path after the database's directory.
fn name_in_database(path: &Path) -> Option<String> {
    let database = std::env::var_os("TZDIR").map_or_else(|| PathBuf::from(ZONES), PathBuf::from);
    let name = match path.strip_prefix(&database) {
        Ok(name) => name.to_path_buf(),
        Err(_) => {
            let mut parts = path.components();
            parts.find(|part| *part == Component::Normal(OsStr::new(ZONES_NAME)))?;
            parts.collect()
        }
    };
    name.to_str()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use testkit::Folder;

    use super::*;

    /// What a zone calls its time in January.
    fn winter(zone: &Result<Zone, String>) -> String {
        let winter = DateTime::from_unix_micros(1_704_844_800_000_000).unwrap();
        match zone {
            Ok(zone) => zone.abbreviation(winter),
            Err(source) => format!("unknown: {source}"),
        }
    }

    #[test]
    fn the_variable_goes_before_the_file() {
        let nowhere = Path::new("/nowhere");
        let of = |variable: &str| winter(&find(Some(OsStr::new(variable)), nowhere));
        for (variable, expected) in [
            ("", "UTC"),
            ("UTC", "UTC"),
            ("Europe/Berlin", "CET"),
            (":Europe/Berlin", "CET"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "CET"),
            ("EST5EDT", "EST"),
            ("UTC0", "UTC"),
            ("/usr/share/zoneinfo/Asia/Tokyo", "JST"),
            ("Nowhere/Land", "unknown: TZ=Nowhere/Land"),
            ("/nowhere", "unknown: TZ=/nowhere"),
            ("../Berlin", "unknown: TZ=../Berlin"),
            ("SYSTEM", "unknown: TZ=SYSTEM"),
        ] {
            assert_eq!(of(variable), expected, "{variable}");
        }
        assert_eq!(find(Some(OsStr::new("Etc/UTC")), nowhere), Ok(Zone::Utc));
    }

    #[test]
    fn without_it_a_link_or_a_file_says_the_zone() {
        let folder = Folder::new("localtime").unwrap();
        let place = folder.path().join("localtime");
        let found = || winter(&find(None, &place));
        assert_eq!(found(), "UTC");
        symlink("/usr/share/zoneinfo/America/New_York", &place).unwrap();
        assert_eq!(found(), "EST");
        fs::remove_file(&place).unwrap();
        fs::copy("/usr/share/zoneinfo/Asia/Tokyo", &place).unwrap();
        assert_eq!(found(), "JST");
        fs::write(&place, "no zone at all").unwrap();
        assert_eq!(found(), format!("unknown: {}", place.display()));
        fs::remove_file(&place).unwrap();
        symlink("/nowhere/zoneinfo/Europe/Nowhere", &place).unwrap();
        assert!(found().starts_with("unknown: "), "{}", found());
    }
}
