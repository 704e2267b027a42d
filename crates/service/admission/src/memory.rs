//! [`Memory`]: what each limit was worth, so that trials of one limit add up.
//!
//! One trial is short, because it costs throughput if it was a bad one. So it is noisy. What is
//! known of the same limit from before counts with it, each by how exact it is. Old knowledge fades
//! by [`FADE`] with each new window there.

use crate::window::Point;

/// Cells in an octave: as fine as the shortest step.
const CELLS_PER_OCTAVE: f64 = 8.0;
/// Of the weight of what was known, at each new window.
const FADE: f64 = 0.7;
/// The smallest error that is believed; else a few windows would outweigh all later ones.
const ERROR_MIN: f64 = 0.004;

/// See the module's head.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// Few: those limits that were tried since the load has changed.
    cells: Vec<Cell>,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    /// On the scale of octaves.
    place: f64,
    /// Work a second.
    rate: f64,
    /// One through the square of its error.
    weight: f64,
}

impl Memory {
    /// Adds a point. Returns it with what was known before.
    pub(crate) fn merge(&mut self, measured: Point) -> Point {
        let place = place(measured.limit);
        let weight = measured.error.max(ERROR_MIN).powi(-2);
        let found = self.cells.iter_mut().find(|it| is_same(it.place, place));
        let Some(cell) = found else {
            self.cells.push(Cell {
                place,
                rate: measured.rate,
                weight,
            });
            return measured;
        };
        cell.weight *= FADE;
        let sum = cell.weight + weight;
        cell.rate = (cell.rate * cell.weight + measured.rate * weight) / sum;
        cell.weight = sum;
        Point {
            rate: cell.rate,
            error: sum.sqrt().recip(),
            ..measured
        }
    }

    /// All rates but that of `limit` have changed by this factor.
    pub(crate) fn scale(&mut self, factor: f64, limit: f64) {
        let own = place(limit);
        let others = self.cells.iter_mut().filter(|it| !is_same(it.place, own));
        others.for_each(|cell| cell.rate *= factor);
    }
}

fn place(limit: f64) -> f64 {
    (limit.max(1.0).log2() * CELLS_PER_OCTAVE).round()
}

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.5
}
