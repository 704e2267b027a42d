//! `cache_ttl` of rules, and `query_cache_*`: sections `cache`, one for each time.

use crate::cache::{CACHES_MAX, Memory};
use crate::output::{Block, Output, seconds_of_year};

use super::row::Row;

/// Megabytes of ProxySQL's cache, if its file does not say them.
const MEGABYTES: u64 = 256;

/// What variables say of the cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheVariables {
    bytes: u64,
    /// Which part of its time a result is told without being renewed.
    soft_percent: Option<u64>,
}

impl CacheVariables {
    pub(super) fn read(row: &mut Row<'_>) -> CacheVariables {
        let megabytes = row.count(&["query_cache_size_MB"]).unwrap_or(MEGABYTES);
        let percent = row.count(&["query_cache_soft_ttl_pct"]);
        CacheVariables {
            bytes: megabytes.saturating_mul(1 << 20),
            soft_percent: percent.filter(|it| *it < 100),
        }
    }
}

/// The caches that rules name, by the milliseconds that they keep results.
#[derive(Debug, Default)]
pub(super) struct Caches(Vec<u64>);

impl Caches {
    /// The name of the cache for this time; `None` if there may be no more.
    pub(super) fn name(&mut self, ttl: u64) -> Option<String> {
        if !self.0.contains(&ttl) {
            if CACHES_MAX <= self.0.len() {
                return None;
            }
            self.0.push(ttl);
        }
        Some(name(ttl))
    }

    /// Writes them. They share what ProxySQL's cache has.
    pub(super) fn write(&self, variables: CacheVariables, output: &mut Output) {
        let count = u64::try_from(self.0.len()).unwrap_or(u64::MAX).max(1);
        for ttl in &self.0 {
            let mut block = Block::default();
            block.comment(
                "As in ProxySQL, a result is told for so long, whatever was changed meanwhile. \
                 Without `assume_cacheable` and `ttl`, it is never older than a change: \
                 docs/cache.md.",
            );
            block.set("name", name(*ttl));
            Memory::of(variables.bytes / count, None).write(&mut block);
            block.set("ttl", seconds_of_year(*ttl));
            let soft = variables.soft_percent.and_then(|it| soft(*ttl, it));
            if let Some(soft) = soft {
                block.set("soft_ttl", seconds_of_year(soft));
            }
            block.set("assume_cacheable", true);
            output.add("cache", block);
        }
    }
}

fn name(ttl: u64) -> String {
    format!("ttl-{ttl}ms")
}

/// The milliseconds behind which a result is renewed.
fn soft(ttl: u64, percent: u64) -> Option<u64> {
    let soft = ttl.checked_mul(percent)? / 100;
    Some(soft).filter(|it| *it != 0)
}
