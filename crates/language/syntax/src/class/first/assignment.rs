//! What one assignment of a SET does to transactions.

use super::super::effect::{SetCompletion, SetEffect, Switch};
use super::super::set::{Assignment, Scope, Target, Value, ValueKind};

/// Adds the effect of an assignment to those before it.
pub(super) fn set_effect(effect: &mut SetEffect, assignment: &Assignment<'_>) {
    let value = assignment.value;
    let is_phrase = matches!(
        assignment.target,
        Target::Transaction
            | Target::Names
            | Target::CharacterSet
            | Target::Role
            | Target::Password
            | Target::DefaultRole
    );
    effect.has_expression |= value.kind == ValueKind::Expression && !is_phrase;
    if assignment.scope == Scope::Global {
        return;
    }
    let is_next = assignment.scope == Scope::Bare;
    let is_any = |names: &[&str]| names.iter().any(|name| assignment.target.is_system(name));
    match assignment.target {
        Target::Transaction => characteristics(effect, value, assignment.scope),
        Target::System(_) if is_any(&["autocommit"]) => effect.autocommit = Some(switch(value)),
        Target::System(_) if is_any(&["tx_read_only", "transaction_read_only"]) => {
            let access = Some(switch(value));
            if is_next {
                effect.next_read_only = access;
            } else {
                effect.session_read_only = access;
            }
        }
        Target::System(_) if is_next && is_any(&["tx_isolation", "transaction_isolation"]) => {
            effect.sets_next_isolation = true;
        }
        Target::System(_) if is_any(&["completion_type"]) => {
            effect.completion = Some(completion_type(value));
        }
        _ => {}
    }
}

/// `READ ONLY`, `ISOLATION LEVEL READ COMMITTED`, or both.
fn characteristics(effect: &mut SetEffect, value: Value<'_>, scope: Scope) {
    let is_next = scope == Scope::Bare;
    for part in value.text.split(|&byte| byte == b',') {
        let mut words = part
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let is = |word: Option<&[u8]>, wanted: &str| {
            word.is_some_and(|word| word.eq_ignore_ascii_case(wanted.as_bytes()))
        };
        let (first, second) = (words.next(), words.next());
        let access = match () {
            () if is(first, "READ") && is(second, "ONLY") => Switch::On,
            () if is(first, "READ") && is(second, "WRITE") => Switch::Off,
            () if is(first, "ISOLATION") => {
                effect.sets_next_isolation |= is_next;
                continue;
            }
            // A comment stands between, or it is an error.
            () => Switch::Unknown,
        };
        if is_next {
            effect.next_read_only = Some(access);
        } else {
            effect.session_read_only = Some(access);
        }
    }
}

/// The value of a switch.
fn switch(value: Value<'_>) -> Switch {
    let is_any = |words: &[&str]| words.iter().any(|word| value.is(word));
    match value.kind {
        ValueKind::Expression | ValueKind::Default => Switch::Unknown,
        _ if is_any(&["1", "ON", "TRUE"]) => Switch::On,
        _ if is_any(&["0", "OFF", "FALSE"]) => Switch::Off,
        _ => Switch::Unknown,
    }
}

fn completion_type(value: Value<'_>) -> SetCompletion {
    let is_any = |words: &[&str]| words.iter().any(|word| value.is(word));
    match value.kind {
        ValueKind::Expression | ValueKind::Default => SetCompletion::Unknown,
        _ if is_any(&["0", "NO_CHAIN"]) => SetCompletion::NoChain,
        _ if is_any(&["1", "CHAIN"]) => SetCompletion::Chain,
        _ if is_any(&["2", "RELEASE"]) => SetCompletion::Release,
        _ => SetCompletion::Unknown,
    }
}
