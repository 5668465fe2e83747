//! Cases that would take minutes with the real timeouts: nodes that do not come, leaders that are
//! missing.

use super::carrier::Carrier;
use super::connection::PeerConnection;
use super::peers::{Event, Peers};
use super::place::Station;
use super::status_file::StatusFile;
use super::*;
use crate::far::records::Due;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use towline_core::plan::{Plan, PlannedRun, Request};
use towline_core::reason::Cause;
use towline_core::resolve::{Surroundings, resolve};
use towline_wire::crew::{FromNode, SharedToken};

const QUICK_PACE: Pace = Pace {
    alive_every: Duration::from_millis(20),
    silence: Duration::from_secs(5),
    meeting: Duration::from_secs(1),
    call_every: Duration::from_millis(10),
};

fn task(folder: &Path) -> CrewTask {
    let run = RunId::new("crew-test", 1, std::process::id());
    let (stage, status) = (folder.join("stage"), folder.join("news"));
    CrewTask {
        order: folder.join("order"),
        run,
        folder: stage,
        status,
        store: None,
        at: Vec::new(),
        local: folder.join("local"),
        pace: QUICK_PACE,
    }
}

fn order_of(run: &RunId, nodes: u32) -> CrewOrder {
    let job = serde_json::from_str(r#"{"command": "true"}"#).expect("a job");
    let (mut resolved, _) = resolve(&job, None, 0, Surroundings::default()).expect("definite");
    resolved.shape.nodes = nodes;
    let runs = vec![PlannedRun {
        id: run.clone(),
        name: String::new(),
        parameters: Vec::new(),
    }];
    let request = Request {
        text: String::new(),
    };
    let (cluster, kind) = (String::new(), String::new());
    let plan = Plan {
        version: 1,
        id: run.clone(),
        cluster,
        kind,
        runs,
        job,
        resolved,
        request,
        notes: Vec::new(),
        after: Vec::new(),
        resubmits: None,
        adopted: None,
        made: None,
        whole_node_gpus: None,
        agent: None,
    };
    CrewOrder {
        version: CREW_VERSION,
        plan,
        grace_millis: 100,
        collect_every: 60,
        shared_token: SharedToken::new("token"),
        secrets: None,
    }
}

fn free_station(node: u32) -> Station {
    Station {
        node,
        leader: "127.0.0.1".into(),
        port: crate::launch::free_port(),
    }
}

fn crew(task: &CrewTask, station: Station) -> Crew<'_> {
    let carrier = Carrier::new(task, station.node, order_of(&task.run, 3), &|_| {
        Err(towline_core::Error::bug("nobody asks for secrets"))
    })
    .expect("a folder");
    let parent = std::os::unix::process::parent_id();
    Crew {
        task,
        station,
        nodes: 3,
        parent,
        carrier,
        end_signal: EndSignal::new().expect("heard"),
    }
}

#[test]
fn nodes_that_do_not_come_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let task = task(folder.path());
    let station = free_station(0);
    let caller = station.clone();
    let second = std::thread::spawn(move || {
        let stream = loop {
            if let Ok(stream) = TcpStream::connect(caller.addresses().expect("known")[0]) {
                break stream;
            }
            std::thread::yield_now();
        };
        let mut connection = PeerConnection::new(stream, QUICK_PACE).expect("a line");
        connection
            .send(&FromNode::Here {
                shared_token: SharedToken::new("token"),
                node: 2,
                host: "b".into(),
            })
            .expect("told");
        connection.keep_alive(&FromNode::Alive).expect("a thread");
        loop {
            let (messages, lost) = connection.receive::<towline_wire::crew::ToNode>();
            if let Some(code) = messages.iter().find_map(|message| {
                if let towline_wire::crew::ToNode::Leave { code } = message {
                    Some(*code)
                } else {
                    None
                }
            }) {
                return code;
            }
            assert_eq!(lost, None);
            std::thread::yield_now();
        }
    });
    assert_eq!(leader::lead(crew(&task, station)).expect("led"), 1);
    assert_eq!(second.join().expect("ended"), 1, "who came leaves too");
    let Due::Nothing(ending) = StatusFile::read(&task).expect("there").due(None) else {
        panic!("it is over")
    };
    assert_eq!(
        (ending.cause, ending.detail.as_deref()),
        (
            Some(Cause::NodeFailed),
            Some("node 1 did not come within 1 s")
        )
    );
}

#[test]
fn who_finds_no_leader_leaves() {
    let folder = tempfile::tempdir().expect("a folder");
    let task = task(folder.path());
    assert_eq!(
        follower::follow(crew(&task, free_station(1))).expect("followed"),
        1
    );
    // The same with a leader that never answers.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let station = Station {
        port: mute.local_addr().expect("an address").port(),
        ..free_station(2)
    };
    std::thread::spawn(move || mute.incoming().for_each(drop));
    assert_eq!(follower::follow(crew(&task, station)).expect("followed"), 1);
}

#[test]
fn only_who_belongs_is_let_in_and_only_once() {
    let station = free_station(0);
    let mut peers = Peers::new(&station, 3, &SharedToken::new("token"), QUICK_PACE);
    peers.open().expect("a port");
    let call = |token: &str, node: u32| {
        let connection = PeerConnection::new(
            TcpStream::connect(station.addresses().expect("known")[0]).expect("called"),
            QUICK_PACE,
        )
        .expect("a line");
        connection
            .send(&FromNode::Here {
                shared_token: SharedToken::new(token),
                node,
                host: format!("host-{node}"),
            })
            .expect("told");
        connection.keep_alive(&FromNode::Alive).expect("a thread");
        connection
    };
    let until = |peers: &mut Peers, missing: &[u32]| {
        while peers.missing() != missing {
            assert_eq!(peers.receive(), []);
        }
    };
    let _strangers = [call("other", 1), call("token", 0), call("token", 3)];
    let first = call("token", 1);
    until(&mut peers, &[2]);
    let _second = call("token", 2);
    until(&mut peers, &[]);
    assert_eq!(
        (peers.host(0), peers.host(1), peers.host(2)),
        ("", "host-1", "host-2")
    );
    let _again = call("token", 1);
    let mut events = Vec::new();
    while events.is_empty() {
        events = peers.receive();
    }
    assert_eq!(events, [Event::Lost(1, "node 1 was restarted".into())]);
    assert!(peers.missing().is_empty(), "the new one is there");
    drop(first);
}
