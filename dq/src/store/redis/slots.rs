//! Slots: in which of the 16,384 slots of a cluster a key is, and which server has it.

use std::collections::{BTreeMap, BTreeSet};

use redis::Value;

use super::sentinel::Host;

/// The number of a slot.
pub(super) type Slot = u16;

const SLOTS: Slot = 16_384;

/// The slot of a key. If the key has a text in braces, only the first such text counts.
pub(super) fn slot_of(key: &[u8]) -> Slot {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let length = rest.iter().position(|byte| *byte == b'}')?;
        (length > 0).then(|| &rest[..length])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    let shifted = |crc: u16, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ (u16::from(*byte) << 8), shifted))
}

/// Which server has which slot, as far as it is known.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct SlotMap {
    masters: Vec<Host>,
    /// The place of the owner of each slot among `masters`; empty if nothing is known.
    owners: Vec<Option<u16>>,
    /// All servers that have answered or were named, replicas too.
    nodes: BTreeSet<Host>,
}

impl SlotMap {
    /// Reads the answer of a server to `CLUSTER SLOTS`. `None`: it is another answer, or names no slot. A server without a name is
    /// the one that was asked.
    pub(super) fn read(answer: &Value, asked: &Host) -> Option<Self> {
        let Value::Array(ranges) = answer else { return None };
        let mut map = Self { nodes: BTreeSet::from([asked.clone()]), ..Self::default() };
        let mut places = BTreeMap::new();
        for range in ranges {
            let Value::Array(parts) = range else { return None };
            let [Value::Int(first), Value::Int(last), nodes @ ..] = parts.as_slice() else { return None };
            let (first, last) =
                (Slot::try_from(*first).ok()?, Slot::try_from(*last).ok().filter(|slot| *slot < SLOTS)?);
            if first > last {
                return None;
            }
            map.nodes.extend(nodes.iter().filter_map(|node| host_in(node, asked)));
            let Some(master) = nodes.first().and_then(|node| host_in(node, asked)) else { continue };
            let place = map.place_of(&mut places, &master)?;
            for slot in first..=last {
                // A slot has one owner: so all ranges of an answer have no more slots than there are.
                if map.owners[usize::from(slot)].replace(place).is_some() {
                    return None;
                }
            }
        }
        (!map.is_empty()).then_some(map)
    }

    /// The place of a server among the masters, where each has one.
    fn place_of(&mut self, places: &mut BTreeMap<Host, u16>, master: &Host) -> Option<u16> {
        self.owners.resize(usize::from(SLOTS), None);
        if let Some(place) = places.get(master) {
            return Some(*place);
        }
        let place = u16::try_from(self.masters.len()).ok()?;
        self.masters.push(master.clone());
        places.insert(master.clone(), place);
        Some(place)
    }

