//! [`Pieces`]: buffers that wait to be sent before what is written next.
//!
//! Long packets ([`wire::LongPacket`]) consist of them. They go out one by one, each is freed once
//! it was sent, and what is left of a connection that ends is freed later.

use stdx::DeferredDropVec;

/// Buffers in the order in which they go out. Few links have any, so they stand elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Option<Box<List>>);

#[derive(Debug, Default)]
struct List {
    /// Those that were taken are empty.
    pieces: DeferredDropVec<Vec<u8>>,
    /// How many were taken.
    taken: usize,
    /// What the others may hold, in sum.
    bytes: usize,
}

impl Pieces {
    /// What those that wait take of memory.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.bytes)
    }

    /// Whether none waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds one that is not empty behind all others.
    pub(crate) fn push(&mut self, piece: Vec<u8>) {
        let list = self.0.get_or_insert_default();
        list.bytes += piece.capacity();
        list.pieces.push(piece);
    }

    /// Adds those of a packet behind all others.
    pub(crate) fn append(&mut self, mut pieces: DeferredDropVec<Vec<u8>>) {
        for piece in pieces.iter_mut() {
            self.push(std::mem::take(piece));
        }
    }

    /// Takes the first.
    pub(crate) fn take_first(&mut self) -> Option<Vec<u8>> {
        let list = self.0.as_mut()?;
        let piece = std::mem::take(list.pieces.get_mut(list.taken)?);
        list.taken += 1;
        list.bytes -= piece.capacity();
        if list.taken == list.pieces.len() {
            self.0 = None;
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_go_out_in_order() {
        let mut pieces = Pieces::default();
        assert!(pieces.is_empty() && pieces.take_first().is_none());
        let mut packet = DeferredDropVec::new();
        packet.push(vec![2; 20]);
        packet.push(vec![3; 30]);
        pieces.push(vec![1; 10]);
        pieces.append(packet);
        assert_eq!(pieces.bytes(), 60);
        assert_eq!(pieces.take_first(), Some(vec![1; 10]));
        assert_eq!(pieces.bytes(), 50);
        pieces.push(vec![4]);
        assert_eq!(pieces.take_first(), Some(vec![2; 20]));
        assert_eq!(pieces.take_first(), Some(vec![3; 30]));
        assert_eq!(pieces.take_first(), Some(vec![4]));
        assert!(pieces.is_empty() && pieces.take_first().is_none());
    }
}
