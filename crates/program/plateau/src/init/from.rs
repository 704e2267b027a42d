//! `plateau init gateway --from FILE`: reads the files, and says what [`migrate`] has found.

use std::fs::{self, File};
use std::io::Read as _;
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
    let file = File::open(path).with_context(|| name.clone())?;
    // A device tells no length, and some have no end.
    let bytes_max = stdx::to_u64(migrate::TEXT_BYTES_MAX);
    let mut text = String::new();
    let read = file.take(bytes_max + 1).read_to_string(&mut text);
    let is_longer = migrate::TEXT_BYTES_MAX < text.len();
    if read.is_ok() && is_longer {
        bail!("{name} has more than {bytes_max} bytes, which is the limit");
    }
    read.with_context(|| name.clone())?;
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
    fn a_file_without_an_end_is_refused() {
        let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/zero has more than "), "{error}");
        let folder = testkit::Folder::new("from").unwrap();
        let file = folder.path().join("whole.cnf");
        let mut text = "#".repeat(migrate::TEXT_BYTES_MAX);
        fs::write(&file, &text).unwrap();
        assert_eq!(read(&file).unwrap().text, text);
        text.push('#');
        fs::write(&file, &text).unwrap();
        assert!(read(&file).is_err());
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
