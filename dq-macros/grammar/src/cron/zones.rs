//! The zones by their names: first the zones of the system, then the built-in database, which may have more.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase, db};

use super::InvalidCron;

/// How many zones an error proposes.
const PROPOSALS: usize = 3;
/// A zone with more bytes resembles none, and to compare it would take long: the time grows with the square.
const MAX_ZONE: usize = 64;

/// The database in the program. A system may have fewer zones, such as Debian without `tzdata-legacy`, or older ones.
static BUILT_IN: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The zone of this name. The system's rules come first, because an administrator updates them.
pub(super) fn named(name: &str) -> Result<TimeZone, InvalidCron> {
    of(db(), name)
}

fn of(system: &TimeZoneDatabase, name: &str) -> Result<TimeZone, InvalidCron> {
    system.get(name).or_else(|_| BUILT_IN.get(name)).map_err(|_| unknown(name))
}

/// The error of a zone that does not exist, with the names that are closest to it.
fn unknown(zone: &str) -> InvalidCron {
    let wanted = zone.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let city = name.rsplit('/').next().unwrap_or(&name);
        strsim::jaro_winkler(&wanted, &name).max(strsim::jaro_winkler(&wanted, city))
    };
    let known = (zone.len() <= MAX_ZONE).then(|| db().available().chain(BUILT_IN.available()));
    let mut names: Vec<_> = known
        .into_iter()
        .flatten()
        .map(|name| (likeness(name.as_str()), name.to_string()))
        .filter(|(like, _)| *like > 0.85)
        .collect();
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    names.dedup_by(|a, b| a.1 == b.1);
    let proposals = names.into_iter().take(PROPOSALS).map(|(_, name)| name).collect();
    InvalidCron::Zone { zone: zone.chars().take(140).flat_map(char::escape_debug).collect(), proposals }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_that_the_system_lacks_is_in_the_built_in_database() {
        let none = TimeZoneDatabase::none();
        for name in ["US/Pacific", "Asia/Calcutta", "Europe/Kyiv", "America/Coyhaique", "UTC"] {
            assert!(of(&none, name).is_ok() && named(name).is_ok(), "{name}");
        }
    }

    /// A directory with one zone that calls itself Berlin and has the clock of UTC.
    #[test]
    fn the_rules_of_the_system_come_first() {
        let directory = std::env::temp_dir().join(format!("dq-zones-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("Europe")).unwrap();
        let utc = [b"TZif".as_slice(), &[0; 35], &[1, 0, 0, 0, 4], &[0; 6], b"UTC\0"].concat();
        std::fs::write(directory.join("Europe/Berlin"), utc).unwrap();
        let system = TimeZoneDatabase::from_dir(&directory).unwrap();
        let at = "2026-07-01T00:00:00Z".parse().unwrap();
        let offsets = ["Europe/Berlin", "Europe/Paris"].map(|name| of(&system, name).unwrap().to_offset(at).seconds());
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(offsets, [0, 7_200]);
    }
}
