//! NULL arguments.

/// Makes the function return NULL if an argument is NULL.
macro_rules! some {
    ($value:expr) => {
        match $value {
            Some(value) => value,
            None => return Ok(Value::Null),
        }
    };
}
pub(crate) use some;
