//! The connections of a server, and which of them goes when there are too many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

/// The most connections, if the process may open twice as many files.
const MOST: usize = 512;

/// What a connection does.
const IDLE: u8 = 0;
const ANSWERS: u8 = 1;
const ANSWERS_A_USER: u8 = 2;

/// A connection, as its requests see it.
#[derive(Debug)]
pub(crate) struct Connection {
    does: AtomicU8,
    goes: Notify,
    /// Its sender is gone when the server stops.
    runs: watch::Receiver<()>,
}

impl Connection {
    /// Says that a user of a dashboard made the request, so the connection stays.
    pub(crate) fn serves_a_user(&self) {
        self.does.store(ANSWERS_A_USER, Ordering::Relaxed);
    }

    /// Waits until the server stops.
    pub(crate) async fn server_stops(&self) {
        let mut runs = self.runs.clone();
        while runs.changed().await.is_ok() {}
    }

    /// Waits until another connection takes its place.
    pub(super) async fn is_sent_away(&self) {
        self.goes.notified().await;
    }

    /// Notes that it answers a request, until the result is dropped.
    pub(super) fn answers(self: &Arc<Self>) -> Answering {
        self.does.store(ANSWERS, Ordering::Relaxed);
        Answering(Arc::clone(self))
    }
}

/// A request that is being answered.
pub(super) struct Answering(Arc<Connection>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.does.store(IDLE, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Open {
    /// Those of each address, the oldest first.
    connections: HashMap<IpAddr, BTreeMap<u64, Arc<Connection>>>,
    next: u64,
}

/// The connections of a server.
pub(super) struct Connections {
    open: Arc<Mutex<Open>>,
    most: usize,
    runs: watch::Sender<()>,
    /// Each place has a clone of the sender.
    places: watch::Sender<()>,
}

/// The place of a connection, until it is dropped.
pub(super) struct ConnectionPlace {
    address: IpAddr,
    number: u64,
    connection: Arc<Connection>,
    open: Arc<Mutex<Open>>,
    _place: watch::Receiver<()>,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self::of(MOST.min(most_files() / 2).max(1))
    }

    fn of(most: usize) -> Self {
        Self { open: Arc::default(), most, runs: watch::Sender::new(()), places: watch::Sender::new(()) }
    }

    /// Gives a place to another connection of an address. `None`: all places have connections that answer users.
    pub(super) fn enter(&self, address: IpAddr) -> Option<ConnectionPlace> {
        let mut open = lock(&self.open);
        if open.many() >= self.most && !open.make_room() {
            return None;
        }
        let number = open.next;
        open.next += 1;
        let (does, goes) = (AtomicU8::new(IDLE), Notify::new());
        let connection = Arc::new(Connection { does, goes, runs: self.runs.subscribe() });
        open.connections.entry(address).or_default().insert(number, Arc::clone(&connection));
        Some(ConnectionPlace {
            address,
            number,
            connection,
            open: Arc::clone(&self.open),
            _place: self.places.subscribe(),
        })
    }

    /// Ends the connection that can be spared most, if there is one.
    pub(super) fn make_room(&self) {
        lock(&self.open).make_room();
    }

    /// Tells all connections that the server stops, and waits until they have gone.
    pub(super) async fn end(self) {
        drop(self.runs);
        self.places.closed().await;
    }
}

impl Open {
    fn many(&self) -> usize {
        self.connections.values().map(BTreeMap::len).sum()
    }

    /// Ends a connection of the address that has the most which answer no user, so a flood takes no place of another address. Of addresses
    /// with equally many, an idle one goes first, then the oldest one.
    fn make_room(&mut self) -> bool {
        let spared = self.connections.iter().filter_map(|(address, open)| {
            let (mut many, mut spared): (_, Option<(bool, Reverse<u64>)>) = (0, None);
            for (number, connection) in open {
                let does = connection.does.load(Ordering::Relaxed);
                if does == ANSWERS_A_USER {
                    continue;
                }
                many += 1;
                if spared.is_none_or(|(is_idle, _)| does == IDLE && !is_idle) {
                    spared = Some((does == IDLE, Reverse(*number)));
                }
            }
            spared.map(|oldest| ((many, oldest), *address))
        });
        let Some(((_, (_, Reverse(number))), address)) = spared.max() else { return false };
        self.remove(address, number).inspect(|connection| connection.goes.notify_one()).is_some()
    }

    fn remove(&mut self, address: IpAddr, number: u64) -> Option<Arc<Connection>> {
        let of_address = self.connections.get_mut(&address)?;
        let removed = of_address.remove(&number);
        if of_address.is_empty() {
            self.connections.remove(&address);
        }
        removed
    }
}

impl ConnectionPlace {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        lock(&self.open).remove(self.address, self.number);
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many files the process may open.
fn most_files() -> usize {
    #[cfg(unix)]
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let most: Option<u64> = None;
    most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    async fn is_sent_away(place: &ConnectionPlace) -> bool {
        tokio::select! {
            biased;
            () = place.connection.is_sent_away() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn the_oldest_idle_connection_goes_then_the_oldest_without_a_user_and_no_other() {
        let connections = Connections::of(3);
        let enter = || connections.enter(ONE);
        let [user, stranger, idle] = [(); 3].map(|()| enter().unwrap());
        let answering = [&user, &stranger].map(|place| place.connection.answers());
        user.connection.serves_a_user();
        let fourth = enter().unwrap();
        assert!(is_sent_away(&idle).await);
        drop(idle);
        let _held = fourth.connection.answers();
        let fifth = enter().unwrap();
        assert!(is_sent_away(&stranger).await && !is_sent_away(&fourth).await && !is_sent_away(&user).await);
        for place in [&fourth, &fifth] {
            std::mem::forget(place.connection.answers());
            place.connection.serves_a_user();
        }
        assert!(enter().is_none());
        drop(answering);
        assert!(enter().is_some(), "the user's request was answered");
        assert!(is_sent_away(&user).await);
    }

    #[tokio::test]
    async fn a_flood_ends_connections_of_its_own_address_and_none_of_another_one() {
        let connections = Connections::of(8);
        let [idle, stranger, user] = [(); 3].map(|()| connections.enter(ONE).unwrap());
        let _answering = [&stranger, &user].map(|place| place.connection.answers());
        user.connection.serves_a_user();
        let mut flood: Vec<_> = (0..5).map(|_| connections.enter(OTHER).unwrap()).collect();
        let answering: Vec<_> = flood.iter().map(|place| place.connection.answers()).collect();
        for _ in 0..9_000 {
            let place = connections.enter(OTHER).unwrap();
            std::mem::forget(place.connection.answers());
            flood.push(place);
        }
        for honest in [&idle, &stranger, &user] {
            assert!(!is_sent_away(honest).await);
        }
        for sent_away in &flood[..9_000] {
            assert!(is_sent_away(sent_away).await);
        }
        drop((answering, flood));
        assert_eq!(lock(&connections.open).many(), 3);
    }

    #[tokio::test]
    async fn a_server_ends_when_its_last_connection_has_gone() {
        let connections = Connections::of(3);
        let place = connections.enter(ONE).unwrap();
        let mut end = std::pin::pin!(connections.end());
        tokio::select! {
            biased;
            () = &mut end => panic!("a connection is there"),
            () = place.connection.server_stops() => {}
        }
        drop(place);
        end.await;
    }
}
