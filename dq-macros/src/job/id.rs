//! The id of a job: a field of its payload, or a template.

use dq_grammar::check_id;
use syn::{Data, DeriveInput, LitStr, Member, Type};

use super::parse::members;
use crate::errors::{Errors, nearest};

/// The source of the id.
#[derive(Debug)]
pub(super) enum IdSource {
    /// dq generates it.
    Generated,
    /// A field, and its type.
    Field(Member, Box<Type>),
    /// A template: the text for `format_args!`, and its fields in order.
    Template(LitStr, Vec<Member>),
}

/// The template of `id = "{tenant}:{order_id}"`, or of a `group` or a `weight`; `{{` and `}}` stand for braces.
pub(super) fn template(key: &str, text: &LitStr, input: &DeriveInput, errors: &mut Errors) -> Option<IdSource> {
    let Data::Struct(data) = &input.data else {
        errors.at(text, format!("an enum has no fields to build the {key} from: put the enum in a struct"));
        return None;
    };
    let fields: Vec<_> = members(&data.fields).map(|(member, _)| member).collect();
    let names: Vec<_> = fields.iter().map(name).collect();
    let (format, placeholders) = split(&text.value()).or_else(|| {
        errors.at(text, "a brace has no partner: write `{field}`, or `{{` for a brace");
        None
    })?;
    if key == "id" && placeholders.is_empty() && !fields.is_empty() {
        let field = &names[0];
        errors.at(
            text,
            format!("every job would have the id `{}`: name a field, as in `id = \"{{{field}}}\"`", text.value()),
        );
        return None;
    }
    if placeholders.is_empty()
        && let Err(bad) = check_id(&format.replace("{{", "{").replace("}}", "}"))
    {
        errors.at(text, bad);
        return None;
    }
    let mut used = Vec::new();
    for placeholder in &placeholders {
        match names.iter().position(|name| name == placeholder) {
            Some(index) => used.push(fields[index].clone()),
            None => {
                let near = nearest(placeholder, names.iter().map(String::as_str));
                let hint = near.map(|near| format!(". Did you mean `{{{near}}}`?")).unwrap_or_default();
                errors.at(text, format!("`{{{placeholder}}}` is not a field of this payload{hint}"));
            }
        }
    }
    (used.len() == placeholders.len()).then(|| IdSource::Template(LitStr::new(&format, text.span()), used))
}

fn name(member: &Member) -> String {
    match member {
        Member::Named(name) => syn::ext::IdentExt::unraw(name).to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// The text with `{}` for each placeholder, and the placeholders; `None` if a brace has no partner.
fn split(text: &str) -> Option<(String, Vec<String>)> {
    let (mut format, mut placeholders) = (String::new(), Vec::new());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '{' | '}' if characters.next_if_eq(&character).is_some() => {
                format.extend([character, character]);
            }
            '{' => {
                let mut placeholder = String::new();
                loop {
                    match characters.next()? {
                        '}' => break,
                        inner => placeholder.push(inner),
                    }
                }
                placeholders.push(placeholder.trim().to_string());
                format.push_str("{}");
            }
            '}' => return None,
            other => format.push(other),
        }
    }
    Some((format, placeholders))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_its_text_and_its_fields() {
        let (format, fields) = split("{tenant}:{ 0 }-{{x}}").unwrap();
        assert_eq!((&*format, fields), ("{}:{}-{{x}}", vec!["tenant".into(), "0".into()]));
        assert_eq!(split("{a"), None);
        assert_eq!(split("a}"), None);
    }
}
