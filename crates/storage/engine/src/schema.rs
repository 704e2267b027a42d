//! Tables in the engine: their definitions, the dictionary that keeps these, and their statistics.

pub(crate) mod dictionary;
pub(crate) mod new_counter;
pub(crate) mod statistics;
pub(crate) mod table_shape;
