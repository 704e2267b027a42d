//! Filters `cache`: sections `cache`, and the services that use them.

use crate::cache::{CACHES_MAX, Memory};
use crate::known::{Known, boolean, known, left_out, plain, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Names, Output, seconds_of_year};

use super::service::Service;
use super::{Configuration, Draft, unit};

pub(super) const MODULE: &str = "cache";

/// `size` for a filter without a limit: the default here.
const BYTES_WITHOUT_LIMIT: u64 = 64 << 20;

/// Writes the caches that services use, and names them in the services.
pub(super) fn translate(
    configuration: &Configuration<'_>,
    services: &mut [Service],
    output: &mut Output,
    notes: &mut Vec<Note>,
) {
    let mut names = Names::default();
    let mut cache_count = 0;
    for section in configuration.all("filter") {
        let uses = |it: &Service| it.filters.contains(&section.name);
        if section.value("module") != Some(MODULE) || !services.iter().any(uses) {
            continue;
        }
        let mut draft = configuration.draft(section);
        if draft.text(&["enabled"]).and_then(boolean) == Some(false) {
            let text = "filter `cache`: with `enabled=false` it keeps nothing: there is no cache";
            notes.extend(draft.leave_out(Kind::LeftOut, text));
            continue;
        }
        if CACHES_MAX <= cache_count {
            let text = format!("filter `cache`: there may be {CACHES_MAX} caches");
            notes.extend(draft.leave_out(Kind::ToDo, text));
            continue;
        }
        let name = names.make(&section.name);
        let mut used = 0;
        for service in services.iter_mut().filter(|it| uses(it)) {
            match service.keep_in(&name) {
                Ok(()) => used += 1,
                Err(other) => {
                    let text = format!(
                        "a service has one cache, and `{}` has `{other}`: this one is not used",
                        service.section
                    );
                    draft.note_all(Kind::ToDo, text);
                }
            }
        }
        if used == 0 {
            notes.extend(draft.notes);
            continue;
        }
        let mut block = Block::default();
        block.set("name", name);
        memory(&mut draft, &mut block);
        lifetime(&mut draft, &mut block);
        let _ = draft.take(&["module"]);
        notes.extend(draft.finish(&[KNOWN], &mut block));
        output.add("cache", block);
        cache_count += 1;
    }
}

fn memory(draft: &mut Draft<'_>, block: &mut Block) {
    let mut limit = |name: &'static str| {
        let entry = draft.take(&[name])?;
        let bytes = unit::bytes(&entry.value);
        if bytes.is_none() {
            draft.note(entry, Kind::Unknown, "its value is no size");
        }
        bytes.filter(|it| *it != 0)
    };
    let (bytes, reply_bytes) = (limit("max_size"), limit("max_resultset_size"));
    if bytes.is_none() {
        let text = "MaxScale has no limit for all results without `max_size`: `size` is one";
        draft.note_all(Kind::Differs, text);
    }
    Memory::of(bytes.unwrap_or(BYTES_WITHOUT_LIMIT), reply_bytes).write(block);
    let is_shared = draft.text(&["cached_data"]).map(plain).as_deref() == Some("shared");
    if !is_shared {
        block.set("sharing", "worker");
        if bytes.is_some() {
            let text = "`max_size` was that of each thread; `size` is that of all workers together";
            draft.note_all(Kind::Differs, text);
        }
    }
}

/// Sets how long results are kept, and by whose word.
fn lifetime(draft: &mut Draft<'_>, block: &mut Block) {
    let hard = draft.milliseconds(&["hard_ttl"]).filter(|it| *it != 0);
    let soft = draft.milliseconds(&["soft_ttl"]).filter(|it| *it != 0);
    if let Some(hard) = hard {
        block.set("ttl", seconds_of_year(hard));
    }
    // MaxScale makes a longer one as long as `hard_ttl`, behind which nothing is told.
    if let Some(soft) = soft.filter(|soft| hard.is_none_or(|hard| *soft < hard)) {
        block.set("soft_ttl", seconds_of_year(soft));
    }
    let invalidates = draft.text(&["invalidate"]).map(plain).as_deref() == Some("current");
    let assumes = match draft.take(&["selects"]) {
        None => true,
        Some(entry) => plain(&entry.value) == "assume_cacheable",
    };
    if assumes && !invalidates && hard.is_some() {
        block.set("assume_cacheable", true);
        return;
    }
    if assumes {
        let text = match invalidates {
            true => {
                "`invalidate=current`: only those results are kept of which all changes are seen"
            }
            false => {
                "without `hard_ttl`, `assume_cacheable` would keep results for ever: only those \
                 are kept of which all changes are seen"
            }
        };
        draft.note_all(Kind::Differs, text);
    }
    let text = "GRANT SELECT, TRIGGER ON *.* TO the account of the monitor: without it, nothing \
                is kept";
    draft.note_all(Kind::ToDo, text);
}

const KNOWN: &[Known] = &[
    same("enabled"),
    known(
        "storage",
        &["inmemory", "storage_inmemory"],
        Kind::LeftOut,
        "results are kept in the gateway's own memory, and other gateways do not see them",
    ),
    left_out(
        "storage_*",
        "results are kept in the gateway's own memory, without options",
    ),
    same("timeout"),
    known(
        "rules",
        &[""],
        Kind::ToDo,
        "its file is not read, and results of all queries are kept: write sections `rule` with \
         `cache`, or `cache = \"off\"`",
    ),
    known(
        "max_count",
        &["0"],
        Kind::LeftOut,
        "results are limited by `size`, not by their number",
    ),
    known(
        "max_resultset_rows",
        &["0", "-1"],
        Kind::LeftOut,
        "a result is limited by `max_reply_size`, not by its rows",
    ),
    known(
        "cache_in_transactions",
        &["all_transactions"],
        Kind::Differs,
        "a transaction may be told kept results before its first write, and none behind it",
    ),
    known(
        "users",
        &["isolated"],
        Kind::Differs,
        "an account is told its own results alone",
    ),
    known(
        "clear_cache_on_parse_errors",
        &["true"],
        Kind::Differs,
        "a change whose tables a text does not show makes all results void",
    ),
    known(
        "debug",
        &["0"],
        Kind::LeftOut,
        "the log tells of no results: `plateau.cache` counts them",
    ),
];
