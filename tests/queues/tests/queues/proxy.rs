//! A proxy before the Kafka broker that loses responses.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::broker::{Queue, kafka};
use super::items;
use super::stage::{Stage, Step};

/// The number of the request to store messages.
const PRODUCE: u16 = 0;
/// Each so many responses one is lost.
const EACH: u32 = 4;

/// Forwards connections, and closes one instead of the response to every fourth request to store messages.
fn start(listener: TcpListener, broker: String) -> Arc<AtomicU32> {
    let lost = Arc::new(AtomicU32::new(0));
    let counting = Arc::clone(&lost);
    thread::spawn(move || {
        let stored = Arc::new(AtomicU32::new(0));
        for client in listener.incoming() {
            let (client, broker) = (client.unwrap(), TcpStream::connect(&broker).unwrap());
            let produced = Arc::new(Mutex::new(BTreeSet::new()));
            let (from, to, requests) = (
                client.try_clone().unwrap(),
                broker.try_clone().unwrap(),
                Arc::clone(&produced),
            );
            thread::spawn(move || {
                let _ = forward(&from, &to, |frame| {
                    if frame[..2] == PRODUCE.to_be_bytes() {
                        requests.lock().unwrap().insert(frame[4..8].to_vec());
                    }
                    true
                });
            });
            let (stored, lost) = (Arc::clone(&stored), Arc::clone(&counting));
            thread::spawn(move || {
                let _ = forward(&broker, &client, |frame| {
                    let is_stored = produced.lock().unwrap().remove(&frame[..4]);
                    let loses = is_stored && stored.fetch_add(1, Ordering::SeqCst) % EACH == EACH - 1;
                    lost.fetch_add(u32::from(loses), Ordering::SeqCst);
                    !loses
                });
            });
        }
    });
    lost
}

/// Forwards frames until the function returns false for one; then both sides are closed.
fn forward(
    mut from: &TcpStream,
    mut to: &TcpStream,
    mut passes: impl FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    let mut forward = || -> io::Result<()> {
        loop {
            let mut length = [0; 4];
            from.read_exact(&mut length)?;
            let mut frame = vec![0; u32::from_be_bytes(length) as usize];
            from.read_exact(&mut frame)?;
            if !passes(&frame) {
                return Ok(());
            }
            to.write_all(&[&length[..], &frame].concat())?;
        }
    };
    let ended = forward();
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    ended
}

/// The broker has stored messages, and the writer does not know: it sends them again, and they are there once.
///
/// Spec: QUEUE-09
#[test]
fn a_batch_that_is_sent_again_is_stored_once() {
    let server = kafka();
    let (listener, behind) = server.proxy();
    let address = listener.local_addr().unwrap().to_string();
    let lost = start(listener, behind);
    let queue = Queue::on_kafka(server, 2);
    let stage = Stage::new(&Step {
        reader: ("Items", vec![("items", "200".to_owned())]),
        writer: queue.writer(&[("servers", &address), ("key", "{id}")]),
        attributes: "commit-interval=\"10\"",
        children: "",
    });
    stage.start(()).completed();
    assert!(lost.load(Ordering::SeqCst) >= 10);
    assert_eq!(queue.stored_on(server), items(1..=200));
}