    /// For each slot the owner that most of these maps name, and the first of several.
    pub(super) fn most_named(maps: &[Self]) -> Self {
        // Each server gets one number, whichever map names it, so that counting the votes of a slot compares no names.
        let (mut hosts, mut known) = (Vec::new(), BTreeMap::new());
        let mut number = |master| {
            *known.entry(master).or_insert_with(|| {
                hosts.push(master);
                hosts.len() - 1
            })
        };
        let numbers: Vec<Vec<usize>> = maps.iter().map(|map| map.masters.iter().map(&mut number).collect()).collect();
        let (mut named, mut places, mut votes) = (Self::default(), BTreeMap::new(), vec![0_usize; hosts.len()]);
        for slot in 0..usize::from(SLOTS) {
            let owner_in =
                |(map, numbers): (&Self, &Vec<usize>)| numbers.get(usize::from((*map.owners.get(slot)?)?)).copied();
            let owners = || maps.iter().zip(&numbers).filter_map(owner_in);
            owners().for_each(|owner| votes[owner] += 1);
            // `max_by_key` takes the last one of several.
            let most = owners().rev().max_by_key(|owner| votes[*owner]);
            owners().for_each(|owner| votes[owner] = 0);
            if let Some(place) = most.and_then(|most| named.place_of(&mut places, hosts[most])) {
                named.owners[slot] = Some(place);
            }
        }
        named.nodes = maps.iter().flat_map(|map| map.nodes.iter().cloned()).collect();
        named
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    pub(super) const fn nodes(&self) -> &BTreeSet<Host> {
        &self.nodes
    }

    pub(super) fn owner(&self, slot: Slot) -> Option<&Host> {
        let place = (*self.owners.get(usize::from(slot))?)?;
        self.masters.get(usize::from(place))
    }

    /// The servers that have any slot.
    pub(super) fn masters(&self) -> BTreeSet<&Host> {
        let places: BTreeSet<_> = self.owners.iter().flatten().collect();
        places.into_iter().filter_map(|place| self.masters.get(usize::from(*place))).collect()
    }

    /// Notes the owner of a slot. Returns whether it is another one than before.
    pub(super) fn give(&mut self, slot: Slot, owner: &Host) -> bool {
        if self.owner(slot) == Some(owner) || slot >= SLOTS {
            return false;
        }
        self.owners.resize(usize::from(SLOTS), None);
        let place = self.masters.iter().position(|known| known == owner).unwrap_or_else(|| {
            self.masters.push(owner.clone());
            self.masters.len() - 1
        });
        self.owners[usize::from(slot)] = u16::try_from(place).ok();
        self.nodes.insert(owner.clone());
        true
    }
}

/// What a `MOVED` says behind its code: `SLOT HOST:PORT`. Without a host, it is the server that was asked.
pub(super) fn moved(detail: &str, asked: &Host) -> Option<(Slot, Host)> {
    let (slot, address) = detail.split_once(' ')?;
    let (host, port) = address.rsplit_once(':')?;
    let host = if host.is_empty() { &asked.0 } else { host };
    Some((slot.parse().ok()?, (host.to_owned(), port.parse().ok()?)))
}

/// A server in an answer: its host, its port, and more. `?` stands for a name that the server does not know.
fn host_in(node: &Value, asked: &Host) -> Option<Host> {
    let Value::Array(parts) = node else { return None };
    let [host, Value::Int(port), ..] = parts.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        _ => "",
    };
    let port = u16::try_from(*port).ok()?;
    match host {
        "?" => None,
        "" => Some((asked.0.clone(), port)),
        host => Some((host.to_owned(), port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Host {
        (name.to_owned(), 6379)
    }

    fn range(first: i64, last: i64, nodes: &[&str]) -> Value {
        let node = |name: &&str| Value::Array(vec![Value::BulkString(name.as_bytes().to_vec()), Value::Int(6379)]);
        let nodes = nodes.iter().map(node);
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(nodes).collect())
    }

    fn map(ranges: Vec<Value>) -> SlotMap {
        SlotMap::read(&Value::Array(ranges), &host("asked")).expect("it is an answer")
    }

    #[test]
    fn the_slot_of_a_key_is_that_of_its_hash_tag() {
        // As `CLUSTER KEYSLOT` answers.
        for (key, slot) in [("123456789", 12_739), ("foo", 12_182), ("dq:{foo}:jobs", 12_182), ("", 0)] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        assert_eq!(slot_of(b"{}a"), crc16(b"{}a") % SLOTS);
        assert_eq!(slot_of(b"{a"), crc16(b"{a") % SLOTS);
        assert_eq!(slot_of(b"x{a}{b}"), slot_of(b"a"));
    }

    #[test]
    fn a_map_has_the_first_server_of_each_range_and_knows_the_others() {
        let mut map = map(vec![range(0, 99, &["", "b"]), range(100, 16_383, &["c", "?"])]);
        assert_eq!([0, 99, 100, 16_383].map(|slot| map.owner(slot).unwrap().0.as_str()), ["asked", "asked", "c", "c"]);
        assert_eq!(map.nodes().iter().map(|host| host.0.as_str()).collect::<Vec<_>>(), ["asked", "b", "c"]);
        assert!(map.give(5, &host("c")) && !map.give(5, &host("c")) && !map.give(SLOTS, &host("c")));
        assert_eq!(map.masters().len(), 2);
        for wrong in [Value::Nil, Value::Array(vec![]), Value::Array(vec![range(0, 16_384, &["a"])])] {
            assert!(SlotMap::read(&wrong, &host("asked")).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn the_owner_of_a_slot_is_the_one_that_most_servers_name() {
        let whole = |name: &str| map(vec![range(0, 16_383, &[name])]);
        let maps = [whole("old"), map(vec![range(0, 9, &["new"])]), whole("new")];
        let named = SlotMap::most_named(&maps);
        assert_eq!((named.owner(3), named.owner(10)), (Some(&host("new")), Some(&host("old"))));
    }

    /// 400 ranges of all slots took half a minute of a program without optimization, which no deadline of its caller ended.
    #[test]
    fn an_answer_costs_no_more_than_there_are_slots() {
        let names: Vec<_> = (0..i64::from(SLOTS)).map(|slot| format!("node-{slot}")).collect();
        let repeated = names[..400].iter().map(|name| range(0, 16_383, &[name])).collect();
        assert!(SlotMap::read(&Value::Array(repeated), &host("asked")).is_none(), "a slot has one owner");
        for wrong in [vec![range(0, 9, &["a"]), range(9, 20, &["a"])], vec![range(9, 0, &["a"])]] {
            assert!(SlotMap::read(&Value::Array(wrong), &host("asked")).is_none());
        }
        let one_each = map((0..).zip(&names).map(|(slot, name)| range(slot, slot, &[name])).collect());
        assert_eq!(one_each.masters().len(), names.len());
        let named = SlotMap::most_named(&vec![one_each; 20]);
        assert!((0..SLOTS).zip(&names).all(|(slot, name)| named.owner(slot) == Some(&host(name))));
    }

    #[test]
    fn a_moved_slot_names_its_owner() {
        let asked = host("asked");
        assert_eq!(moved("3999 10.0.0.1:7000", &asked), Some((3999, ("10.0.0.1".into(), 7000))));
        assert_eq!(moved("3999 :7000", &asked), Some((3999, ("asked".into(), 7000))));
        assert_eq!(moved("3999 ::1:7000", &asked), Some((3999, ("::1".into(), 7000))));
        for wrong in ["", "3999", "x 10.0.0.1:7000", "3999 10.0.0.1"] {
            assert_eq!(moved(wrong, &asked), None);
        }
    }
}
