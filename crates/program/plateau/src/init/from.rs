//! `plateau init gateway --from FILE`: reads the files, and says what [`migrate`] has found.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use migrate::{Format, Kind, Note, Source, Translation};

/// Most files of a folder `maxscale.cnf.d`, and folders in each other.
const FILES_MAX: usize = 256;
const DEPTH_MAX: usize = 8;

/// Translates a file, and writes the settings file unless that exists.
pub(crate) fn run(from: &Path, file: &Path) -> Result<()> {
    let main = read(from)?;
    let format = Format::of(&main.text);
    let mut sources = vec![main];
    if format == Format::MaxScale {
        for path in files_of(&folder_of(from))? {
            sources.push(read(&path)?);
        }
    }
    let made = migrate::translate(format, &sources);
    let Translation { text, notes } = made.with_context(|| match format {
        Format::MaxScale => "as a file of MaxScale",
        Format::ProxySql => "as a file of ProxySQL",
    })?;
    super::write(file, &text)?;
    for note in &notes {
        eprintln!("{note}");
    }
    let shown = file.display();
    println!("wrote {shown}; it has passwords, so keep it to yourself");
    println!("{}", summary(&notes));
    println!("{}", super::next(file));
    Ok(())
}

fn read(path: &Path) -> Result<Source> {
    let name = path.display().to_string();
    let bytes = fs::metadata(path).with_context(|| name.clone())?.len();
    let bytes_max = u64::try_from(migrate::TEXT_BYTES_MAX).unwrap_or(u64::MAX);
    if bytes_max < bytes {
        bail!("{name} has {bytes} bytes, and the limit is {bytes_max}");
    }
    let text = fs::read_to_string(path).with_context(|| name.clone())?;
    Ok(Source { name, text })
}

/// The folder of further files of MaxScale.
fn folder_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".d");
    PathBuf::from(name)
}

/// All `*.cnf` in a folder and those in it, by their names.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        let shown = folder.display().to_string();
        if DEPTH_MAX < depth {
            bail!("{shown}: more than {DEPTH_MAX} folders are in each other");
        }
        for entry in fs::read_dir(&folder).with_context(|| shown.clone())? {
            let path = entry.with_context(|| shown.clone())?.path();
            if path.is_dir() {
                folders.push((path, depth + 1));
            } else if path.extension().is_some_and(|it| it == "cnf") {
                files.push(path);
            }
            if FILES_MAX < files.len() {
                bail!("{shown}: there are more than {FILES_MAX} files");
            }
        }
    }
    files.sort();
    Ok(files)
}

/// How many notes there are of each kind.
fn summary(notes: &[Note]) -> String {
    let count = |word: &str| notes.iter().filter(|it| it.kind.word() == word).count();
    let words = [Kind::ToDo, Kind::Differs, Kind::LeftOut, Kind::Unknown].map(Kind::word);
    let told: Vec<String> = words
        .iter()
        .map(|word| format!("{word}: {}", count(word)))
        .collect();
    format!(
        "notes: {}; each is a comment in the file, too",
        told.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_folder_are_read_in_their_order() {
        let folder = testkit::Folder::new("from").unwrap();
        let main = folder.path().join("maxscale.cnf");
        let more = folder_of(&main);
        fs::create_dir_all(more.join("deep")).unwrap();
        for name in ["b.cnf", "a.cnf", "c.txt", "deep/d.cnf"] {
            fs::write(more.join(name), "").unwrap();
        }
        let found = files_of(&more).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|it| it.strip_prefix(&more).unwrap())
            .collect();
        let expected = ["a.cnf", "b.cnf", "deep/d.cnf"].map(Path::new);
        assert_eq!(found, expected);
        assert!(files_of(&folder.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn files_and_folders_have_a_limit() {
        let folder = testkit::Folder::new("from").unwrap();
        let many = folder.path().join("many");
        fs::create_dir(&many).unwrap();
        for number in 0..FILES_MAX {
            fs::write(many.join(format!("{number}.cnf")), "").unwrap();
        }
        assert_eq!(files_of(&many).unwrap().len(), FILES_MAX);
        fs::write(many.join("x.cnf"), "").unwrap();
        assert!(files_of(&many).is_err());
        let deep = folder.path().join("deep");
        let of_depth = |depth: usize| {
            fs::create_dir_all(deep.join("d/".repeat(depth))).unwrap();
            files_of(&deep)
        };
        assert!(of_depth(DEPTH_MAX - 1).is_ok() && of_depth(DEPTH_MAX).is_ok());
        assert!(of_depth(DEPTH_MAX + 1).is_err());
    }
}
