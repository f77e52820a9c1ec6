//! The behaviours of a store: one list of tests, derived from the rules of the protocol, that every store must pass.
//!
//! A behaviour sees a store only as nodes and producers do, through [`Store`](dq::store::Store), and moves the store's clock
//! through its [`StoreFixture`]. It does not know how the store keeps anything. No store skips a behaviour: what one store
//! cannot show is not a behaviour. A bug that is found in one store becomes a behaviour of all.
//!
//! ```text
//! mod memory {
//!     dq_testing::store_conformance!(async { MemoryFixture::new() });
//! }
//! ```
//!
//! This makes one `#[tokio::test]` of each behaviour. The expression is a future of a new [`StoreFixture`] with an empty
//! store. The calling crate needs tokio with `macros` and `rt`. [`BEHAVIOURS`] lists the names, and the table in
//! `docs/internals/requirements.md` names the rule that each behaviour shows.
//!
//! After every step of a behaviour, each job must be in exactly one place, and pages, counts and queries by id must agree
//! about it. At the end of the behaviour the store's own audit must find no difference, and exactly the nodes that hold jobs
//! must have a lease ([`Topic::audit`], [`Topic::close`]).
//!
//! The public modules are the behaviours, grouped by step or rule: each public function of them is one, and `build.rs` lists them. The private ones are what they are written with:
//! `topic` (the topic under test and the steps of its nodes), `producer` (adds and commands), `inspect` (queries and the
//! audit), `subscriber` (signals), `copies` (exports and imports), `suite` (the macro that makes tests of the list), `setting` (the state of the topic), and `events` (brings a job into a state or makes an event of the state table happen).

mod changes;
mod copies;
mod events;
mod fixture;
mod inspect;
mod producer;
mod setting;
mod subscriber;
mod suite;
mod topic;

pub mod adds;
pub mod ahead;
pub mod audit;
pub mod broadcasts;
pub mod bursts;
pub mod bytes;
pub mod changing;
pub mod commands;
pub mod delays;
pub mod doors;
pub mod draining;
pub mod duplicates;
pub mod examining;
pub mod exports;
pub mod extending;
pub mod far;
pub mod fenced;
pub mod follow_ups;
pub mod full;
pub mod full_groups;
pub mod gated_ticks;
pub mod group_rates;
pub mod groups;
pub mod heavy;
pub mod histories;
pub mod imports;
pub mod inspection;
pub mod job_sets;
pub mod kept;
pub mod leases;
pub mod limits;
pub mod listening;
pub mod lookahead;
pub mod moves;
pub mod notes;
pub mod numbered;
pub mod parked;
pub mod paused;
pub mod paused_groups;
pub mod pending;
pub mod priorities;
pub mod queries;
pub mod rates;
pub mod reclaim;
pub mod reconcile;
pub mod results;
pub mod roles;
pub mod settle;
pub mod slots;
pub mod statistics;
pub mod stopped;
pub mod taken;
pub mod ticks;
pub mod together;
pub mod told;
pub mod transfer;
pub mod turns;
pub mod updating;

pub use fixture::StoreFixture;
pub(crate) use moves::EVENTS;
pub use topic::Topic;

include!(concat!(env!("OUT_DIR"), "/behaviours.rs"));

/// The names of all behaviours, module by module.
pub const BEHAVIOURS: &[&str] = store_behaviours! { names () };
