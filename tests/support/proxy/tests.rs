use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::*;

/// A server that a test drives: what it received, and what it is to send.
struct Server {
    received: Receiver<Vec<u8>>,
    send: Sender<&'static str>,
}

/// A client behind a proxy, and the server before it.
fn connected() -> (Proxy, TcpStream, Server) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap().port());
    let (client, server) = connect(&proxy, &listener);
    (proxy, client, server)
}

fn connect(proxy: &Proxy, listener: &TcpListener) -> (TcpStream, Server) {
    let client = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let (arrived, received) = channel();
    let (send, sends) = channel::<&str>();
    let mut to = stream.try_clone().unwrap();
    std::thread::spawn(move || sends.iter().try_for_each(|text| to.write_all(text.as_bytes())));
    std::thread::spawn(move || {
        let mut bytes = [0; 100];
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            let _ = arrived.send(bytes[..read].to_vec());
        }
    });
    (client, Server { received, send })
}

fn receive(client: &mut TcpStream, bytes: usize) -> String {
    let mut text = vec![0; bytes];
    client.read_exact(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Whether nothing comes within a time that would be ample if anything could come.
fn is_silent(client: &mut TcpStream) -> bool {
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let read = client.read(&mut [0; 1]);
    client.set_read_timeout(None).unwrap();
    read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

fn is_closed(client: &mut TcpStream) -> bool {
    match client.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn the_nth_reply_is_lost_and_its_connection_cut() {
    let (proxy, mut client, server) = connected();
    proxy.lose_reply(3);
    server.send.send("+one\r\n$3\r\ntwo\r\n+three\r\n+four\r\n").unwrap();
    assert_eq!(receive(&mut client, 15), "+one\r\n$3\r\ntwo\r\n");
    assert!(is_closed(&mut client), "instead of the third reply");
}

#[test]
fn a_cut_closes_what_is_open_and_nothing_later() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap().port());
    let (mut first, server) = connect(&proxy, &listener);
    server.send.send("+\r\n").unwrap();
    receive(&mut first, 3);
    proxy.cut();
    assert!(is_closed(&mut first));
    let (mut second, server) = connect(&proxy, &listener);
    server.send.send("+later\r\n").unwrap();
    assert_eq!(receive(&mut second, 8), "+later\r\n");
}

#[test]
fn what_is_held_arrives_later_and_the_other_direction_passes() {
    let (proxy, mut client, server) = connected();
    proxy.hold(Direction::Up);
    client.write_all(b"request").unwrap();
    server.send.send("+reply\r\n").unwrap();
    assert_eq!(receive(&mut client, 8), "+reply\r\n");
    assert!(server.received.recv_timeout(Duration::from_millis(50)).is_err());
    proxy.mend();
    assert_eq!(server.received.recv().unwrap(), b"request");
}

#[test]
fn a_connection_that_lost_something_loses_all_that_follows() {
    let (proxy, mut client, server) = connected();
    server.send.send("+\r\n").unwrap();
    receive(&mut client, 3);
    proxy.lose(Direction::Down);
    server.send.send("+lost\r\n").unwrap();
    client.write_all(b"request").unwrap();
    assert_eq!(server.received.recv().unwrap(), b"request", "only replies are lost");
    assert!(is_silent(&mut client));
    proxy.mend();
    server.send.send("+lost too\r\n").unwrap();
    assert!(is_silent(&mut client));
}

#[test]
fn a_limited_direction_passes_pieces_and_a_delayed_one_passes_later() {
    let (proxy, mut client, server) = connected();
    proxy.limit(Direction::Down, Some(20));
    server.send.send("+1+2+3\r\n").unwrap();
    let mut bytes = [0; 8];
    assert_eq!(client.read(&mut bytes).unwrap(), 2, "a tenth of a second's bytes");
    proxy.mend();
    client.read_exact(&mut bytes[2..]).unwrap();
    let began = std::time::Instant::now();
    proxy.delay(Direction::Up, Duration::from_millis(30));
    client.write_all(b"request").unwrap();
    assert_eq!(server.received.recv().unwrap(), b"request");
    assert!(began.elapsed() >= Duration::from_millis(30));
}
