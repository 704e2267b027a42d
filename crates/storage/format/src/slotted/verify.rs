//! Whether a whole page keeps its rules.

use super::*;

/// Checks (I1) to (I3) of a whole page.
pub fn verify(page: &[u8]) -> Result<(), ChangeError> {
    let view = view(page)?;
    let facts = || -> Option<(usize, usize, usize, usize)> {
        let floor = view.upper()?.offset;
        Some((
            view.slot_count()?,
            usize::from(page.u16_at(HEAP_START)?),
            floor,
            view.prefix_length()?,
        ))
    };
    let (count, heap_start, floor, prefix_length) = facts().ok_or(damaged("header"))?;
    let slots_end = SLOTS_START + count * SLOT_BYTES;
    if heap_start < slots_end || floor < heap_start {
        return Err(damaged("the heap leaves its bounds"));
    }
    verify_fences(view, prefix_length)?;
    let mut used = 0;
    let mut previous: Option<Vec<u8>> = None;
    for slot in 0..count {
        let (offset, key_length, payload_length) = view.cell(slot).ok_or(damaged("cell"))?;
        let length = CELL_HEADER_BYTES + key_length + payload_length;
        if offset < heap_start || floor < offset + length {
            return Err(damaged("a cell leaves the heap"));
        }
        used += length;
        previous = Some(verify_key(view, slot, previous.as_deref())?);
    }
    let garbage = usize::from(page.u16_at(GARBAGE).ok_or(damaged("header"))?);
    if heap_start + used + garbage != floor {
        return Err(damaged("the heap's bytes do not add up"));
    }
    Ok(())
}

fn verify_fences(view: TreePage<'_, [u8]>, prefix_length: usize) -> Result<(), ChangeError> {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    let read = view
        .append_lower(&mut lower)
        .and_then(|()| view.append_upper(&mut upper));
    let has_upper = read.ok_or(damaged("fences"))?;
    let expected = if has_upper {
        common_prefix(&lower, &upper)
    } else {
        0
    };
    if has_upper && upper <= lower {
        return Err(damaged("the fences are not ascending"));
    }
    if prefix_length != expected {
        return Err(damaged("the prefix is not that of the fences"));
    }
    Ok(())
}

fn verify_key(
    view: TreePage<'_, [u8]>,
    slot: usize,
    previous: Option<&[u8]>,
) -> Result<Vec<u8>, ChangeError> {
    let mut key = Vec::new();
    view.append_key(slot, &mut key).ok_or(damaged("key"))?;
    let prefix_length = view.prefix_length().ok_or(damaged("header"))?;
    let suffix = key.get(prefix_length..).ok_or(damaged("key"))?;
    if view.page.u32_at(SLOTS_START + slot * SLOT_BYTES) != Some(key_head(suffix)) {
        return Err(damaged("a key's head is not its start"));
    }
    if previous.is_some_and(|previous| key.as_slice() <= previous) {
        return Err(damaged("keys are not ascending"));
    }
    if view.covers(&key) != Some(true) {
        return Err(damaged("a key is outside the fences"));
    }
    Ok(key)
}
