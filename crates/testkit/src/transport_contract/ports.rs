//! The part of the contract that is about forwarded ports.

use super::{Stage, bytes};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};

pub(super) fn a_port_carries_bytes(stage: &dyn Stage) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut peer in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut back = peer.try_clone().expect("a second hand");
                let _ = io::copy(&mut peer, &mut back);
                let _ = back.shutdown(Shutdown::Write);
            });
        }
    });
    let forward = stage
        .transport()
        .forward("127.0.0.1", port)
        .expect("a way there");
    let address = (Ipv4Addr::LOCALHOST, forward.port());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut near = TcpStream::connect(address).expect("it listens");
                let (sent, mut back) = (bytes(1 << 20), Vec::new());
                let mut writer = near.try_clone().expect("a second hand");
                let all = sent.clone();
                std::thread::spawn(move || {
                    writer.write_all(&all).expect("it is taken");
                    writer.shutdown(Shutdown::Write).expect("an end");
                });
                near.read_to_end(&mut back).expect("it comes back");
                assert!(back == sent, "{} bytes came back", back.len());
            });
        }
    });
    let mut open = TcpStream::connect(address).expect("it listens");
    open.write_all(b"x").expect("it is taken");
    open.read_exact(&mut [0]).expect("it comes back");
    drop(forward);
    assert_eq!(open.read(&mut [0]).unwrap_or(0), 0, "what was open is cut");
    crate::until("the port to be closed", || {
        TcpStream::connect(address).is_err().then_some(())
    });
}
