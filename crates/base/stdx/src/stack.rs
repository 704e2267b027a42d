//! How much of the stack a recursion has used, if its frames cannot be counted.

/// An address in the frame of the caller. The difference of two is the number of bytes between
/// them, if both are taken on the same stack.
#[inline(never)]
pub fn stack_place() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

#[cfg(test)]
mod tests {
    use super::stack_place;

    fn deeper(levels: usize) -> usize {
        let frame = std::hint::black_box([0_u8; 64]);
        let place = if levels == 0 {
            stack_place()
        } else {
            deeper(levels - 1)
        };
        place + usize::from(frame[0])
    }

    #[test]
    fn deeper_calls_are_further_away() {
        let start = stack_place();
        let near = start.abs_diff(deeper(4));
        let far = start.abs_diff(deeper(400));
        assert!(near + 64 * 300 < far);
        assert!(far < 1 << 20);
    }
}
