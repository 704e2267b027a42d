//! Roles of the members of a Galera cluster.
//!
//! Every synced member of the primary component serves reads. One of them takes the writes, since
//! writes on several members conflict at commit. The present writer keeps its place as long as it
//! serves; otherwise rank and then the lowest `wsrep_local_index` decide among those that are not
//! draining and not read-only.
//!
//! A donor, and a member that was desynchronized by hand, fall behind without end. So they serve
//! only if no synced member is left. That is the case in a cluster of one when the second joins.
//!
//! Members of two clusters, or of both halves of a split one, are never mixed: the side of the
//! present writer is kept, else the side with more members. While a membership changes, members
//! tell different ones for a moment; so a difference within one cluster counts from the second
//! round on.

use std::sync::Arc;

use crate::facts::{Access, Facts, GALERA_DONOR, GALERA_SYNCED, GaleraFacts};
use crate::map::{Member, ServerMap};
use crate::notice::Notice;
use crate::rules::Rules;
use crate::state::{GaleraState, Order, Role, ServerId, Serves, Withheld};

/// Rounds in succession in which members of one cluster may tell different memberships.
const SPLIT_ROUNDS_MAX: u32 = 1;

/// One side of a cluster: its UUID, and the number of its membership.
type Side = (String, u64);

/// Gives each server its role.
pub(crate) fn assign(map: &mut ServerMap, rules: &Rules) {
    let own: Vec<Option<Withheld>> = map.members.iter().map(withheld).collect();
    let side = choose_side(map, &own);
    let is_split = map.split_rounds > SPLIT_ROUNDS_MAX;
    let on_side: Vec<Option<Withheld>> = map
        .members
        .iter()
        .zip(own)
        .map(|(member, own)| match (own, galera_of(member), &side) {
            (None | Some(Withheld::Desynced), Some(galera), Some((cluster, view)))
                if galera.cluster != *cluster || (is_split && galera.configuration != *view) =>
            {
                Some(Withheld::OtherCluster)
            }
            _ => own,
        })
        .collect();
    // Without a synced member, the desynced ones have to do.
    let has_synced = on_side.contains(&None);
    let final_of = |own: &Option<Withheld>| match own {
        Some(Withheld::Desynced) if !has_synced => None,
        other => *other,
    };
    let verdicts: Vec<Option<Withheld>> = on_side.iter().map(final_of).collect();
    map.primary = choose_writer(map, &verdicts);
    place(map, &verdicts, rules);
}

fn place(map: &mut ServerMap, verdicts: &[Option<Withheld>], rules: &Rules) {
    let primary = map.primary;
    for (member, verdict) in map.members.iter_mut().zip(verdicts) {
        if !member.memory.is_usable() {
            continue;
        }
        let id = member.state.id;
        member.state.galera = galera_of(member).map(|it| state(it, member));
        member.state.lag = verdict.is_none().then_some(std::time::Duration::ZERO);
        (member.state.role, member.state.serves) = match verdict {
            None if primary == Some(id) => (Role::GaleraWriter, Serves::ReadsAndWrites),
            None => (Role::GaleraMember, Serves::Reads),
            Some(Withheld::NotMember) => (Role::Unknown, Serves::Nothing(Withheld::NotMember)),
            Some(why) => (Role::GaleraMember, Serves::Nothing(*why)),
        };
        if *verdict == Some(Withheld::OtherCluster) {
            map.notices.insert(Notice::OtherCluster(id));
        }
        let paused = member
            .state
            .galera
            .as_ref()
            .map_or(0, |it| it.paused_permille);
        if rules.paused_permille_max <= paused {
            map.notices.insert(Notice::FlowControl(id));
        }
    }
}

fn galera_of(member: &Member) -> Option<&GaleraFacts> {
    member.memory.facts.as_ref()?.galera.as_ref()
}

