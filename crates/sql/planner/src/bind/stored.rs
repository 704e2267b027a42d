//! Calls of stored functions.

use std::rc::Rc;

use errcode::{ER_FUNC_INEXISTENT_NAME_COLLISION, ER_SP_DOES_NOT_EXIST, ER_SP_WRONG_NO_OF_ARGS};
use expression::{Expression, ExpressionKind, StoredCall};
use syntax::ast;

use super::term::Bound;
use super::{Binder, error};

impl Binder<'_> {
    /// A call of a stored function, or error 1305; 1630 if a built-in function has the name, but
    /// this is no call of it.
    pub(super) fn stored(&mut self, call: &ast::Function, arguments: Vec<Expression>) -> Bound {
        let database = match &call.schema {
            Some(schema) => schema.text.clone(),
            None => self.settings.database.clone().unwrap_or_default(),
        };
        let name = call.name.text.as_str();
        let full = match database.as_str() {
            "" => name.to_owned(),
            database => format!("{database}.{name}"),
        };
        let Some(function) = self.names.stored_function(&database, name)? else {
            let is_word = name.starts_with(|first: char| first.is_ascii_alphabetic());
            if call.schema.is_none() && is_word && builtin::find(name.as_bytes()).is_some() {
                return Err(error(ER_FUNC_INEXISTENT_NAME_COLLISION, &[&full]));
            }
            return Err(error(ER_SP_DOES_NOT_EXIST, &[&"FUNCTION", &full]));
        };
        let (wanted, given) = (function.parameter_count, arguments.len());
        if wanted != given {
            let code = ER_SP_WRONG_NO_OF_ARGS;
            return Err(error(code, &[&"FUNCTION", &full, &wanted, &given]));
        }
        let number = self.subqueries.len();
        self.subqueries.push(None);
        self.subquery_slots.push(Vec::new());
        if !self.functions.contains(&function) {
            self.functions.push(Rc::clone(&function));
        }
        let column_type = function.returns.clone();
        let call = StoredCall {
            number,
            function,
            arguments,
        };
        let kind = ExpressionKind::Stored(Box::new(call));
        Ok(Expression::new(kind, column_type))
    }
}
