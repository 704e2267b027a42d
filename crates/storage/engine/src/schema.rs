//! Tables in the engine: their definitions, the dictionary that keeps these, and changes of both.

pub(crate) mod ddl;
pub(crate) mod dictionary;
pub(crate) mod index_build;
pub(crate) mod left_space;
pub(crate) mod statistics;
pub(crate) mod table_shape;