/// What keeps a member out by itself.
fn withheld(member: &Member) -> Option<Withheld> {
    if !member.memory.is_usable() {
        return Some(Withheld::Down);
    }
    let Some(galera) = galera_of(member) else {
        return Some(Withheld::NotMember);
    };
    if !galera.is_in_primary_component {
        Some(Withheld::NonPrimaryComponent)
    } else if galera.rejects_queries {
        Some(Withheld::RejectsQueries)
    } else if !galera.is_ready {
        Some(Withheld::NotReady)
    } else {
        match galera.local_state {
            GALERA_SYNCED => None,
            GALERA_DONOR => Some(Withheld::Desynced),
            _ => Some(Withheld::NotReady),
        }
    }
}

/// The side whose members serve. Also counts the rounds in which one cluster tells several
/// memberships.
fn choose_side(map: &mut ServerMap, own: &[Option<Withheld>]) -> Option<Side> {
    let side_of = |member: &Member| {
        let galera = galera_of(member)?;
        Some((galera.cluster.clone(), galera.configuration))
    };
    let able: Vec<(ServerId, Side)> = map
        .members
        .iter()
        .zip(own)
        .filter(|(_, own)| matches!(own, None | Some(Withheld::Desynced)))
        .filter_map(|(member, _)| Some((member.state.id, side_of(member)?)))
        .collect();
    let present = map.primary.or(map.former_primary);
    let of_writer = able.iter().find(|(id, _)| Some(*id) == present);
    let size_of = |side: &Side| able.iter().filter(|(_, other)| other == side).count();
    let largest = || {
        let order = |(id, side): &&(ServerId, Side)| (std::cmp::Reverse(size_of(side)), *id);
        able.iter().min_by_key(order)
    };
    let side = of_writer.or_else(largest).map(|(_, side)| side.clone())?;
    let differs = |(_, other): &(ServerId, Side)| other.0 == side.0 && other.1 != side.1;
    map.split_rounds = match able.iter().any(differs) {
        true => map.split_rounds.saturating_add(1),
        false => 0,
    };
    Some(side)
}

fn choose_writer(map: &ServerMap, verdicts: &[Option<Withheld>]) -> Option<ServerId> {
    let is_writable = |member: &Member| {
        let facts = member.memory.facts.as_ref();
        facts.is_some_and(|facts| facts.access == Access::Writable)
    };
    let candidates = || {
        let able = map.members.iter().zip(verdicts);
        let able = able.filter(|(member, verdict)| verdict.is_none() && is_writable(member));
        able.map(|(member, _)| member)
    };
    let present = map.primary.or(map.former_primary);
    let keeps = candidates().find(|it| Some(it.state.id) == present);
    let order = |it: &&Member| {
        let is_draining = it.memory.order == Order::Drain;
        let index = galera_of(it).map(|galera| galera.index);
        (is_draining, it.state.entry.rank, index, it.state.id)
    };
    let chosen = keeps.or_else(|| candidates().min_by_key(order));
    chosen.map(|it| it.state.id)
}

fn state(galera: &GaleraFacts, member: &Member) -> GaleraState {
    GaleraState {
        cluster: Arc::from(galera.cluster.as_str()),
        size: galera.size,
        configuration: galera.configuration,
        index: galera.index,
        paused_permille: member.memory.paused_permille,
    }
}

/// The share of the time since `old` was read in which flow control held the member.
pub(crate) fn paused_permille(old: &Facts, new: &Facts) -> u16 {
    const WHOLE: u128 = 1000;
    let passed = new.read_at - old.read_at;
    let (Some(old), Some(new)) = (&old.galera, &new.galera) else {
        return 0;
    };
    // `FLUSH STATUS` sets it back.
    let paused_ns = new.paused_ns.saturating_sub(old.paused_ns);
    let share = u128::from(paused_ns) * WHOLE / passed.as_nanos().max(1);
    u16::try_from(share.min(WHOLE)).expect("at most a thousand")
}

#[cfg(test)]
mod tests;
