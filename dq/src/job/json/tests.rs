//! Random payloads of every type of serde come back bit for bit, or are refused.

use std::collections::BTreeMap;
use std::fmt::{Debug, Formatter, Result as Written};

use proptest::collection::{btree_map, vec};
use proptest::num::{f32, f64};
use proptest::option::of;
use proptest::prelude::*;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{check_json, to_json};
use crate::job::{Codec, Metadata, Record};

type Whole = (i8, i16, i32, i64, i128, u8, u16, u32, u64, u128);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Floats {
    single: f32,
    double: f64,
    maybe: Option<f64>,
    list: Vec<f32>,
    pair: (f64, f32),
    named: BTreeMap<String, f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Nulls {
    unit: (),
    unit_struct: Unit,
    maybe: Option<u8>,
    twice: Option<Option<u8>>,
    maybe_unit: Option<()>,
    newtype: Option<Maybe>,
    list: Vec<Option<Option<bool>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Unit;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Maybe(Option<u8>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Color {
    Red,
    Green,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Name(String);

type Map<K> = BTreeMap<K, u8>;
type Keys = (Map<String>, Map<Name>, Map<char>, Map<bool>, Map<i64>, Map<u64>, Map<u128>, Map<i128>, Map<Color>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Kind {
    Unit,
    Newtype(f64),
    Null(Option<u8>),
    Tuple(u8, f32, String),
    Struct { x: f64, y: Option<f64> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Internal {
    A { x: f64, n: u64 },
    B { list: Vec<f32> },
    C,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    A(f64),
    B(u64, String),
    C,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Truth(bool),
    Whole(i64),
    Text(String),
    List(Vec<f64>),
    Struct { x: f64, n: u64 },
}

/// Bytes as serde knows them, which JSON writes as a list of numbers.
#[derive(Debug, Clone, PartialEq)]
struct Raw(Vec<u8>);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Raw;
            fn expecting(&self, f: &mut Formatter<'_>) -> Written {
                f.write_str("bytes")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(Raw(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything {
    whole: Whole,
    floats: Floats,
    nulls: Nulls,
    keys: Keys,
    kinds: Vec<Kind>,
    internal: Internal,
    adjacent: Adjacent,
    untagged: Untagged,
    raw: Raw,
    letter: char,
    text: String,
    #[serde(flatten)]
    flat: BTreeMap<String, Untagged>,
}

/// Mostly numbers; of every kind, but neither NaN nor infinite unless `also`.
fn double(also: bool) -> BoxedStrategy<f64> {
    let finite = f64::POSITIVE | f64::NEGATIVE | f64::NORMAL | f64::SUBNORMAL | f64::ZERO;
    let decimal = (-1_000_000_i64..1_000_000).prop_map(|cents| cents as f64 / 100.0);
    let odd = if also { f64::ANY.boxed() } else { finite.boxed() };
    prop_oneof![finite, decimal, odd].boxed()
}

fn single() -> impl Strategy<Value = f32> {
    f32::POSITIVE | f32::NEGATIVE | f32::NORMAL | f32::SUBNORMAL | f32::ZERO
}

fn floats(also: bool) -> impl Strategy<Value = Floats> {
    let named = btree_map(any::<String>(), double(false), 0..3);
    let odd = if also { f32::ANY.boxed() } else { single().boxed() };
    let values = (odd, double(also), of(double(also)), vec(single(), 0..4), (double(false), single()), named);
    values.prop_map(|(single, double, maybe, list, pair, named)| Floats { single, double, maybe, list, pair, named })
}

fn nulls(also: bool) -> impl Strategy<Value = Nulls> {
    let values = any::<(Option<u8>, Option<Option<u8>>, Option<()>, Option<Option<u8>>, Vec<Option<Option<bool>>>)>();
    values.prop_map(move |(maybe, mut twice, mut maybe_unit, newtype, mut list)| {
        let mut newtype = newtype.map(Maybe);
        if !also {
            twice = twice.filter(Option::is_some);
            newtype = newtype.filter(|newtype| newtype.0.is_some());
            maybe_unit = None;
            list.retain(|element| *element != Some(None));
        }
        Nulls { unit: (), unit_struct: Unit, maybe, twice, maybe_unit, newtype, list }
    })
}

fn keys() -> impl Strategy<Value = Keys> {
    fn map<K: Strategy>(key: K) -> impl Strategy<Value = Map<K::Value>>
    where
        K::Value: Ord,
    {
        btree_map(key, any::<u8>(), 0..3)
    }
    let color = prop_oneof![Just(Color::Red), Just(Color::Green)];
    (
        map(any::<String>()),
        map(any::<String>().prop_map(Name)),
        map(any::<char>()),
        map(any::<bool>()),
        map(any::<i64>()),
        map(any::<u64>()),
        map(any::<u128>()),
        map(any::<i128>()),
        map(color),
    )
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Unit),
        double(false).prop_map(Kind::Newtype),
        any::<Option<u8>>().prop_map(Kind::Null),
        (any::<u8>(), single(), any::<String>()).prop_map(|(a, b, c)| Kind::Tuple(a, b, c)),
        (double(false), of(double(false))).prop_map(|(x, y)| Kind::Struct { x, y }),
    ]
}

fn internal() -> impl Strategy<Value = Internal> {
    prop_oneof![
        (double(false), any::<u64>()).prop_map(|(x, n)| Internal::A { x, n }),
        vec(single(), 0..4).prop_map(|list| Internal::B { list }),
        Just(Internal::C),
    ]
}

fn adjacent() -> impl Strategy<Value = Adjacent> {
    prop_oneof![
        double(false).prop_map(Adjacent::A),
        any::<(u64, String)>().prop_map(|(a, b)| Adjacent::B(a, b)),
        Just(Adjacent::C),
    ]
}

fn untagged() -> impl Strategy<Value = Untagged> {
    prop_oneof![
        any::<bool>().prop_map(Untagged::Truth),
        any::<i64>().prop_map(Untagged::Whole),
        any::<String>().prop_map(Untagged::Text),
        vec(double(false), 0..4).prop_map(Untagged::List),
        (double(false), any::<u64>()).prop_map(|(x, n)| Untagged::Struct { x, n }),
    ]
}

fn everything(also: bool) -> impl Strategy<Value = Everything> {
    let flat = btree_map("flat-[a-z]{1,4}", untagged(), 0..3);
    let one = (any::<Whole>(), floats(also), nulls(also), keys(), vec(kind(), 0..4));
    let other = (internal(), adjacent(), untagged(), any::<Vec<u8>>(), any::<char>(), any::<String>(), flat);
    (one, other).prop_map(
        |((whole, floats, nulls, keys, kinds), (internal, adjacent, untagged, raw, letter, text, flat))| Everything {
            whole,
            floats,
            nulls,
            keys,
            kinds,
            internal,
            adjacent,
            untagged,
            raw: Raw(raw),
            letter,
            text,
            flat,
        },
    )
}

/// What comes back from a record of each codec, as the text of its `Debug`, which tells `-0.0` from `0.0`.
fn comes_back<T: Serialize + DeserializeOwned + Debug>(payload: &T) -> serde_json::Result<String> {
    let record = Record::new(&Metadata::default(), Codec::Json, &to_json(payload)?);
    let (codec, bytes) = record.payload().unwrap();
    match codec {
        Codec::Json => Ok(format!("{:?}", serde_json::from_slice::<T>(bytes).unwrap())),
    }
}

/// The fields that JSON cannot hold.
fn inexact(payload: &Everything) -> Vec<&'static str> {
    let Everything { floats, nulls, .. } = payload;
    let found = [
        ("floats.single", !floats.single.is_finite()),
        ("floats.double", !floats.double.is_finite()),
        ("floats.maybe", floats.maybe.is_some_and(|maybe| !maybe.is_finite())),
        ("nulls.twice", nulls.twice == Some(None)),
        ("nulls.maybe_unit", nulls.maybe_unit.is_some()),
        ("nulls.newtype", nulls.newtype == Some(Maybe(None))),
        ("nulls.list[", nulls.list.contains(&Some(None))),
    ];
    found.into_iter().filter(|(_, is_inexact)| *is_inexact).map(|(field, _)| field).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_payload_of_every_type_of_serde_comes_back_as_it_was(payload in everything(false)) {
        prop_assert_eq!(inexact(&payload), Vec::<&str>::new());
        prop_assert_eq!(comes_back(&payload).unwrap(), format!("{payload:?}"));
    }

    #[test]
    fn a_payload_that_json_cannot_hold_is_refused_with_its_field(payload in everything(true)) {
        match (inexact(&payload).first(), comes_back(&payload)) {
            (None, back) => prop_assert_eq!(back.unwrap(), format!("{payload:?}")),
            (Some(field), Err(error)) => {
                let text = error.to_string();
                prop_assert!(text.starts_with(&format!("`{field}")), "{}: {}", field, text);
            }
            (Some(field), Ok(back)) => prop_assert!(false, "{} came back as {}", field, back),
        }
    }

    #[test]
    fn every_float_comes_back_bit_for_bit(double in f64::POSITIVE | f64::NEGATIVE | f64::NORMAL | f64::SUBNORMAL, single in f32::ANY) {
        let json = to_json(&double).unwrap();
        prop_assert_eq!(serde_json::from_slice::<f64>(&json).unwrap().to_bits(), double.to_bits());
        match to_json(&single) {
            Ok(json) => prop_assert_eq!(serde_json::from_slice::<f32>(&json).unwrap().to_bits(), single.to_bits()),
            Err(_) => prop_assert!(!single.is_finite()),
        }
    }
}

fn refused<T: Serialize>(payload: &T) -> String {
    to_json(payload).unwrap_err().to_string()
}

#[test]
fn what_json_cannot_hold_is_named_with_its_place() {
    #[derive(Serialize)]
    struct Line {
        price: f64,
    }
    #[derive(Serialize)]
    enum Order {
        Open { lines: Vec<Line> },
        Closed(Option<f32>),
    }
    let order = Order::Open { lines: vec![Line { price: 1.0 }, Line { price: f64::NAN }] };
    assert_eq!(refused(&order), "`Open.lines[1].price` is NaN, which JSON cannot hold");
    assert_eq!(refused(&Order::Closed(Some(f32::NEG_INFINITY))), "`Closed` is infinite, which JSON cannot hold");
    assert_eq!(refused(&f64::INFINITY), "it is infinite, which JSON cannot hold");
    let by_name = BTreeMap::from([("a", BTreeMap::from([(7, f64::NAN)]))]);
    assert_eq!(refused(&by_name), "`a[entry 0]` is NaN, which JSON cannot hold");
    let lists = BTreeMap::from([(vec![1], 1)]);
    assert_eq!(refused(&(lists,)), "`[0]` has a key that JSON cannot hold: key must be a string");
    assert!(refused(&Some(None::<u8>)).starts_with("it is `Some` of something that JSON writes as null"));
    assert!(to_json(&(None::<u8>, (), Some(Some(1)), serde_json::Value::Null)).is_ok());
}

#[test]
fn a_payload_is_as_deep_as_a_decoder_accepts_at_most() {
    let nested = |depth| (1..depth).fold(serde_json::json!([]), |inner, _| serde_json::json!([inner]));
    let json = to_json(&nested(127)).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
    check_json(std::str::from_utf8(&json).unwrap()).unwrap();
    assert_eq!(refused(&nested(128)), "it is nested 128 levels deep, and a decoder accepts 127");
    let text = format!("{}{}", "[".repeat(128), "]".repeat(128));
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_err());
    assert!(check_json(&text).unwrap_err().to_string().contains("128 levels"));
    check_json(r#"{"a": "[[\"{{", "b": "\\"}"#).unwrap();
    let wide = |of: &str| format!("[{}]", [of; 200].join(","));
    check_json(&wide("[]")).and_then(|()| check_json(&wide("{}"))).expect("what is side by side is not nested");
}
