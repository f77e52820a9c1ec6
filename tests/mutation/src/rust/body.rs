//! What a function may return at once, by its type.

use syn::{GenericArgument, PathArguments, ReturnType, Type, TypePath};

/// The statements that end a function before it has done anything.
pub(super) fn statements(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["return;".to_owned()],
        ReturnType::Type(_, of) => values(of).into_iter().map(|value| format!("return {value};")).collect(),
    }
}

fn values(of: &Type) -> Vec<String> {
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    match of {
        Type::Path(path) => of_path(path),
        Type::Tuple(tuple) if tuple.elems.is_empty() => owned(&["()"]),
        Type::Tuple(_) => owned(&["Default::default()"]),
        Type::Reference(reference) if reference.mutability.is_none() => match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => owned(&["\"\""]),
            Type::Slice(_) => owned(&["&[]"]),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn of_path(of: &TypePath) -> Vec<String> {
    let Some(last) = of.path.segments.last() else { return Vec::new() };
    let argument = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.first(),
        _ => None,
    };
    let inner = || match argument {
        Some(GenericArgument::Type(inner)) => values(inner),
        _ => Vec::new(),
    };
    let wrapped = |name: &str| inner().into_iter().map(|value| format!("{name}({value})")).collect();
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    match last.ident.to_string().as_str() {
        "bool" => owned(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => {
            owned(&["0", "1"])
        }
        "Option" => owned(&["None"]),
        "Result" => wrapped("Ok"),
        "Poll" => owned(&["std::task::Poll::Pending"]),
        "String" => owned(&["String::new()"]),
        "Vec" => owned(&["Vec::new()"]),
        "Duration" => owned(&["std::time::Duration::ZERO"]),
        _ => owned(&["Default::default()"]),
    }
}
