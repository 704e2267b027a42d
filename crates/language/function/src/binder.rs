//! Binds a call: turns a function and the types of its arguments into something that can be
//! evaluated.

mod registry;

use builtin::Function;
use errcode::{ER_COLLATION_CHARSET_MISMATCH, ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT};
use value::collation::{Coercibility, TextRule};
use value::{Charset, CollationId, ColumnType, Comparison, SqlCondition, TypeKind};

use crate::bind::{Arg, BindEnv, Binding, Bound};
use crate::geometry::{refuse, refuse_geometry};
use crate::infer::text_chars;
use registry::code_of;

/// Binds a call. `name` is the function's name in messages, in upper case.
///
/// # Errors
/// 1582 for a wrong number of arguments, 1267 for texts whose collations do not mix, and the errors
/// of single functions.
pub fn bind(
    function: Function,
    name: &'static str,
    args: &[Arg],
    env: &BindEnv,
) -> Result<Bound, SqlCondition> {
    let builtin = function.builtin();
    if args.len() < builtin.least || builtin.most < args.len() {
        return Err(SqlCondition::new(
            ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT,
            &[&name],
        ));
    }
    refuse(builtin, name, args)?;
    bind_function(function, name, args, env, None)
}

/// Binds CAST(argument AS target); the target's kind is one that CAST knows.
///
/// # Errors
/// As [`bind`].
pub fn bind_cast(arg: &Arg, target: ColumnType, env: &BindEnv) -> Result<Bound, SqlCondition> {
    if !(target.kind.is_bytes() && target.is_binary()) {
        let operation = match target.kind {
            TypeKind::Decimal | TypeKind::Float | TypeKind::Double => {
                format!("{}_typecast", target.kind.name())
            }
            kind if kind.is_integer() && target.unsigned => "cast_as_unsigned".to_owned(),
            kind if kind.is_integer() => "cast_as_signed".to_owned(),
            kind if kind.is_bytes() => "cast_as_char".to_owned(),
            kind => format!("cast_as_{}", kind.name()),
        };
        refuse_geometry(&arg.column, &operation)?;
    }
    let args = std::slice::from_ref(arg);
    bind_function(
        Function::Cast,
        Function::Cast.name(),
        args,
        env,
        Some(target),
    )
}

/// Binds `argument COLLATE collation`.
///
/// # Errors
/// 1253 if the collation belongs to another character set.
pub fn bind_collate(
    arg: &Arg,
    collation: CollationId,
    env: &BindEnv,
) -> Result<Bound, SqlCondition> {
    let text = if arg.is_text() {
        arg.column.charset()
    } else {
        env.collation.charset()
    };
    if text != collation.charset() {
        return Err(SqlCondition::new(
            ER_COLLATION_CHARSET_MISMATCH,
            &[&collation.name(), &text.name()],
        ));
    }
    let length = text_chars(arg);
    let target = ColumnType::varchar(length, collation);
    let args = std::slice::from_ref(arg);
    let mut bound = bind_function(Function::Cast, "COLLATE", args, env, Some(target))?;
    bound.name = Function::Cast.name();
    bound.rule = TextRule {
        collation,
        coercibility: Coercibility::Explicit,
        ..bound.rule
    };
    bound.nullable = arg.nullable;
    Ok(bound)
}

/// Binds `CONVERT(argument USING charset)`.
///
/// # Errors
/// As [`bind`].
pub fn bind_convert(arg: &Arg, charset: Charset, env: &BindEnv) -> Result<Bound, SqlCondition> {
    let length = text_chars(arg);
    let target = ColumnType::varchar(length, charset.default_collation());
    let args = std::slice::from_ref(arg);
    let mut bound = bind_function(Function::Cast, "CONVERT", args, env, Some(target))?;
    bound.name = Function::Cast.name();
    bound.rule.coercibility = Coercibility::Implicit;
    Ok(bound)
}

fn bind_function(
    function: Function,
    name: &'static str,
    args: &[Arg],
    env: &BindEnv,
    target: Option<ColumnType>,
) -> Result<Bound, SqlCondition> {
    let code = code_of(function);
    let mut binding = Binding {
        function,
        name,
        args,
        env,
        column: target.unwrap_or_else(|| ColumnType::new(TypeKind::Null)),
        nullable: args.iter().any(|arg| arg.nullable),
        rule: TextRule::numeric(env.collation),
        comparison: Comparison::Integer,
        texts: env.collation,
        choice: 0,
    };
    (code.infer)(&mut binding)?;
    if binding.column.kind.is_string() {
        binding.column.collation = binding.rule.collation;
    }
    Ok(Bound {
        column: binding.column.bounded(),
        nullable: binding.nullable,
        rule: binding.rule,
        text: "".into(),
        function,
        name,
        eval: code.eval,
        args: args.iter().map(|arg| arg.column.clone()).collect(),
        comparison: binding.comparison,
        texts: binding.texts,
        choice: binding.choice,
        resolves: function.builtin().reads_dates
            && args.iter().any(|arg| {
                let kind = arg.column.kind;
                matches!(
                    kind,
                    TypeKind::Enum | TypeKind::Set | TypeKind::Bit | TypeKind::Year
                )
            }),
        gives_moments: false,
    })
}

/// The common type of the results of several queries (UNION), with its nullability.
///
/// # Errors
/// 1267 if the collations of texts do not mix.
pub fn type_of_union(args: &[Arg], env: &BindEnv) -> Result<(ColumnType, bool), SqlCondition> {
    let bound = bind(Function::Coalesce, Function::Coalesce.name(), args, env)?;
    Ok((bound.column, args.iter().any(|arg| arg.nullable)))
}
