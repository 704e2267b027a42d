//! The caches of results of a gateway, from their sections.

use std::sync::Arc;

use gateway::{CacheId, CacheOptions, Lifetime, ResultCacheOptions, Router, Sharing, Trust};
use gateway::{REPLY_PART, ServiceOptions};
use router::CacheUse;
use settings::{Configuration, Entry, Value};

use super::limit;
use super::mistakes::Mistakes;

/// What a rule says that keeps no results.
const OFF: &str = "off";

/// The caches that a configuration has, as far as they have no mistakes.
pub(super) fn read(
    configuration: &Configuration,
    mistakes: &mut Mistakes,
) -> Vec<ResultCacheOptions> {
    let entries = configuration.sections.all("cache");
    entries.map(|entry| cache(entry, mistakes)).collect()
}

/// The cache of a section, without what is wrong with it.
fn cache(entry: &Entry, mistakes: &mut Mistakes) -> ResultCacheOptions {
    let name = entry.name().unwrap_or_default();
    let bytes = |field| match entry.value(field) {
        Some(Value::Unsigned(bytes)) => usize::try_from(*bytes).unwrap_or(usize::MAX),
        _ => 0,
    };
    let (bytes_max, reply_bytes_max) = (bytes("size"), bytes("max_reply_size"));
    if bytes_max / REPLY_PART < reply_bytes_max {
        let told = format!(
            "cache `{name}`: its `max_reply_size`, 1M unless it is set, is more than an eighth of \
             its `size`: one reply would take the place of all others. Set a smaller \
             `max_reply_size`, or a larger `size`"
        );
        mistakes.add(entry, told);
    }
    let (hard, soft) = (limit(entry, "ttl"), limit(entry, "soft_ttl"));
    if let (Some(hard), Some(soft)) = (hard, soft)
        && hard <= soft
    {
        let told = format!("cache `{name}`: its `soft_ttl` is not less than its `ttl`");
        mistakes.add(entry, told);
    }
    let trust = match entry.value("assume_cacheable") {
        Some(Value::Bool(true)) => Trust::Vouched,
        _ => Trust::Verified,
    };
    if trust == Trust::Vouched && hard.is_none() {
        let told = format!(
            "cache `{name}`: with `assume_cacheable` it needs a `ttl`, since no change of a table \
             ends a result"
        );
        mistakes.add(entry, told);
    }
    let follows = entry.text("follow") == Some("binary-log");
    if trust == Trust::Vouched && follows {
        let told = format!(
            "cache `{name}`: with `assume_cacheable` no change of a table ends a result, so it \
             cannot `follow` a binary log"
        );
        mistakes.add(entry, told);
    }
    ResultCacheOptions {
        name: name.into(),
        sharing: match entry.text("sharing") {
            Some("worker") => Sharing::Worker,
            _ => Sharing::All,
        },
        trust,
        follows,
        cache: CacheOptions {
            bytes_max,
            reply_bytes_max,
            lifetime: Lifetime { hard, soft },
        },
    }
}

/// The cache that a service names.
pub(super) fn of_service(entry: &Entry, configuration: &Configuration) -> Option<CacheId> {
    let named = entry.text("cache")?;
    let mut names = configuration.sections.all("cache").map(Entry::name);
    let is_it = |name: Option<&str>| name.is_some_and(|it| it.eq_ignore_ascii_case(named));
    names.position(is_it).map(CacheId)
}

/// What a rule says about keeping results, and what is wrong with that.
pub(super) fn of_rule(
    entry: &Entry,
    configuration: &Configuration,
    wrong: &mut Vec<String>,
) -> Option<CacheUse> {
    let named = entry.text("cache")?;
    if named == OFF {
        return Some(CacheUse::Off);
    }
    let mut names = configuration.sections.all("cache").filter_map(Entry::name);
    let found = names.find(|it| it.eq_ignore_ascii_case(named));
    if found.is_none() {
        wrong.push(format!(
            ": there is no section `cache` with the name `{named}`, and `{OFF}` is no such name"
        ));
    }
    found.map(|name| CacheUse::In(Arc::from(name)))
}

/// Names services whose statements a cache does not see, or whose results cannot be kept.
pub(super) fn find_unseen(
    (entries, services): (&[&Entry], &[ServiceOptions]),
    caches: &[ResultCacheOptions],
    mistakes: &mut Mistakes,
) {
    let verified = caches.iter().find(|it| it.trust == Trust::Verified);
    for (entry, service) in entries.iter().zip(services) {
        if service.multiplexes {
            continue;
        }
        let name = &service.name;
        if service.cache.is_some() {
            let told = format!(
                "service `{name}`: with `multiplex = false` its statements are not looked at, so \
                 it can have no `cache`"
            );
            mistakes.add(entry, told);
        } else if let (Router::ReadConnection(_), Some(cache)) = (service.router, verified) {
            let cache = &cache.name;
            let told = format!(
                "service `{name}`: without `multiplex` nobody sees what its clients change, so the \
                 results in the cache `{cache}` would be old"
            );
            mistakes.add(entry, told);
        }
    }
}
