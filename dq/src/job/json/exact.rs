//! Finds a value that JSON cannot hold, and says where it is.
//!
//! It is a serializer that writes nothing. It returns whether JSON writes a value as `null`, so that a `Some` of such a value is
//! found: it would come back as `None`.

use std::fmt;

use serde::ser::{
    self, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Looks for a value that would come back as another one.
pub(super) fn check<T: Serialize + ?Sized>(payload: &T) -> Result<(), Inexact> {
    payload.serialize(Exact).map(drop)
}

/// A value that JSON cannot hold, and where it is: the innermost step first.
#[derive(Debug)]
pub(super) struct Inexact {
    path: Vec<String>,
    what: String,
}

impl Inexact {
    const fn new(what: String) -> Self {
        Self { path: Vec::new(), what }
    }

    fn within(mut self, step: impl Into<String>) -> Self {
        self.path.push(step.into());
        self
    }
}

impl fmt::Display for Inexact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return write!(f, "it {}", self.what);
        }
        f.write_str("`")?;
        for (i, step) in self.path.iter().rev().enumerate() {
            let dot = if i == 0 || step.starts_with('[') { "" } else { "." };
            write!(f, "{dot}{step}")?;
        }
        write!(f, "` {}", self.what)
    }
}

impl std::error::Error for Inexact {}

impl ser::Error for Inexact {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(format!("cannot be serialized: {text}"))
    }
}

/// How JSON writes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Null,
    Other,
}

type Result<T = Written, E = Inexact> = std::result::Result<T, E>;

#[derive(Clone, Copy)]
struct Exact;

fn float(is_nan: bool, is_finite: bool) -> Result {
    let what = match (is_nan, is_finite) {
        (_, true) => return Ok(Written::Other),
        (true, _) => "is NaN",
        (false, _) => "is infinite",
    };
    Err(Inexact::new(format!("{what}, which JSON cannot hold")))
}

/// Values that JSON holds as they are.
macro_rules! exact {
    ($($method:ident: $type:ty),+) => {
        $(fn $method(self, _: $type) -> Result { Ok(Written::Other) })+
    };
}

impl Serializer for Exact {
    type Ok = Written;
    type Error = Inexact;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    exact!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8]
    );

    fn serialize_f32(self, v: f32) -> Result {
        float(v.is_nan(), v.is_finite())
    }

    fn serialize_f64(self, v: f64) -> Result {
        float(v.is_nan(), v.is_finite())
    }

    fn serialize_none(self) -> Result {
        Ok(Written::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        match value.serialize(self)? {
            Written::Null => Err(Inexact::new(
                "is `Some` of something that JSON writes as null, like `None` or `()`, so it would come back as `None`"
                    .into(),
            )),
            Written::Other => Ok(Written::Other),
        }
    }

    fn serialize_unit(self) -> Result {
        Ok(Written::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result {
        Ok(Written::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result {
        Ok(Written::Other)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result {
        value.serialize(self).map_err(|inexact| inexact.within(variant))?;
        Ok(Written::Other)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts> {
        Ok(Parts::default())
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts> {
        Ok(Parts::default())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts> {
        Ok(Parts::default())
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Parts> {
        Ok(Parts { variant: Some(variant), ..Parts::default() })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts> {
        Ok(Parts::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts> {
        Ok(Parts::default())
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Parts> {
        Ok(Parts { variant: Some(variant), ..Parts::default() })
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result {
        Ok(Written::Other)
    }
}

/// A list, an object or a variant of these.
#[derive(Default)]
struct Parts {
    variant: Option<&'static str>,
    /// How many elements or entries there are so far.
    index: usize,
    /// The last key of a map, if it can be the name of a field.
    name: Option<String>,
}

impl Parts {
    fn check<T: Serialize + ?Sized>(&self, value: &T, step: impl FnOnce() -> String) -> Result<()> {
        let checked = value.serialize(Exact).map_err(|inexact| inexact.within(step()));
        checked.map(drop).map_err(|inexact| self.inside(inexact))
    }

    fn inside(&self, inexact: Inexact) -> Inexact {
        match self.variant {
            Some(variant) => inexact.within(variant),
            None => inexact,
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let index = self.index;
        self.index += 1;
        self.check(value, || format!("[{index}]"))
    }

    fn field<T: Serialize + ?Sized>(&self, key: &'static str, value: &T) -> Result<()> {
        self.check(value, || key.to_owned())
    }
}

/// A map with one entry, to hear what the encoder says of its key.
struct OneKey<'a, K: ?Sized>(&'a K);

impl<K: Serialize + ?Sized> Serialize for OneKey<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, &0)?;
        map.end()
    }
}

/// Whether a key can be the name of a field: a struct with `flatten` is a map. Any other key may be a value, and is not shown.
fn is_name(key: &&str) -> bool {
    const LONGEST: usize = 64;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    key.len() <= LONGEST && key.starts_with(|c: char| !c.is_ascii_digit()) && key.chars().all(is_part)
}

impl SerializeMap for Parts {
    type Ok = Written;
    type Error = Inexact;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        let entry = serde_json::to_string(&OneKey(key))
            .map_err(|bad| self.inside(Inexact::new(format!("has a key that JSON cannot hold: {bad}"))))?;
        self.name =
            entry.strip_prefix("{\"").and_then(|rest| rest.strip_suffix("\":0}")).filter(is_name).map(Into::into);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let index = self.index;
        self.index += 1;
        self.check(value, || self.name.clone().unwrap_or_else(|| format!("[entry {index}]")))
    }

    fn end(self) -> Result {
        Ok(Written::Other)
    }
}

macro_rules! lists {
    ($($list:ident, $method:ident);+) => {
        $(impl $list for Parts {
            type Ok = Written;
            type Error = Inexact;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.element(value)
            }

            fn end(self) -> Result {
                Ok(Written::Other)
            }
        })+
    };
}

lists!(
    SerializeSeq, serialize_element; SerializeTuple, serialize_element;
    SerializeTupleStruct, serialize_field; SerializeTupleVariant, serialize_field
);

macro_rules! objects {
    ($($object:ident),+) => {
        $(impl $object for Parts {
            type Ok = Written;
            type Error = Inexact;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
                self.field(key, value)
            }

            fn end(self) -> Result {
                Ok(Written::Other)
            }
        })+
    };
}

objects!(SerializeStruct, SerializeStructVariant);
