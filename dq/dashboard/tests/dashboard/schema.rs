//! The part of JSON Schema that the description of the API uses.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

/// Words of a schema that say nothing about a value.
const SAYS_NOTHING: [&str; 4] = ["description", "format", "minimum", "title"];

/// An OpenAPI document, and which of its properties had a value in some answer.
pub(crate) struct Document {
    text: Value,
    seen: RefCell<BTreeSet<String>>,
}

impl Document {
    pub(crate) fn new(text: Value) -> Self {
        Self { text, seen: RefCell::default() }
    }

    /// Each method, path and status that is described.
    pub(crate) fn operations(&self) -> BTreeSet<(String, String, u16)> {
        let mut all = BTreeSet::new();
        for (path, item) in self.text["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                for status in operation["responses"].as_object().unwrap().keys() {
                    all.insert((method.clone(), path.clone(), status.parse().unwrap()));
                }
            }
        }
        all
    }

    /// What is wrong with an answer.
    pub(crate) fn faults(&self, method: &str, path: &str, status: u16, answer: &Value) -> Vec<String> {
        let schema =
            &self.text["paths"][path][method]["responses"][status.to_string()]["content"]["application/json"]["schema"];
        let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/components/schemas/"));
        let Some(name) = name else { return vec![format!("{status} has no schema of a name: {schema}")] };
        self.check(schema, name, answer)
    }

    /// The properties of answers that were never there, or always `null`.
    pub(crate) fn unseen(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for (_, item) in self.text["paths"].as_object().unwrap() {
            for (_, operation) in item.as_object().unwrap() {
                for (_, answer) in operation["responses"].as_object().unwrap() {
                    self.properties(&answer["content"]["application/json"]["schema"], "", &mut all);
                }
            }
        }
        all.difference(&self.seen.borrow()).cloned().collect()
    }

    fn named(&self, reference: &Value) -> Option<(&str, &Value)> {
        let name = reference.as_str()?.rsplit('/').next()?;
        self.text["components"]["schemas"]
            .as_object()?
            .get_key_value(name)
            .map(|(name, schema)| (name.as_str(), schema))
    }

    fn properties(&self, schema: &Value, name: &str, all: &mut BTreeSet<String>) {
        if let Some((name, schema)) = self.named(&schema["$ref"]) {
            return self.properties(schema, name, all);
        }
        for (property, inner) in schema["properties"].as_object().into_iter().flatten() {
            if all.insert(format!("{}.{property}", variant(name, schema))) {
                self.properties(inner, "", all);
            }
        }
        for part in schema["oneOf"].as_array().into_iter().flatten() {
            self.properties(part, name, all);
        }
        if schema.get("items").is_some_and(Value::is_object) {
            self.properties(&schema["items"], "", all);
        }
    }

    /// Compares a value with a schema; `name` is that of the schema, or the way to the value.
    fn check(&self, schema: &Value, name: &str, value: &Value) -> Vec<String> {
        if let Some(reference) = schema.get("$ref") {
            let Some((name, schema)) = self.named(reference) else { return vec![format!("{reference} is not there")] };
            return self.check(schema, name, value);
        }
        if let Some(parts) = schema["oneOf"].as_array() {
            let tried: Vec<_> = parts.iter().map(|part| self.check(part, name, value)).collect();
            let fits = tried.iter().filter(|faults| faults.is_empty()).count();
            let says = || format!("{name}: {fits} of these fit to {value}: {tried:?}");
            return if fits == 1 { Vec::new() } else { vec![says()] };
        }
        let words = schema.as_object().unwrap().iter();
        let faults = words.flat_map(|(word, says)| self.word(schema, name, value, word, says));
        faults.map(|fault| format!("{name}: {fault}")).collect()
    }

    /// What one word of a schema finds wrong.
    fn word(&self, schema: &Value, name: &str, value: &Value, word: &str, says: &Value) -> Vec<String> {
        let items = || value.as_array().into_iter().flatten();
        match word {
            "type" => is_of(says, value).into_iter().collect(),
            "enum" if !says.as_array().unwrap().contains(value) => vec![format!("{value} is none of {says}")],
            "properties" if value.is_object() => self.object(schema, name, value),
            "items" if says.is_object() => items().flat_map(|item| self.check(says, name, item)).collect(),
            "prefixItems" if value.is_array() => {
                let parts = says.as_array().unwrap();
                if items().count() != parts.len() {
                    return vec![format!("{value} has not {} items", parts.len())];
                }
                items().zip(parts).flat_map(|(item, part)| self.check(part, name, item)).collect()
            }
            "enum" | "properties" | "required" | "items" | "prefixItems" => Vec::new(),
            word if SAYS_NOTHING.contains(&word) => Vec::new(),
            word => vec![format!("nobody checks `{word}`")],
        }
    }

    /// An object has all properties that it must have, and none that is not described.
    fn object(&self, schema: &Value, name: &str, value: &Value) -> Vec<String> {
        let (described, object) = (schema["properties"].as_object().unwrap(), value.as_object().unwrap());
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut faults: Vec<_> = required
            .filter(|property| !object.contains_key(*property))
            .map(|property| format!("`{property}` is missing"))
            .collect();
        let (mut had, of) = (Vec::new(), variant(name, schema));
        for (property, inner) in object {
            match described.get(property) {
                None => faults.push(format!("`{property}` is not described")),
                Some(schema) => faults.extend(self.check(schema, property, inner)),
            }
            had.extend((!inner.is_null()).then(|| format!("{of}.{property}")));
        }
        if faults.is_empty() {
            self.seen.borrow_mut().extend(had);
        }
        faults
    }
}

/// The name of a schema, with the reason that a part of it is for.
fn variant(name: &str, schema: &Value) -> String {
    let reason = schema["properties"]["reason"]["enum"][0].as_str();
    reason.map_or_else(|| name.to_owned(), |reason| format!("{name} {reason}"))
}

fn is_of(types: &Value, value: &Value) -> Option<String> {
    let is = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("nobody checks the type {other}"),
    };
    let fits = types.as_array().map_or_else(|| is(types), |types| types.iter().any(is));
    (!fits).then(|| format!("{value} is no {types}"))
}
