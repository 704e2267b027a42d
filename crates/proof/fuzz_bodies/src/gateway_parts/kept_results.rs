//! The result cache: replies of any bytes, and keys of any texts.

use std::sync::Arc;

use env::Instant;
use link::{Part, Reply};
use result_cache::{Cache, CacheOptions, Lifetime, Lookup, Miss, Scope, Tables};
use router::Judge;
use settings::SqlMode;
use syntax::token::{Kind, Lexer};
use wire::{Capabilities, CommandByte};

use crate::choices::Choices;

/// Any bytes pass as a reply. What is kept of them is told as it was, is one result set, and shows
/// where its status is.
pub(crate) fn run_reply(input: &[u8]) {
    let mut choices = Choices::new(input);
    let capabilities = match choices.below(2) {
        0 => Capabilities::PROTOCOL_41,
        _ => Capabilities::PROTOCOL_41 | Capabilities::DEPRECATE_EOF,
    };
    let piece = 1 + choices.below(64);
    let bytes = choices.rest();
    let tables = Arc::new(Tables::default());
    tables.learn(tables.doubts(), &[]);
    let cache = Arc::new(Cache::of_worker(CacheOptions {
        bytes_max: 1 << 20,
        reply_bytes_max: 64 << 10,
        lifetime: Lifetime {
            hard: None,
            soft: None,
        },
    }));
    let empty = cache.budget().used();
    let scope = Scope::of([]);
    let query = cache.query(&scope, b"q");
    let now = Instant::default();
    let filling = cache
        .fill(&query, (Arc::new([]), tables.now()), Miss::Again)
        .expect("it was asked for before");
    let mut onlooker = filling.onlooker();
    bytes.chunks(piece).for_each(|it| onlooker.passed(it));
    drop(onlooker);
    let of = (CommandByte::QUERY, capabilities);
    let is_kept = filling.keep(of, (Some(&tables), now));
    let Lookup::Reply(kept) = cache.find(&query, Some(&tables), now) else {
        assert!(!is_kept, "it was kept");
        return;
    };
    assert!(is_kept && kept.bytes() == bytes);
    for place in kept.status_places() {
        assert!(place + 2 <= bytes.len());
    }
    let mut reply = Reply::new(CommandByte::QUERY, capabilities);
    let head = bytes.get(4..).expect("it has a head");
    let first = reply.take(usize::from(bytes[0]), head);
    assert_eq!(first, Ok(Some(Part::Head)));
    drop(kept);
    cache.clear();
    assert_eq!(cache.budget().used(), empty);
}

/// Two texts have one key only if they have the same tokens: they differ in comments and blanks
/// alone.
pub(crate) fn run_key(input: &[u8]) {
    let mut choices = Choices::new(input);
    let (at, byte) = (choices.below(256), choices.short().first().copied());
    let text = choices.rest();
    let mut other = text.to_vec();
    if let (Some(byte), Some(changed)) = (byte, other.get_mut(at)) {
        *changed = byte;
    }
    let mut judge = Judge::default().looking_at_tables();
    let mut key = |text: &[u8]| {
        let mut key = Vec::new();
        judge.judge(text, SqlMode::default());
        judge.append_meaning(text, &mut key).then_some(key)
    };
    if let (Some(one), Some(other_key)) = (key(text), key(&other))
        && one == other_key
    {
        assert_eq!(tokens(text), tokens(&other));
    }
}

fn tokens(text: &[u8]) -> Vec<(Kind, &[u8])> {
    let mut lexer = Lexer::new(text, SqlMode::default());
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next_token();
        if token.kind == Kind::End {
            return tokens;
        }
        tokens.push((token.kind, token.span.of(text)));
    }
}
