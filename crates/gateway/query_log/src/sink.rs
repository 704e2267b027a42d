//! [`Sink`]: the files of the log. All of it blocks.
//!
//! A chunk of lines is written whole, or it is cut off again: each file has whole lines. A program
//! that has moved the file or cut it is followed, once the file was opened again, or at once.

use std::path::PathBuf;

use env::{Disk, DiskError, DiskErrorKind, File, FileAccess, OpenOptions};

use crate::chunk::Chunk;
use crate::rotation;

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The file that is written.
    pub path: PathBuf,
    /// Its size, in bytes. Then the next one takes its place.
    pub bytes_max: u64,
    /// How many full ones are kept beside it.
    pub kept: u32,
}

/// A file that lines are added to.
#[derive(Debug)]
pub struct Opened {
    files: Files,
    file: File,
}

impl Opened {
    /// Opens or creates the file. Blocks.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(disk: &dyn Disk, files: &Files) -> Result<Opened, DiskError> {
        Ok(Opened {
            file: disk.open(&files.path, TO_ADD)?,
            files: files.clone(),
        })
    }
}

const TO_ADD: OpenOptions = OpenOptions {
    write: true,
    create: true,
    exclusive: false,
    access: FileAccess::Buffered,
};

const TO_LOOK: OpenOptions = OpenOptions {
    create: false,
    ..TO_ADD
};

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    opened: Option<Opened>,
    /// Lines that were dropped since lines were written last. The program's log was told, unless
    /// there are none.
    lost: u64,
    /// The program's log was told that a full file cannot be replaced.
    is_stuck: bool,
}

impl Sink {
    /// From here on this file is written, or none.
    pub(crate) fn use_file(&mut self, opened: Option<Opened>) {
        self.opened = opened;
        self.is_stuck = false;
    }

    /// So many lines were dropped because the disk was too slow.
    pub(crate) fn note_overflow(&mut self, count: u64) {
        if 0 < count && self.lost == 0 {
            tracing::warn!("the query log's disk is too slow: lines are dropped until it is not");
        }
        self.lost += count;
    }

    /// Writes lines. Returns whether they are there.
    pub(crate) fn write(&mut self, disk: &dyn Disk, chunk: &Chunk) -> bool {
        if self.opened.is_none() {
            return false;
        }
        match self.try_write(disk, &chunk.bytes) {
            Ok(()) => {
                if 0 < self.lost {
                    let dropped = std::mem::take(&mut self.lost);
                    tracing::info!(dropped, "the query log is written again");
                }
                true
            }
            Err(error) => {
                if self.lost == 0 {
                    tracing::warn!(
                        %error,
                        "the query log cannot be written: lines are dropped until it can"
                    );
                }
                self.lost += chunk.count;
                false
            }
        }
    }

    fn try_write(&mut self, disk: &dyn Disk, bytes: &[u8]) -> Result<(), DiskError> {
        let Some(opened) = &mut self.opened else {
            return Ok(());
        };
        let mut length = disk.length(&opened.file)?;
        let bytes_max = opened.files.bytes_max;
        if rotation::is_due(length, stdx::to_u64(bytes.len()), bytes_max) {
            match opened.rotate(disk) {
                Ok(()) => {
                    self.is_stuck = false;
                    length = 0;
                }
                // A file that grows is better than lines that are lost.
                Err(error) if !self.is_stuck => {
                    self.is_stuck = true;
                    tracing::warn!(%error, "a full file of the query log cannot be replaced");
                }
                Err(_) => {}
            }
        }
        let written = disk.write_now(&opened.file, length, bytes);
        if written.is_err() {
            // If this fails, too, the next lines follow a part of one.
            let _ = disk.set_length(&opened.file, length);
        }
        written
    }
}

impl Opened {
    /// Puts an empty file in the place of the full one. If it fails, that is written on.
    fn rotate(&mut self, disk: &dyn Disk) -> Result<(), DiskError> {
        let next = rotation::next_name(&self.files.path);
        let file = disk.open(&next, TO_ADD)?;
        disk.set_length(&file, 0)?;
        // Where the last move has failed, or another program has moved the full file away, nothing
        // has its name. If older files moved on then, each try would lose the oldest.
        let kept = match disk.open(&self.files.path, TO_LOOK) {
            Err(error) if error.kind == DiskErrorKind::NotFound => 0,
            looked => looked.map(|_| self.files.kept)?,
        };
        for (from, to) in rotation::moves(&self.files.path, kept) {
            match disk.rename(&from, &to) {
                Err(error) if error.kind != DiskErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.file = file;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
